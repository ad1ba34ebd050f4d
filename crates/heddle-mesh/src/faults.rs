//! Breaking a hop on purpose, for tests that must see it found: events of everybody are hurt, heartbeats and users' alike.
//!
//! Compiled in with the feature `fault-injection` only, which no release asks for. Without it every question below is
//! answered no before the program runs.

use std::time::Duration;

#[cfg(feature = "fault-injection")]
use parking_lot::RwLock;

/// What is broken.
#[cfg(feature = "fault-injection")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The door of an Application refuses everything.
    RefuseAtSource { application: String },
    /// The log does not take what an Application sends.
    FailAppend { application: String },
    /// Nothing is matched.
    StallScanner,
    /// The link of a pair carries nothing.
    CutLink(FaultPair),
    /// The Broker of a pair hands nothing on.
    DropAtBroker(FaultPair),
    /// Consumers of the namespace attempt nothing; of those that hear heartbeats only the pair's own.
    HoldDispatch(FaultPair),
    /// Every attempt of a pair fails.
    FailDelivery(FaultPair),
    /// Every attempt of a pair takes longer.
    DelayDelivery(FaultPair, Duration),
}

/// An Application, and the namespace that its events are led into.
#[cfg(feature = "fault-injection")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPair {
    pub application: String,
    pub namespace: String,
}

/// What an attempt suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffers {
    Nothing,
    #[cfg_attr(
        not(feature = "fault-injection"),
        expect(dead_code, reason = "nothing is ever broken without the feature")
    )]
    Failure,
    #[cfg_attr(
        not(feature = "fault-injection"),
        expect(dead_code, reason = "nothing is ever broken without the feature")
    )]
    Delay(Duration),
}

/// Everything that is broken.
#[derive(Debug, Default)]
pub(crate) struct InjectedFaults {
    #[cfg(feature = "fault-injection")]
    all: RwLock<Vec<Fault>>,
}

#[cfg(feature = "fault-injection")]
impl InjectedFaults {
    fn any(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.all.read().iter().any(is)
    }

    /// Whether the door to this entry is shut.
    pub(crate) fn refuses(&self, entry: &str) -> bool {
        self.any(|fault| {
            matches!(fault, Fault::RefuseAtSource { application } if application == application_of(entry))
        })
    }

    pub(crate) fn fails_append(&self, entry: &str) -> bool {
        self.any(|fault| {
            matches!(fault, Fault::FailAppend { application } if application == application_of(entry))
        })
    }

    pub(crate) fn stalls_scanner(&self) -> bool {
        self.any(|fault| *fault == Fault::StallScanner)
    }

    /// Whether an event does not come to a consumer.
    pub(crate) fn drops(&self, entry: &str, consumer: &str) -> bool {
        self.any(|fault| match fault {
            Fault::CutLink(pair) | Fault::DropAtBroker(pair) => {
                pair.is(application_of(entry), namespace_of(consumer))
            }
            _ => false,
        })
    }

    /// Whether it is the link that is broken.
    pub(crate) fn cuts(&self, application: &str, namespace: &str) -> bool {
        self.any(|fault| matches!(fault, Fault::CutLink(pair) if pair.is(application, namespace)))
    }

    pub(crate) fn holds(&self, consumer: &str) -> bool {
        self.any(|fault| match fault {
            Fault::HoldDispatch(pair) => match consumer.strip_prefix("heartbeat/") {
                Some(own) => own.split_once('/') == Some((&*pair.namespace, &*pair.application)),
                None => pair.namespace == namespace_of(consumer),
            },
            _ => false,
        })
    }

    /// What an attempt of a consumer at an event from this entry suffers.
    pub(crate) fn suffers(&self, entry: &str, consumer: &str) -> Suffers {
        let all = self.all.read();
        let here = |pair: &FaultPair| pair.is(application_of(entry), namespace_of(consumer));
        let found = all.iter().find_map(|fault| match fault {
            Fault::FailDelivery(pair) if here(pair) => Some(Suffers::Failure),
            Fault::DelayDelivery(pair, by) if here(pair) => Some(Suffers::Delay(*by)),
            _ => None,
        });
        found.unwrap_or(Suffers::Nothing)
    }
}

#[cfg(feature = "fault-injection")]
impl FaultPair {
    fn is(&self, application: &str, namespace: &str) -> bool {
        self.application == application && self.namespace == namespace
    }
}

#[cfg(feature = "fault-injection")]
fn application_of(entry: &str) -> &str {
    entry.rsplit('/').next().unwrap_or_default()
}

#[cfg(feature = "fault-injection")]
fn namespace_of(consumer: &str) -> &str {
    consumer.split('/').nth(1).unwrap_or_default()
}

#[cfg(feature = "fault-injection")]
impl crate::Mesh {
    /// Breaks something until [`Self::heal`].
    pub fn inject(&self, fault: Fault) {
        self.shared.faults.all.write().push(fault);
    }

    /// Nothing is broken any more.
    pub fn heal(&self) {
        self.shared.faults.all.write().clear();
        for consumer in self.shared.all_consumers() {
            let mut state = consumer.lock();
            consumer.wake(&self.shared, &mut state);
        }
    }
}

#[cfg(not(feature = "fault-injection"))]
#[expect(
    clippy::unused_self,
    reason = "with the feature there is something to look at"
)]
impl InjectedFaults {
    pub(crate) const fn refuses(&self, _: &str) -> bool {
        false
    }

    pub(crate) const fn fails_append(&self, _: &str) -> bool {
        false
    }

    pub(crate) const fn stalls_scanner(&self) -> bool {
        false
    }

    pub(crate) const fn drops(&self, _: &str, _: &str) -> bool {
        false
    }

    pub(crate) const fn cuts(&self, _: &str, _: &str) -> bool {
        false
    }

    pub(crate) const fn holds(&self, _: &str) -> bool {
        false
    }

    pub(crate) const fn suffers(&self, _: &str, _: &str) -> Suffers {
        Suffers::Nothing
    }
}
