//! Consent: whether a destination wants to be sent events at all, and how many.
//!
//! ```text
//!   OPTIONS the exact URL ──> WebHook-Allowed-Origin and -Rate ──> granted for a day, asked again every hour
//!     ^ again, ever later       │ neither, or another's
//!     └─────────────────────────┘             callback ──────────> granted for a day, asked again after half of it
//! ```
//! A consumer that asks for it sends nothing before its destination has consented, and no more than was allowed: what is
//! too much waits. Consent is in headers alone, whatever the status of the answer. It belongs to one URL and one origin,
//! is shared by all consumers of both, and is kept in memory: another URL and another process ask again.
//! The rules are those of the webhook specification of CloudEvents; what an answer means is in [`said`].

pub(crate) mod fuzzing;
mod said;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use heddle_rt::backoff::{Backoff, Limits};
use heddle_rt::{Chance, OnError};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::courier::Address;
use super::pace::Pace;
use crate::routes::Webhook;
use crate::shared::Shared;
pub(crate) use said::BadRate;
use said::Said;

/// Whether an answer consents; what it lacks if it does not.
pub(super) fn consents(status: u16, headers: &HeaderMap, webhook: &Webhook) -> Result<(), String> {
    match said::read(status, headers, webhook) {
        Said::Yes { .. } => Ok(()),
        Said::No(why) | Said::Nothing(why) => Err(why),
    }
}

pub(super) static REQUEST_ORIGIN: HeaderName = HeaderName::from_static("webhook-request-origin");
static REQUEST_RATE: HeaderName = HeaderName::from_static("webhook-request-rate");
static REQUEST_CALLBACK: HeaderName = HeaderName::from_static("webhook-request-callback");

/// Where a destination may consent later, with a token behind it. Below a folder that no Application's name can be.
pub(crate) const CALLBACK_PATH: &str = "/heddle/v1/webhook-consent/";

/// As many random bytes as nobody guesses.
const TOKEN_BYTES: usize = 16;

/// How long a destination may think about it.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long consent lasts without being renewed.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// When it is asked for again: by request soon, since that costs nobody anything; a callback may need a person.
const RENEWED_AFTER: Duration = Duration::from_secs(3600);
const CALLED_BACK_AFTER: Duration = Duration::from_secs(12 * 3600);
/// What an allowance is about.
const MINUTE: Duration = Duration::from_secs(60);
/// How soon a destination that did not consent is asked again.
const ASKED_AGAIN: Limits = Limits {
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};

/// All consents that somebody needs.
#[derive(Debug, Default)]
pub(crate) struct Consents {
    known: Mutex<HashMap<Key, Weak<Consent>>>,
    /// Where this mesh can be called back, if anywhere.
    base_url: Mutex<Option<String>>,
}

/// What consent is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    url: String,
    ca_certs: Option<String>,
    webhook: Webhook,
}

/// The consent of one destination.
#[derive(Debug)]
pub(crate) struct Consent {
    url: String,
    address: Arc<Address>,
    webhook: Webhook,
    /// What every delivery carries.
    headers: [(HeaderName, HeaderValue); 1],
    granted: AtomicBool,
    state: Mutex<State>,
    /// Rings when there is something to look at, or nobody is left who needs it.
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// What the callback must know. A new one after each use.
    token: String,
    ask_at: Duration,
    /// Until when consent lasts, while there is one.
    until: Option<Duration>,
    /// By callback: then an answer that says nothing takes nothing back.
    called_back: bool,
    pace: Pace,
    /// Why there is none.
    why: String,
}

impl Consents {
    /// Where the listener can be reached from now on.
    pub(crate) fn serve_at(&self, base_url: Option<String>) {
        *self.base_url.lock() = base_url;
    }

    /// The consent of a destination; it is asked for if nobody did so far.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        url: &str,
        ca_certs: Option<&str>,
        address: &Arc<Address>,
        webhook: &Webhook,
    ) -> Arc<Consent> {
        let key = Key {
            url: url.to_owned(),
            ca_certs: ca_certs.map(str::to_owned),
            webhook: webhook.clone(),
        };
        let mut known = shared.consents.known.lock();
        if let Some(consent) = known.get(&key).and_then(Weak::upgrade) {
            return consent;
        }
        known.retain(|_, consent| consent.strong_count() > 0);
        let consent = Arc::new(Consent::new(url, address, webhook, &shared.chance));
        known.insert(key, Arc::downgrade(&consent));
        let seeking = seek(Arc::clone(shared), Arc::downgrade(&consent));
        shared.asking.spawn("consent", OnError::Report, seeking);
        consent
    }

    /// Somebody calls back. Gives whether they know what nobody else does.
    pub(crate) fn called_back(
        shared: &Arc<Shared>,
        token: &str,
        headers: &HeaderMap,
    ) -> Result<bool, BadRate> {
        let rate = said::rate(headers)?.flatten();
        let known: Vec<_> = {
            let known = shared.consents.known.lock();
            known.values().filter_map(Weak::upgrade).collect()
        };
        let Some(consent) = known.into_iter().find(|consent| consent.has_token(token)) else {
            return Ok(false);
        };
        {
            let mut state = consent.state.lock();
            state.token = shared.chance.token(TOKEN_BYTES);
            consent.grant(&mut state, shared.clock.monotonic(), rate, true);
        }
        tracing::info!(url = consent.url, "consent to be sent events, by callback");
        consent.wake.notify_one();
        shared.consent_changed(&consent);
        Ok(true)
    }
}

