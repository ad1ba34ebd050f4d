//! Where a consumer's events go and how hard to try, ready to use.
//!
//! Made once when a table comes into force, so that an attempt parses nothing.

use std::sync::Arc;

use heddle_api::duck::DeliveryFormat;
use heddle_api::pause::DeliveryPause;
use heddle_api::rate::DeliveryRate;

use super::consent::{Consent, Consents};
use super::courier::Address;
use super::retry_policy::RetryPolicy;
use super::signing::Signer;
use super::subscriber_probe::{ProbedDestination, SubscriberProbe, SubscriberProbes};
use crate::routes;
use crate::shared::Shared;

/// Attempts of one consumer that may be under way at once, unless it says otherwise.
const WINDOW: u32 = 64;

/// Why nothing is sent to a subscriber that nobody can ask.
const UNREADABLE: &str = "its subscriber is to be asked for its consent, and the annotation that says in whose name cannot be understood";

/// A place events are sent to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// None was asked for.
    None,
    /// It has no address yet, or one that cannot be used.
    Unresolved(String),
    Url(Arc<Address>),
    /// A broker or channel of this mesh: appended without leaving the process.
    Entry(Arc<str>),
}

/// How a consumer's events are delivered.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryPlan {
    pub(crate) target: Target,
    /// The target, for people.
    pub(crate) destination: Option<String>,
    pub(crate) reply: Target,
    pub(crate) sink: Target,
    /// The target's, when it is asked before anything is sent to it. Replies and dead letters are not what it is about.
    pub(crate) consent: Option<Arc<Consent>>,
    /// What signs what is sent to the target. Replies and dead letters are not what it is about.
    pub(crate) signer: Option<Arc<Signer>>,
    /// Why nothing is sent: it is to be signed, and cannot be.
    pub(crate) unsigned: Option<String>,
    /// The target's, when it is to be tried between events.
    pub(crate) probe: Option<Arc<SubscriberProbe>>,
    /// Nothing is sent for now.
    pub(crate) pause: Option<DeliveryPause>,
    /// No more than so many are sent. The turns are the consumer's to keep: another plan does not begin them anew.
    pub(crate) rate: Option<DeliveryRate>,
    pub(crate) policy: RetryPolicy,
    pub(crate) format: Option<DeliveryFormat>,
    pub(crate) window: u32,
    pub(crate) ordered: bool,
    /// How often a dead letter is sent on its way again by itself.
    pub(crate) auto_redrive: u32,
    /// What it sends are heartbeats.
    pub(crate) of_heartbeats: bool,
}

impl DeliveryPlan {
    /// For a consumer of which only the name is known.
    pub(crate) fn nowhere() -> Self {
        Self {
            target: Target::Unresolved("it is not routed".to_owned()),
            destination: None,
            reply: Target::None,
            sink: Target::None,
            consent: None,
            signer: None,
            unsigned: None,
            probe: None,
            pause: None,
            rate: None,
            policy: RetryPolicy::default(),
            format: None,
            window: WINDOW,
            ordered: false,
            auto_redrive: 0,
            of_heartbeats: false,
        }
    }

