//! Who may use which id and name.
//!
//! ```text
//!   every Application  ──>  claims on ids    ──>  the oldest keeps the id
//!                      ──>  claims on names  ──>  the oldest of those that keep their id, and are sound, keeps the name
//! ```
//! Older means created earlier, and by name where that is equal; within one Application it means listed earlier. A service keeps
//! its id even while it is unsound or its Application is being deleted: an id that changes hands for a moment would lead
//! instances to somebody else's service. A name is not worth that much, so what cannot be offered does not hold one.
//!
//! Where an Application is the offering, the same holds for its own id and name, and names of services matter only within it.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{Mode, fault, name, offering_id};
use crate::application::{Application, RejectedService, reason};
use crate::conditions::Reason;

/// What the Applications claim. Fed with one Application at a time, it knows which others a change concerns.
#[derive(Clone, Debug, Default)]
pub struct Register {
    mode: Mode,
    applications: HashMap<String, Claims>,
    holders: HashMap<Claim, BTreeSet<Holder>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Claim {
    OfferingId(String),
    OfferingName(String),
    ServiceId(String),
    ServiceName(String),
}

/// Everything that one Application claims.
type Claims = BTreeSet<(Claim, Holder)>;

/// Who claims something, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    since: Timestamp,
    application: String,
    position: usize,
    /// Id of the service, or of the offering where the Application itself is one.
    id: String,
    /// The name that goes with it, unless it can hold none.
    name: Option<String>,
}

impl Holder {
    fn new(application: &Application) -> Self {
        let created = application.metadata.creation_timestamp.as_ref();
        Self {
            // Only what no server has seen yet has no time: it is younger than everything.
            since: created.map_or(Timestamp::MAX, |time| time.0),
            application: application.name_any(),
            position: 0,
            id: String::new(),
            name: None,
        }
    }

    fn is_senior_to(&self, other: &Self) -> bool {
        (self.since, &self.application) < (other.since, &other.application)
    }
}

/// What becomes of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// It can be offered.
    Offered,
    /// It cannot be offered, but its id still means it.
    Withheld,
    /// Its id means somebody else's service.
    Displaced,
}

/// Why a service is not offered.
type NotOffered = Option<(Reason, String)>;

