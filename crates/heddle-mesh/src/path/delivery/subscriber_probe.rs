//! Whether a subscriber answers between events, for those who want to know before one is due.
//!
//! ```text
//!   annotation heddle.dev/subscriber-probe   tcp ───────> a connection
//!                                            options ───> OPTIONS of its exact URL, as the webhook specification has it
//!                                            heartbeat ─> a synthetic event, which it must accept
//! ```
//! Without the annotation nothing is sent that nobody published. With it, a destination is tried every 30 seconds, and
//! more often while it fails, once for all consumers that send there in the same way and want it tried in the same way, and a few
//! destinations at a time. It is tried as events are delivered: what the policy for destinations forbids is not connected to,
//! and what has not consented gets no heartbeat. What was found is for health to judge; deliveries do not ask.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use heddle_api::attributes::Value;
use heddle_api::dataplane::SubscriberReading;
use heddle_rt::OnError;
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::consent::{Consent, REQUEST_ORIGIN};
use super::courier::{Address, ProbeOutcome, ProbeRequest};
use super::signing::{MessageSigning, Signer, message_id};
use crate::event::{Builder, Event, Form};
use crate::heartbeat;
use crate::routes::{ProbeKind, Webhook};
use crate::shared::Shared;

/// How often, while it answers.
const INTERVAL: Duration = Duration::from_secs(30);
/// How soon after it did not.
const AGAIN: Duration = Duration::from_secs(5);
/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Destinations that are tried at once.
const AT_ONCE_MAX: usize = 16;
/// What stands for an Application in heartbeats to subscribers.
const SOURCE: &str = "_subscriber";

/// In whose name a destination is asked, unless its consumer says.
pub(super) static ORIGIN: HeaderValue = HeaderValue::from_static("heddle");

/// All destinations that somebody wants tried.
#[derive(Debug)]
pub(crate) struct SubscriberProbes {
    known: Mutex<HashMap<DestinationKey, Weak<SubscriberProbe>>>,
    at_once: Semaphore,
}

/// What makes two destinations one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DestinationKey {
    kind: ProbeKind,
    /// The origin where that is all that is tried, else the whole URL.
    place: String,
    ca_certs: Option<String>,
    /// What it consents to.
    webhook: Option<Webhook>,
    /// Whose keys sign what it is tried with, by address: as long as somebody knows the destination these stay where they are.
    signer: Option<usize>,
}

/// One destination that is tried, for as long as somebody wants it.
#[derive(Debug)]
pub(crate) struct SubscriberProbe {
    kind: ProbeKind,
    address: Arc<Address>,
    consent: Option<Arc<Consent>>,
    signer: Option<Arc<Signer>>,
    found: Mutex<ProbeFindings>,
    /// Rings when nobody is left who wants it.
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct ProbeFindings {
    count: u64,
    tried: Option<Duration>,
    failed: Option<String>,
    misses: u32,
}

impl Default for SubscriberProbes {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            at_once: Semaphore::new(AT_ONCE_MAX),
        }
    }
}

/// Where and how a consumer's events are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbedDestination<'a> {
    pub(crate) url: &'a str,
    pub(crate) ca_certs: Option<&'a str>,
    pub(crate) address: &'a Arc<Address>,
    pub(crate) webhook: Option<&'a Webhook>,
    pub(crate) consent: Option<&'a Arc<Consent>>,
    pub(crate) signer: Option<&'a Arc<Signer>>,
}

impl SubscriberProbes {
    /// What is known of a destination; it is tried from now on if it was not so far.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        to: ProbedDestination<'_>,
        kind: ProbeKind,
    ) -> Arc<SubscriberProbe> {
        // Only an event can be signed.
        let signer = to.signer.filter(|_| kind == ProbeKind::Heartbeat);
        let key = DestinationKey {
            kind,
            place: match kind {
                ProbeKind::Tcp => to.address.origin(),
                ProbeKind::Options | ProbeKind::Heartbeat => to.url.to_owned(),
            },
            ca_certs: to.ca_certs.map(str::to_owned),
            webhook: to.webhook.cloned(),
            signer: signer.map(|signer| Arc::as_ptr(signer).addr()),
        };
        let mut known = shared.subscriber_probes.known.lock();
        if let Some(probe) = known.get(&key).and_then(Weak::upgrade) {
            return probe;
        }
        known.retain(|_, probe| probe.strong_count() > 0);
        let probe = Arc::new(SubscriberProbe {
            kind,
            address: Arc::clone(to.address),
            consent: to.consent.cloned(),
            signer: signer.cloned(),
            found: Mutex::default(),
            wake: Arc::default(),
        });
        known.insert(key, Arc::downgrade(&probe));
        let trying = keep_trying(Arc::clone(shared), Arc::downgrade(&probe));
        shared
            .asking
            .spawn("subscriber probe", OnError::Report, trying);
        probe
    }
}