    /// The plan of a consumer. A pause that was over once is not begun again by a clock that was set back.
    pub(crate) fn new(
        spec: &routes::ConsumerSpec,
        shared: &Arc<Shared>,
        over: Option<&DeliveryPause>,
    ) -> Self {
        let pause = spec.settings.pause.as_ref();
        let pause =
            pause.filter(|pause| over != Some(*pause) && pause.holds_at(shared.clock.now()));
        let url = |url: &str, ca: Option<&str>| match shared.courier.address(url, ca) {
            Ok(address) => Target::Url(address),
            Err(error) => Target::Unresolved(error.to_string()),
        };
        let target = |target: &routes::Target, ca: Option<&str>| match target {
            routes::Target::Unresolved => {
                Target::Unresolved("the subscriber has no address yet".to_owned())
            }
            routes::Target::Url(text) => url(text, ca),
            routes::Target::Entry(entry) => Target::Entry(Arc::clone(entry)),
            routes::Target::HeartbeatSink => match shared.heartbeats.address_of(&spec.key) {
                Some(address) => url(&address, None),
                None => Target::Unresolved("this mesh has nowhere for heartbeats".to_owned()),
            },
        };
        let reply = match &spec.reply {
            routes::Reply::None => Target::None,
            routes::Reply::Unresolved => {
                Target::Unresolved("the destination of replies has no address yet".to_owned())
            }
            routes::Reply::Entry(entry) => Target::Entry(Arc::clone(entry)),
            routes::Reply::Url(text) => url(text, None),
        };
        let sink = spec.dead_letter_sink.as_ref();
        let ca_certs = spec.ca_certs.as_deref();
        let mut goal = target(&spec.destination, ca_certs);
        let (mut consent, mut probe) = (None, None);
        let (mut signer, mut unsigned) = (None, None);
        if matches!(goal, Target::Url(_)) {
            match &spec.signing {
                routes::Signing::Unwanted => {}
                routes::Signing::With(keys) => signer = Some(Arc::clone(keys)),
                routes::Signing::Impossible(why) => {
                    unsigned = Some(why.clone());
                    goal = Target::Unresolved(why.clone());
                }
            }
        }
        if let (Target::Url(address), routes::Target::Url(url)) = (&goal, &spec.destination) {
            match &spec.settings.consent {
                routes::Consent::NotAsked => {}
                routes::Consent::Asked(webhook) => {
                    consent = Some(Consents::of(shared, url, ca_certs, address, webhook));
                }
                routes::Consent::Unreadable => goal = Target::Unresolved(UNREADABLE.to_owned()),
            }
        }
        if let (Target::Url(address), routes::Target::Url(url)) = (&goal, &spec.destination)
            // Whoever wants nothing sent for now wants nothing tried.
            && let Some(kind) = spec.settings.subscriber_probe.filter(|_| pause.is_none())
        {
            let to = ProbedDestination {
                url,
                ca_certs,
                address,
                webhook: spec.settings.consent.webhook(),
                consent: consent.as_ref(),
                signer: signer.as_ref(),
            };
            probe = Some(SubscriberProbes::of(shared, to, kind));
        }
        Self {
            target: goal,
            consent,
            signer,
            unsigned,
            probe,
            destination: match &spec.destination {
                routes::Target::Unresolved => None,
                routes::Target::Url(url) => Some(url.clone()),
                routes::Target::Entry(entry) => Some(entry.to_string()),
                // Its address is a secret.
                routes::Target::HeartbeatSink => Some("heddle itself".to_owned()),
            },
            reply,
            sink: sink.map_or(Target::None, |sink| {
                target(sink, spec.dead_letter_ca_certs.as_deref())
            }),
            pause: pause.cloned(),
            rate: spec.settings.rate,
            // What cannot be read is reported by the table; the defaults harm nobody.
            policy: RetryPolicy::from_spec(&spec.delivery).unwrap_or_default(),
            format: spec.delivery.format,
            window: spec.settings.in_flight_max.unwrap_or(WINDOW),
            ordered: spec.settings.ordered,
            auto_redrive: spec.settings.auto_redrive.unwrap_or(0),
            of_heartbeats: spec.is_of_heartbeats(),
        }
    }

    pub(crate) fn has_target(&self) -> bool {
        matches!(self.target, Target::Url(_) | Target::Entry(_))
    }

    /// Whether its subscriber did not forbid it, nor leaves us waiting for an answer.
    pub(crate) fn has_consent(&self) -> bool {
        self.consent
            .as_ref()
            .is_none_or(|consent| consent.is_granted())
    }

    /// Why nothing is sent before the subscriber has consented, if it has not.
    pub(crate) fn unconsented(&self) -> Option<String> {
        match &self.target {
            Target::Unresolved(reason) if reason == UNREADABLE => Some(reason.clone()),
            _ => self.consent.as_ref()?.missing(),
        }
    }

    pub(crate) fn has_sink(&self) -> bool {
        matches!(self.sink, Target::Url(_) | Target::Entry(_))
    }
}
