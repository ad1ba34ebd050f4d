//! What others see of an object: whether it is there to stay, whether it is ready, and where it is reached.

use heddle_api::conditions::{Conditions, READY, Status};
use heddle_api::duck::Addressable;
use heddle_api::{Application, Broker, Channel, HTTPSource, Subscription, Trigger};
use kube::{Resource, ResourceExt as _};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub uid: Option<String>,
    pub generation: Option<i64>,
    /// It is on its way out.
    pub leaving: bool,
    pub ready: Readiness,
    pub address: Option<Addressable>,
    pub dead_letter_sink_uri: Option<String>,
}

/// `Ready`, as far as it speaks of the object as it is now written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub status: Status,
    /// Why it is not ready, for people; empty when it is.
    pub why: String,
}

impl Readiness {
    pub(crate) fn is_true(&self) -> bool {
        self.status == Status::True
    }

    /// From conditions that describe the generation `observed` of an object that is at `generation`.
    pub(crate) fn new(
        conditions: &Conditions,
        observed: Option<i64>,
        generation: Option<i64>,
    ) -> Self {
        let unknown = |why: &str| Self {
            status: Status::Unknown,
            why: why.to_owned(),
        };
        let Some(ready) = conditions.find(READY) else {
            return unknown("it has no conditions yet");
        };
        if observed != generation {
            return unknown("its conditions describe an earlier generation");
        }
        let why = match ready.status {
            Status::True => String::new(),
            _ => [&ready.reason, &ready.message]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(": "),
        };
        Self {
            status: ready.status,
            why,
        }
    }
}

/// A kind that others may refer to.
pub(crate) trait Seen: Resource<DynamicType = ()> {
    fn outlook(&self) -> Outlook;
}

/// The status of all these kinds has conditions and the generation they describe; what else is seen differs.
macro_rules! seen {
    ($kind:ty, $address:expr, $sink:expr) => {
        impl Seen for $kind {
            fn outlook(&self) -> Outlook {
                let generation = self.meta().generation;
                let status = self.status.as_ref();
                let ready = status.map_or_else(
                    || Readiness::new(&Conditions::default(), None, generation),
                    |status| {
                        Readiness::new(&status.conditions, status.observed_generation, generation)
                    },
                );
                Outlook {
                    uid: self.uid(),
                    generation,
                    leaving: self.meta().deletion_timestamp.is_some(),
                    ready,
                    address: status.and_then($address),
                    dead_letter_sink_uri: status.and_then($sink),
                }
            }
        }
    };
}

seen!(Application, |_| None, |_| None);
seen!(HTTPSource, |_| None, |_| None);
seen!(Subscription, |_| None, |_| None);
seen!(Trigger, |_| None, |_| None);
seen!(Channel, |status| status.address.clone(), |status| status
    .dead_letter_sink_uri
    .clone());
seen!(Broker, |status| status.address.clone(), |status| status
    .dead_letter_sink_uri
    .clone());
