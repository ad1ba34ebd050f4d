//! Tells somebody that an alert fires, or does no longer: a CloudEvent for each change, sent until it is taken.
//!
//! What is to be told is written down before it is sent, and forgotten after it was taken, so that each change is told at least
//! once, over restarts too. Where it may be sent is for the same rules of egress to say as where events may be delivered. Nothing
//! of it goes through the mesh: that may be what the alert is about.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use heddle_api::health::alerts::notices::{AlertNotice, AlertNotices};
use heddle_api::health::alerts::told::AlertList;
use heddle_mesh::Mesh;
use heddle_rt::net::client::ask_once;
use heddle_rt::net::dial::{Connect as _, Network, Place};
use heddle_rt::net::egress::Egress;
use heddle_rt::net::trust::Roots;
use heddle_rt::vfs::Vfs;
use heddle_rt::{Clock, Tasks};
use http::{Request, StatusCode, Uri, header};
use http_body_util::Full;

use crate::base_url;
use crate::failure::Failure;
use crate::wire::World;

/// How long one may take, from the name to the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What is sent between two looks; the rest waits for the next.
const ROUND_MAX: Duration = Duration::from_secs(20);
/// How long after a start nothing is said to be over: some rules need a while to see anything.
const SETTLING: Duration = Duration::from_secs(300);
const FILE: &str = "alerts.json";
const FILE_MODE: u32 = 0o600;

/// Whether alerts can be told at `url`.
pub(crate) fn check(url: &str) -> Result<(), Failure> {
    address(url).map(drop)
}

fn address(url: &str) -> Result<Uri, Failure> {
    let what = "address at which alerts are told";
    base_url::parse(
        url,
        what,
        &["http", "https"],
        "https://pager.example/heddle",
    )
}

/// Somebody who is told.
#[derive(Debug)]
pub(crate) struct AlertWebhook {
    target: Uri,
    place: Place,
    network: Network,
    clock: Clock,
    tasks: Tasks,
    mesh: Mesh,
    vfs: Arc<dyn Vfs>,
    file: PathBuf,
    notices: AlertNotices,
    began: Duration,
    /// Whether people were told that nothing is taken.
    failing: bool,
}

/// What came of sending.
enum NoticeOutcome {
    Taken,
    /// It would be refused again.
    Refused(StatusCode),
    Failed(String),
}

impl AlertWebhook {
    /// What was not taken before the last end of the process is taken up again.
    pub(crate) fn open(
        url: &str,
        egress: &Egress,
        dir: &std::path::Path,
        world: &World,
        tasks: &Tasks,
        mesh: Mesh,
    ) -> anyhow::Result<Self> {
        let target = address(url)?;
        let is_https = target.scheme_str() == Some("https");
        let host = target.host().unwrap_or_default();
        let place = Place {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: target.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            tls: is_https.then(Roots::default),
        };
        let file = dir.join(FILE);
        let notices = match world.vfs.exists(&file)? {
            true => {
                let text = world.vfs.read(&file);
                let text = text.with_context(|| format!("cannot read {}", file.display()))?;
                serde_json::from_slice(&text).unwrap_or_else(|error| {
                    // Better told twice than not at all: what fires now is told anew.
                    tracing::warn!(%error, file = %file.display(), "what was told of alerts cannot be read; beginning anew");
                    AlertNotices::default()
                })
            }
            false => AlertNotices::default(),
        };
        Ok(Self {
            target,
            place,
            network: Network::new(world.clock.clone(), egress.clone()),
            clock: world.clock.clone(),
            tasks: tasks.child("alert webhook"),
            mesh,
            vfs: Arc::clone(&world.vfs),
            file,
            notices,
            began: world.clock.monotonic(),
            failing: false,
        })
    }