impl Consent {
    fn new(url: &str, address: &Arc<Address>, webhook: &Webhook, chance: &Chance) -> Self {
        let origin = HeaderValue::from_str(&webhook.origin);
        let origin = origin.expect("a DNS name is a header's value");
        Self {
            url: url.to_owned(),
            address: Arc::clone(address),
            webhook: webhook.clone(),
            headers: [(REQUEST_ORIGIN.clone(), origin)],
            granted: AtomicBool::new(false),
            state: Mutex::new(State {
                token: chance.token(TOKEN_BYTES),
                ask_at: Duration::ZERO,
                until: None,
                called_back: false,
                pace: Pace::default(),
                why: "it was asked and has not answered yet".to_owned(),
            }),
            wake: Arc::default(),
        }
    }

    pub(crate) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    /// Why nothing may be sent, and what would change that.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.is_granted() {
            return None;
        }
        let (url, origin) = (&self.url, &self.webhook.origin);
        let why = &self.state.lock().why;
        Some(format!(
            "{url} has not consented to be sent events: {why}. It must answer OPTIONS with WebHook-Allowed-Origin: {origin} \
             and WebHook-Allowed-Rate (or * for both), or call back; it is asked again by itself. Without the annotation \
             {} nobody is asked",
            heddle_api::well_known::annotation::WEBHOOK_ORIGIN
        ))
    }

    /// Whether the destination allowed only so many.
    pub(crate) fn is_paced(&self) -> bool {
        self.state.lock().pace.is_set()
    }

    /// When the next event may be sent; that time is nobody else's then.
    pub(crate) fn next_turn(&self, now: Duration) -> Duration {
        self.state.lock().pace.next(now)
    }

    fn has_token(&self, token: &str) -> bool {
        self.state.lock().token == token
    }

    fn grant(&self, state: &mut State, now: Duration, rate: Option<u32>, called_back: bool) {
        state.until = Some(now + LASTS);
        state.called_back = called_back;
        let after = if called_back {
            CALLED_BACK_AFTER
        } else {
            RENEWED_AFTER
        };
        state.ask_at = now + after;
        // Rounded up, since a little too late is within the rate and a little too early is not.
        let apart = rate.map(|rate| MINUTE / rate.max(1) + Duration::from_nanos(1));
        state.pace.set(apart);
        self.granted.store(true, Ordering::Release);
    }

    /// Takes in what came of asking. Gives whether anything is different now.
    fn heard(&self, said: Said, now: Duration, backoff: &mut Backoff) -> bool {
        let before = self.is_granted();
        let mut state = self.state.lock();
        match said {
            Said::Yes { rate } => {
                backoff.reset();
                self.grant(&mut state, now, rate, false);
            }
            Said::No(why) => {
                state.ask_at = now + ASKED_AGAIN.min + backoff.failed();
                if !state.called_back {
                    state.until = None;
                    self.granted.store(false, Ordering::Release);
                }
                if state.why != why {
                    tracing::warn!(url = self.url, why, "no consent to be sent events");
                    state.why = why;
                    return true;
                }
            }
            // Nothing was said about what was granted before.
            Said::Nothing(why) => {
                state.ask_at = now + ASKED_AGAIN.min + backoff.failed();
                let new = state.why != why;
                state.why = why;
                return new && !before;
            }
        }
        before != self.is_granted()
    }

    /// Ends a consent that nobody renewed. Gives whether it did, and when to look again.
    fn look(&self, now: Duration) -> (bool, Duration) {
        let mut state = self.state.lock();
        let ended = state.until.is_some_and(|until| until <= now);
        if ended {
            state.until = None;
            state.called_back = false;
            self.granted.store(false, Ordering::Release);
        }
        let next = state
            .until
            .map_or(state.ask_at, |until| until.min(state.ask_at));
        (ended, next)
    }

    fn is_due(&self, now: Duration) -> bool {
        self.state.lock().ask_at <= now
    }

    /// What is asked.
    fn question(&self, base_url: Option<&str>) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = self.headers.to_vec();
        if let Some(rate) = self.webhook.rate {
            headers.push((REQUEST_RATE.clone(), HeaderValue::from(rate)));
        }
        let callback = base_url.map(|base| {
            let token = &self.state.lock().token;
            format!("{}{CALLBACK_PATH}{token}", base.trim_end_matches('/'))
        });
        if let Some(Ok(url)) = callback.map(HeaderValue::try_from) {
            headers.push((REQUEST_CALLBACK.clone(), url));
        }
        headers
    }
}

impl Drop for Consent {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Asks, and asks again, for as long as somebody needs it.
async fn seek(shared: Arc<Shared>, consent: Weak<Consent>) {
    let clock = shared.clock.clone();
    let mut backoff = Backoff::new(ASKED_AGAIN, shared.chance.clone());
    loop {
        let Some(needed) = consent.upgrade() else {
            return;
        };
        if needed.is_due(clock.monotonic()) {
            let base_url = shared.consents.base_url.lock().clone();
            let question = needed.question(base_url.as_deref());
            let asking = shared
                .courier
                .options(&needed.address, &question, ANSWER_TIME);
            let said = match asking.await {
                Ok((status, headers)) => said::read(status, &headers, &needed.webhook),
                Err(error) => Said::Nothing(error),
            };
            if needed.heard(said, clock.monotonic(), &mut backoff) {
                shared.consent_changed(&needed);
            }
        }
        let now = clock.monotonic();
        let (ended, next) = needed.look(now);
        if ended {
            shared.consent_changed(&needed);
        }
        let wake = Arc::clone(&needed.wake);
        drop(needed);
        // Time or a notification, whichever is first.
        clock
            .timeout(next.saturating_sub(now), wake.notified())
            .await
            .ok();
    }
}
