//! What to look at while the demo runs, as commands that can be copied.

use std::path::Path;

use super::subscribers::MEND;
use crate::terminal::{Tone, paint};

/// Where this demo is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guide<'a> {
    /// What makes `heddle` known to a shell that does not know it.
    pub(super) path: &'a str,
    pub(super) data_dir: &'a Path,
    /// Address of the events listener.
    pub(super) events: &'a str,
    /// Address of the subscribers.
    pub(super) subscribers: &'a str,
}

impl Guide<'_> {
    pub(super) fn text(&self, colour: bool) -> String {
        let (path, data_dir) = (self.path, self.data_dir.display());
        let curl = format!(
            "curl -i {}/shop/events -H 'ce-specversion: 1.0' -H 'ce-id: my-1' -H 'ce-source: shop' \\\n    -H 'ce-type: order.created' -H 'content-type: application/json' -d '{{\"order\": 1}}'",
            self.events.trim_end_matches('/')
        );
        let mend = format!("curl -X POST {}{MEND}", self.subscribers);
        let sections: [(&str, &[&str]); 5] = [
            (
                "An order is published every second; every third is cancelled, and its subscriber fails. In another shell:",
                &[&format!(
                    "export {path}HEDDLE_DATA_DIR={data_dir} KUBECONFIG={data_dir}/admin.kubeconfig"
                )],
            ),
            (
                "Publish one yourself, and see where it went",
                &[&curl, "heddle trace my-1"],
            ),
            (
                "See what could not be delivered, mend the subscriber, and send it again",
                &[
                    "heddle trace demo-3",
                    "heddle dead-letters list",
                    &mend,
                    "heddle dead-letters redrive --trigger team-a/refunds --yes",
                    "heddle trace demo-3",
                ],
            ),
            (
                "Ask why, and whether every event is accounted for",
                &[
                    "heddle explain trigger team-a/refunds",
                    "heddle explain trigger --broker team-a/default --prefix type=order.",
                    "heddle doctor",
                ],
            ),
            (
                "Look at the objects behind it",
                &[
                    "heddle get applications,channels,brokers,triggers -A",
                    "kubectl get triggers -n team-a",
                ],
            ),
        ];
        let mut text = String::new();
        for (title, commands) in sections {
            text.push_str(&format!("\n{}\n", paint(colour, Tone::Strong, title)));
            for command in commands {
                text.push_str(&format!("  {command}\n"));
            }
        }
        text.push_str("\nCtrl-C stops everything and removes the directory.\n");
        text
    }
}