impl Register {
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }

    /// A register of these Applications.
    pub fn of<'a>(mode: Mode, applications: impl IntoIterator<Item = &'a Application>) -> Self {
        let mut register = Self::new(mode);
        for application in applications {
            register.enter(application.name_any(), claims(application, mode));
        }
        register
    }

    /// Takes in an Application as it is now, and returns the names of others that may have to be judged anew.
    pub fn put(&mut self, application: &Application) -> BTreeSet<String> {
        self.replace(application.name_any(), claims(application, self.mode))
    }

    /// Forgets an Application, and returns the names of others that may have to be judged anew.
    pub fn remove(&mut self, application: &str) -> BTreeSet<String> {
        self.replace(application.to_owned(), Claims::new())
    }

    /// The services of an Application that cannot be offered, each with the reason. The Application is taken as it is
    /// given; what others claim is taken from the register.
    pub fn rejected(&self, application: &Application) -> Vec<RejectedService> {
        let services = application.spec.services.iter();
        services
            .zip(self.verdicts(application))
            .filter_map(|(service, verdict)| {
                let (reason, message) = verdict?;
                Some(RejectedService {
                    id: service.id.clone(),
                    reason: reason.name.to_owned(),
                    message,
                })
            })
            .collect()
    }

    /// For each service of an Application, in order, what becomes of it.
    pub fn standings(&self, application: &Application) -> Vec<OfferState> {
        let me = Holder::new(application);
        let displaced = self.mode == Mode::PerApplication
            && self
                .judge_offering(application, &me)
                .is_some_and(|(reason, _)| reason == reason::ID_TAKEN);
        let mut ids = BTreeSet::new();
        let services = application.spec.services.iter();
        services
            .zip(self.verdicts(application))
            .map(|(service, verdict)| {
                let repeated = !ids.insert(service.id.as_str());
                if verdict.is_none() {
                    OfferState::Offered
                } else if displaced || repeated || self.judge_id(&service.id, &me).is_some() {
                    OfferState::Displaced
                } else {
                    OfferState::Withheld
                }
            })
            .collect()
    }

    fn verdicts(&self, application: &Application) -> Vec<NotOffered> {
        let me = Holder::new(application);
        let of_all = match self.mode {
            Mode::PerService => None,
            Mode::PerApplication => self.judge_offering(application, &me),
        };
        // What services further up the list have taken.
        let (mut ids, mut names) = (BTreeSet::new(), HashMap::new());
        let services = application.spec.services.iter();
        services
            .map(|service| {
                if let Some(fault) = fault(service, self.mode) {
                    ids.insert(service.id.as_str());
                    return Some((reason::SERVICE_INVALID, fault));
                }
                if !ids.insert(service.id.as_str()) {
                    let message = "an earlier service of this Application has the same id";
                    return Some((reason::ID_TAKEN, message.to_owned()));
                }
                if let Some(verdict) = self.judge_id(&service.id, &me) {
                    return Some(verdict);
                }
                let name = name(&service.name);
                if let Some(earlier) = names.get(&name) {
                    let message = format!(
                        "service {earlier} of this Application is offered under the name {name} already: rename one of the two"
                    );
                    return Some((reason::NAME_TAKEN, message));
                }
                if self.mode == Mode::PerService
                    && let Some(verdict) = self.judge_name(&name, &me)
                {
                    return Some(verdict);
                }
                names.insert(name, service.id.as_str());
                of_all.clone()
            })
            .collect()
    }

    fn judge_id(&self, id: &str, me: &Holder) -> NotOffered {
        let other = self.senior(&Claim::ServiceId(id.to_owned()), me).next()?;
        let message = format!(
            "Application {}, which is older, has a service of the same id: give this one an id of its own",
            other.application
        );
        Some((reason::ID_TAKEN, message))
    }

    fn judge_name(&self, name: &str, me: &Holder) -> NotOffered {
        let claim = Claim::ServiceName(name.to_owned());
        let other = self
            .senior(&claim, me)
            .find(|other| self.keeps(&Claim::ServiceId(other.id.clone()), other))?;
        let message = format!(
            "service {} of Application {}, which is older, is offered under the name {name}: rename this one",
            other.id, other.application
        );
        Some((reason::NAME_TAKEN, message))
    }

    /// The same for an Application that is the offering: its services share its fate.
    fn judge_offering(&self, application: &Application, me: &Holder) -> NotOffered {
        let id = offering_id(application);
        if let Some(other) = self.senior(&Claim::OfferingId(id.clone()), me).next() {
            let message = format!(
                "Application {}, which is older, is the offering with the id {id}: give this one a compassMetadata.applicationId of its own",
                other.application
            );
            return Some((reason::ID_TAKEN, message));
        }
        let name = name(&me.application);
        let claim = Claim::OfferingName(name.clone());
        let other = self
            .senior(&claim, me)
            .find(|other| self.keeps(&Claim::OfferingId(other.id.clone()), other))?;
        let message = format!(
            "Application {}, which is older, is offered under the name {name}: rename this one",
            other.application
        );
        Some((reason::NAME_TAKEN, message))
    }

    /// Other Applications' claims that come before mine, oldest first.
    fn senior<'a>(&'a self, claim: &Claim, me: &'a Holder) -> impl Iterator<Item = &'a Holder> {
        let holders = self.holders.get(claim);
        holders
            .into_iter()
            .flatten()
            .take_while(|holder| holder.is_senior_to(me))
            // An Application that was made again is not its own predecessor's rival.
            .filter(|holder| holder.application != me.application)
    }

    fn keeps(&self, claim: &Claim, holder: &Holder) -> bool {
        let first = self.holders.get(claim).and_then(BTreeSet::first);
        first.is_some_and(|first| first.application == holder.application)
    }

    fn replace(&mut self, application: String, new: Claims) -> BTreeSet<String> {
        let old = self.applications.remove(&application).unwrap_or_default();
        for (claim, holder) in old.difference(&new) {
            if let Some(holders) = self.holders.get_mut(claim) {
                holders.remove(holder);
                if holders.is_empty() {
                    self.holders.remove(claim);
                }
            }
        }
        let moved: BTreeSet<Claim> = old
            .symmetric_difference(&new)
            .map(|(claim, _)| claim.clone())
            .collect();
        self.enter(application.clone(), new);
        let mut concerned = self.concerned(&moved);
        concerned.remove(&application);
        concerned
    }

    fn enter(&mut self, application: String, claims: Claims) {
        for (claim, holder) in &claims {
            let holders = self.holders.entry(claim.clone()).or_default();
            holders.insert(holder.clone());
        }
        if !claims.is_empty() {
            self.applications.insert(application, claims);
        }
    }

    /// Everybody whose verdict hangs on one of these claims: whoever makes it too, and, because only who keeps an id can
    /// hold a name, whoever wants the name of somebody whose id is in question.
    fn concerned(&self, claims: &BTreeSet<Claim>) -> BTreeSet<String> {
        let mut concerned = BTreeSet::new();
        for claim in claims {
            for holder in self.holders.get(claim).into_iter().flatten() {
                concerned.insert(holder.application.clone());
                let name = match (claim, holder.name.clone()) {
                    (Claim::ServiceId(_), Some(name)) => Claim::ServiceName(name),
                    (Claim::OfferingId(_), Some(name)) => Claim::OfferingName(name),
                    _ => continue,
                };
                let rivals = self.holders.get(&name).into_iter().flatten();
                concerned.extend(rivals.map(|rival| rival.application.clone()));
            }
        }
        concerned
    }
}

fn claims(application: &Application, mode: Mode) -> Claims {
    let me = Holder::new(application);
    let mut claims = Claims::new();
    if mode == Mode::PerApplication {
        let (id, name) = (offering_id(application), name(&me.application));
        let holder = Holder {
            id: id.clone(),
            name: Some(name.clone()),
            ..me.clone()
        };
        claims.insert((Claim::OfferingName(name), holder.clone()));
        claims.insert((Claim::OfferingId(id), holder));
    }
    for (position, service) in application.spec.services.iter().enumerate() {
        let sound = mode == Mode::PerService && fault(service, mode).is_none();
        let holder = Holder {
            position,
            id: service.id.clone(),
            name: sound.then(|| name(&service.name)),
            ..me.clone()
        };
        if let Some(name) = holder.name.clone() {
            claims.insert((Claim::ServiceName(name), holder.clone()));
        }
        claims.insert((Claim::ServiceId(service.id.clone()), holder));
    }
    claims
}