impl SubscriberProbes {
    /// Waits until there is room for one more destination that is tried.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.at_once.acquire().await.ok()
    }
}

impl SubscriberProbe {
    pub(crate) fn reading(&self, now: Duration) -> SubscriberReading {
        let found = self.found.lock();
        SubscriberReading {
            how: self.kind.word().to_owned(),
            interval: INTERVAL,
            age: found.tried.map(|at| now.saturating_sub(at)),
            failed: found.failed.clone(),
            misses: found.misses,
        }
    }

    /// Tries it once; gives when to do so again.
    async fn try_once(&self, shared: &Shared) -> Duration {
        let outcome = self.probe(shared).await;
        let mut found = self.found.lock();
        match outcome {
            // Nothing is known that was not known before.
            ProbeOutcome::Untried => return AGAIN,
            ProbeOutcome::Answered => (found.failed, found.misses) = (None, 0),
            ProbeOutcome::Unanswered(why) => {
                found.failed = Some(why);
                found.misses = found.misses.saturating_add(1);
            }
        }
        found.tried = Some(shared.clock.monotonic());
        match found.failed {
            None => INTERVAL,
            Some(_) => AGAIN,
        }
    }

    async fn probe(&self, shared: &Shared) -> ProbeOutcome {
        let consent = self.consent.as_ref();
        if self.kind == ProbeKind::Heartbeat
            && let Some(consent) = consent
        {
            if !consent.is_granted() {
                return ProbeOutcome::Untried;
            }
            // It is one of those that the destination allowed, which may be few: nobody else waits for that.
            if consent.is_paced() {
                let now = shared.clock.monotonic();
                let turn = consent.next_turn(now).saturating_sub(now);
                shared.clock.sleep(turn).await;
            }
        }
        let Ok(_place) = shared.subscriber_probes.at_once.acquire().await else {
            return ProbeOutcome::Untried;
        };
        let headers = consent.map(|consent| consent.headers());
        let asked = [(REQUEST_ORIGIN.clone(), ORIGIN.clone())];
        let (event, id);
        let request = match self.kind {
            ProbeKind::Tcp => ProbeRequest::Connect,
            ProbeKind::Options => ProbeRequest::Options(headers.unwrap_or(&asked)),
            ProbeKind::Heartbeat => {
                event = self.event(shared);
                id = message_id(event.source(), event.id());
                let signing = self.signer.as_deref().map(|signer| MessageSigning {
                    signer,
                    id: &id,
                    clock: &shared.clock,
                });
                ProbeRequest::Event(&event, headers.unwrap_or_default(), signing)
            }
        };
        (shared.courier)
            .probe(&self.address, request, TIMEOUT)
            .await
    }

    fn event(&self, shared: &Shared) -> Event {
        let count = {
            let mut found = self.found.lock();
            found.count += 1;
            found.count
        };
        let mut event = Builder::new(Form::Binary);
        event.push("type", Value::Text(heartbeat::TYPE));
        event.push("source", Value::Text(&heartbeat::source_of(SOURCE)));
        let id = format!("{}-{count}", shared.chance.suffix(ID_CHARS));
        event.push("id", Value::Text(&id));
        event.push("time", Value::Text(&shared.clock.now().to_string()));
        event.build(None)
    }
}

/// What tells an event from those of all other destinations and processes.
const ID_CHARS: usize = 10;

impl Drop for SubscriberProbe {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Tries a destination, again and again, for as long as somebody wants it.
async fn keep_trying(shared: Arc<Shared>, probe: Weak<SubscriberProbe>) {
    let clock = shared.clock.clone();
    while let Some(wanted) = probe.upgrade() {
        let pause = wanted.try_once(&shared).await;
        let wake = Arc::clone(&wanted.wake);
        drop(wanted);
        // Time or a notification, whichever is first.
        clock.timeout(pause, wake.notified()).await.ok();
    }
}
