//! What each query of the dashboards is expected to find, and where: the table that a real Prometheus is asked about.
//!
//! `tests/prometheus/dashboards.py` starts one heddle for each of the [`SCENES`], lets happen there what its name says, and
//! nothing else. A query must find something in the scenes that are named here, and nothing, or zero, in all others.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use heddle_api::health::dashboards::{DASHBOARDS, Panel};
use serde_json::{Value, json};

/// What happens on each heddle. `absent` is a target that nobody answers.
const SCENES: &[&str] = &[
    "absent",    // nothing runs
    "idle",      // nothing happens, and there are no heartbeats
    "delivered", // an Application's events are delivered
    "refused",   // a publisher sends what is no event
    "full",      // there is no room for events
    "rejecting", // a subscriber answers 400, once and for all
    "failing",   // a subscriber answers 500
    "hanging",   // a subscriber does not answer
    "filtered",  // two Triggers, of which one wants the events
    "unmatched", // events that nobody wants
    "expired",   // events that are too old when they come
    "replying",  // a subscriber answers with what is no event
    "passing",   // a Trigger leads to another Broker
    "waiting",   // an instance and a flow of an Application that does not exist
    "beating",   // heartbeats, and an Application for them
    "smoking",   // a smoke test passes
    "choking",   // smoke tests fail, for there is no room for events
];

/// Every scene in which heddle runs.
const RUNNING: &str = "idle delivered refused full rejecting failing hanging filtered unmatched expired replying passing waiting beating smoking choking";
/// Those in which events are accepted from the shop, or at a Broker.
const ACCEPTED: &str =
    "delivered rejecting failing hanging filtered unmatched expired replying passing";
/// Those in which a Trigger wants them.
const WANTED: &str = "delivered rejecting failing hanging filtered expired replying passing";
/// Those in which a delivery is attempted.
const DELIVERED: &str = "delivered filtered replying passing";

/// Those in which something is in the log.
const KEPT: &str = "delivered rejecting failing hanging filtered unmatched expired replying passing beating smoking";
/// And the one in which there is no room for anything.
const USED: &str = "full delivered rejecting failing hanging filtered unmatched expired replying passing beating smoking choking";

/// Dashboard, panel, and the scenes of its queries, in their order.
type Expected = (&'static str, &'static str, &'static [&'static str]);

const EXPECTED: &[Expected] = &[
    ("broker-trigger", "Accepted, by door", &[ACCEPTED]),
    ("broker-trigger", "Wanted, by Trigger", &[WANTED]),
    ("broker-trigger", "Filtered out", &["filtered unmatched"]),
    ("broker-trigger", "Wanted by nobody", &["unmatched"]),
    ("broker-trigger", "Passed on", &["passing"]),
    (
        "broker-trigger",
        "Failing attempts, part of all",
        &["rejecting failing hanging"],
    ),
    (
        "broker-trigger",
        "Flows that are ready",
        &["delivered beating"],
    ),
    ("broker-trigger", "Flows that lack something", &["waiting"]),
    (
        "delivery",
        "Published, by answer",
        &[ACCEPTED, "refused", "full"],
    ),
    (
        "delivery",
        "Attempts, by answer",
        &[DELIVERED, "rejecting", "failing", "hanging"],
    ),
    ("delivery", "Delivered", &[DELIVERED]),
    ("delivery", "Expired", &["expired"]),
    ("delivery", "Replies that could not go on", &["replying"]),
    (
        "latency",
        "Half of the events, by hop",
        &[
            "delivered refused full rejecting failing hanging filtered unmatched expired replying passing",
        ],
    ),
    (
        "latency",
        "All but the slowest hundredth, by hop",
        &[
            "delivered refused full rejecting failing hanging filtered unmatched expired replying passing",
        ],
    ),
    (
        "latency",
        "From accepted to delivered",
        &[DELIVERED, DELIVERED],
    ),
    ("latency", "Synthetic events", &["beating smoking"]),
    ("latency", "Requests to the resource API", &[RUNNING]),
    ("process", "Processor", &[RUNNING]),
    ("process", "Memory", &[RUNNING]),
    ("process", "Files and connections", &[RUNNING]),
    ("process", "Up since", &[RUNNING]),
    ("process", "Room for events", &[KEPT, RUNNING, RUNNING]),
    ("process", "Room that is used", &[USED]),
    ("process", "Objects", &[RUNNING]),
    ("process", "Requests to the resource API", &[RUNNING]),
    ("process", "Controllers last seen", &[RUNNING]),
    ("backlog", "Waiting", &["failing hanging"]),
    ("backlog", "Oldest", &["failing hanging"]),
    ("backlog", "Under way", &["hanging"]),
    ("backlog", "Tried again", &["failing hanging"]),
    ("backlog", "Log kept by backlogs", &["failing hanging"]),
    ("backlog", "Dead letters", &["rejecting"]),
    ("backlog", "Dead replies", &["replying"]),
    ("backlog", "Oldest operation", &["waiting"]),
    ("heartbeats", "Health of the mesh", &[RUNNING]),
    (
        "heartbeats",
        "Health of Applications",
        &["delivered beating"],
    ),
    (
        "heartbeats",
        "Data plane of Applications",
        // Where nothing flows, nothing is amiss with it.
        &["waiting beating"],
    ),
    ("heartbeats", "Since the last arrival", &["beating"]),
    (
        "heartbeats",
        "Canary: since the last arrival",
        &["beating smoking"],
    ),
    ("heartbeats", "How long they took", &["beating"]),
    (
        "heartbeats",
        "Smoke tests that failed in a row",
        &["choking"],
    ),
    (
        "heartbeats",
        "How long the last smoke test took",
        &["smoking choking"],
    ),
    ("heartbeats", "Smoke tests", &["smoking choking"]),
];

/// Writes `queries.json` into a folder.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore writes where it is told to; no fault is injected here"
)]
pub(crate) fn write(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let file = out.join("queries.json");
    let text = serde_json::to_string_pretty(&queries()?)?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn queries() -> Result<Value> {
    let mut queries = Vec::new();
    for dashboard in DASHBOARDS {
        for panel in dashboard.panels {
            let scenes = scenes_of(dashboard.slug, panel)?;
            for (query, scenes) in panel.queries.iter().zip(scenes) {
                let found: Vec<&str> = scenes.split(' ').collect();
                if let Some(unknown) = found.iter().find(|scene| !SCENES.contains(scene)) {
                    bail!("{}: there is no scene {unknown}", panel.title);
                }
                queries.push(json!({
                    "name": format!("{}: {}: {}", dashboard.slug, panel.title, query.legend),
                    "expression": query.expression, "found": found,
                }));
            }
        }
    }
    Ok(json!({"scenes": SCENES, "queries": queries}))
}

fn scenes_of(slug: &str, panel: &Panel) -> Result<&'static [&'static str]> {
    let mut expected = EXPECTED.iter();
    let found = expected.find(|(dashboard, title, _)| (*dashboard, *title) == (slug, panel.title));
    let Some((_, _, scenes)) = found else {
        bail!(
            "nobody says when the panel {slug}: {} shows something",
            panel.title
        );
    };
    ensure!(
        scenes.len() == panel.queries.len(),
        "{slug}: {} has {} queries",
        panel.title,
        panel.queries.len()
    );
    Ok(scenes)
}