    /// Notices what changed, and sends what waits.
    pub(crate) async fn look(&mut self, list: &AlertList) {
        let monotonic = self.clock.monotonic();
        let may_resolve = monotonic.saturating_sub(self.began) >= SETTLING;
        let dropped = self.notices.dropped;
        if self.notices.look(list, self.clock.now(), may_resolve) {
            self.keep().await;
        }
        if self.notices.dropped > dropped {
            let dropped = self.notices.dropped - dropped;
            tracing::warn!(
                dropped,
                "too many alerts wait to be told; some never will be"
            );
        }
        while let Some(notice) = self.notices.next().cloned() {
            if self.clock.monotonic().saturating_sub(monotonic) >= ROUND_MAX {
                return;
            }
            match self.send(&notice).await {
                NoticeOutcome::Taken => self.failing = false,
                NoticeOutcome::Refused(status) => {
                    tracing::warn!(%status, alert = notice.alert.name, "an alert was refused and is not told again");
                }
                NoticeOutcome::Failed(reason) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(
                            reason,
                            "alerts are not taken; they are sent again until they are"
                        );
                    }
                    return;
                }
            }
            self.notices.forget(&notice.id);
            self.keep().await;
        }
    }

    /// Writes down what is to be told. A disk that takes nothing keeps nobody from being told; at worst they are told twice.
    async fn keep(&self) {
        let text = serde_json::to_vec(&self.notices).unwrap_or_default();
        let (vfs, file) = (Arc::clone(&self.vfs), self.file.clone());
        // Nothing that serves others waits for the disk.
        let written = self
            .mesh
            .aside(move |_| Ok(vfs.write_atomic(&file, &text, FILE_MODE)));
        if let Ok(Err(error)) = written.await {
            tracing::warn!(%error, file = %self.file.display(), "what is to be told of alerts cannot be written down");
        }
    }

    async fn send(&self, notice: &AlertNotice) -> NoticeOutcome {
        match self.clock.timeout(TIMEOUT, self.post(notice)).await {
            Ok(Ok(status)) => judge(status),
            Ok(Err(error)) => NoticeOutcome::Failed(format!("{error:#}")),
            Err(late) => NoticeOutcome::Failed(format!("no answer within {:?}", late.0)),
        }
    }

    async fn post(&self, notice: &AlertNotice) -> anyhow::Result<StatusCode> {
        let body = Bytes::from(notice.event().to_string());
        let request = Request::post(self.target.clone())
            .header(header::CONTENT_TYPE, "application/cloudevents+json")
            .body(Full::new(body))?;
        let stream = self.network.connect(&self.place).await?;
        let answer = ask_once(&self.tasks, &self.place, stream, request).await?;
        Ok(answer.status())
    }
}

/// What an answer means. What is wrong with the event stays wrong; everything else may be mended.
fn judge(status: StatusCode) -> NoticeOutcome {
    match status.as_u16() {
        200..=299 => NoticeOutcome::Taken,
        400 | 413 | 415 | 422 => NoticeOutcome::Refused(status),
        _ => NoticeOutcome::Failed(format!("it was answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_event_is_not_sent_again_and_everything_else_is() {
        for (status, expected) in [
            (200, "taken"),
            (202, "taken"),
            (204, "taken"),
            (400, "refused"),
            (413, "refused"),
            (422, "refused"),
            (301, "failed"),
            (401, "failed"),
            (404, "failed"),
            (408, "failed"),
            (429, "failed"),
            (500, "failed"),
            (503, "failed"),
        ] {
            let found = match judge(StatusCode::from_u16(status).unwrap()) {
                NoticeOutcome::Taken => "taken",
                NoticeOutcome::Refused(_) => "refused",
                NoticeOutcome::Failed(_) => "failed",
            };
            assert_eq!(found, expected, "{status}");
        }
    }

    #[test]
    fn an_address_is_checked_before_anything_starts() {
        for good in ["https://pager.example/heddle", "http://127.0.0.1:9093"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "pager.example",
            "ftp://pager.example",
            "https://user:word@pager.example",
            "https://",
            "",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
