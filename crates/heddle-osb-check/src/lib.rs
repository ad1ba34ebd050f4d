//! Does a broker keep the promises of the Open Service Broker API?
//!
//! A black box is asked everything that a platform may rely on, the parts that no public suite asks included. It knows
//! nothing but an address and credentials: which plans make their platform wait, which can be bound and which rotate, it
//! finds out first (`session.rs`). A promise for which the catalog has no plan does not apply, and is counted as such,
//! never as kept. Instances that are made are removed again.
//!
//! ```text
//!   Settings ──> run ──> explore the catalog ──> rules, one after the other ──> clean up ──> Report ──> junit │ json
//!                              └───────────────────── Transport ─────────────────────┘
//! ```
//!
//! A [`Report`] always has every rule that was asked for. When the broker goes away, the one rule that was being asked is
//! broken and those behind it say why nobody asked them. How bytes reach a broker ([`Transport`]), what a person sees
//! meanwhile and with which code a process ends is left to the caller.

mod report;
mod rules;
mod session;
mod wire;

use std::time::Duration;

use heddle_rt::{Chance, Clock};

pub use self::report::{CheckResult, Outcome, OutcomeCounts, Report};
pub use self::rules::ConformanceRule;
use self::session::CheckSession;
use self::wire::Broker;
pub use self::wire::{Transport, Unreachable};

/// What the promises are from.
pub const SPECIFICATION: &str = "Open Service Broker API 2.17";

/// A broker that stopped answering may be starting anew: so long it is asked whether it is back.
const RETURN_WITHIN: Duration = Duration::from_secs(15);
const RETURN_POLL: Duration = Duration::from_millis(500);

/// Whom to ask as, and for what.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the broker is, for the report. It must not hold credentials.
    pub address: String,
    pub username: String,
    pub password: String,
    /// Only rules whose group is this, or whose promise contains it.
    pub only: Option<String>,
    /// What the broker is set to answer when no version is announced.
    pub missing_version: u16,
    /// Sent as context, for brokers that have namespaces.
    pub namespace: String,
}

/// Asks a broker for every promise. `observe` sees each result as soon as it is there.
pub async fn run(
    settings: &Settings,
    transport: Box<dyn Transport>,
    clock: &Clock,
    chance: &Chance,
    mut observe: impl FnMut(&CheckResult),
) -> Report {
    let (started, begun) = (clock.now(), clock.monotonic());
    let broker = Broker::new(transport, clock.clone(), settings);
    let mut session = CheckSession::new(broker, clock.clone(), chance.clone(), settings);
    let not_started = session.explore().await.err();
    let mut interruption = not_started.as_ref().map(|error| format!("{error:#}"));
    let mut results = Vec::new();
    for rule in rules::all()
        .into_iter()
        .filter(|rule| settings.asks_for(rule))
    {
        let begun = clock.monotonic();
        let outcome = match &interruption {
            Some(why) => Outcome::NotAsked(why.clone()),
            None => match ask(&rule, &session).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    if is_unreachable(&error) && !is_back(&session, clock).await {
                        interruption = Some(format!("the broker went away: {error:#}"));
                    }
                    Outcome::Broken(format!("{error:#}"))
                }
            },
        };
        let result = CheckResult {
            rule,
            outcome,
            elapsed: clock.monotonic().saturating_sub(begun),
        };
        observe(&result);
        results.push(result);
    }
    let leftovers = session.clean_up().await;
    Report {
        address: settings.address.clone(),
        started,
        elapsed: clock.monotonic().saturating_sub(begun),
        results,
        not_started,
        interruption,
        leftovers,
    }
}

impl Settings {
    fn asks_for(&self, rule: &ConformanceRule) -> bool {
        let wanted = self.only.as_deref();
        wanted.is_none_or(|text| rule.group == text || rule.promise.contains(text))
    }
}

/// Fails with what shows that the promise is broken.
async fn ask(rule: &ConformanceRule, session: &CheckSession) -> anyhow::Result<Outcome> {
    if let Some(missing) = session.lacks(rule.needs) {
        return Ok(Outcome::NotApplicable(missing));
    }
    (rule.run)(session).await.map(|()| Outcome::Kept)
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Unreachable>())
}

/// Whether anything answers again, whatever it says: one request that is cut off is a fault of its rule alone.
async fn is_back(session: &CheckSession, clock: &Clock) -> bool {
    let answers = async {
        while let Err(error) = session.broker.call("GET", "/catalog").send().await
            && is_unreachable(&error)
        {
            clock.sleep(RETURN_POLL).await;
        }
    };
    clock.timeout(RETURN_WITHIN, answers).await.is_ok()
}

#[cfg(test)]
mod tests;
