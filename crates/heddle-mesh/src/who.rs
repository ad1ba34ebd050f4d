//! Who publishes, and whether they may.
//!
//! Whoever stands at the door has proved who they are, or nobody asked; that is left to the door. What an identity may
//! do follows from the table in force alone: an application publishes to its own channel, and elsewhere to what an
//! EventPolicy there grants; an administrator publishes everywhere. What nobody granted is refused.

use heddle_api::attributes::Attributes;
use heddle_api::event_policy::application_subject;
use heddle_api::well_known::INTEGRATION_NAMESPACE;

use crate::routes::Table;

/// Somebody at the door.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// Nobody asked, because the door is open to all who can reach it.
    Anonymous,
    Administrator,
    /// The Application of this name.
    Application(Box<str>),
    /// The mesh itself, with a heartbeat. A door lets in as this who shows what only this process knows.
    Prober,
    /// The mesh itself, with a heartbeat that came in by the public listener; it may publish nothing else and nowhere else.
    EdgeProber,
}

/// Why somebody may not publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No policy names them for this entry.
    NotGranted,
    /// Policies do, and the filters of none of them let this event pass.
    Filtered,
}

impl Who {
    /// What an EventPolicy calls it in `spec.from[].sub`; `None` for those whom no policy is about.
    #[must_use]
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::Application(name) => Some(application_subject(name)),
            Self::Anonymous | Self::Administrator | Self::Prober | Self::EdgeProber => None,
        }
    }

    /// Whether it is the mesh that measures itself.
    #[must_use]
    pub fn is_prober(&self) -> bool {
        matches!(self, Self::Prober | Self::EdgeProber)
    }

    fn owns(&self, entry: &str) -> bool {
        let Self::Application(application) = self else {
            return false;
        };
        let channel = entry.strip_prefix("channel/");
        let name =
            channel.and_then(|rest| rest.strip_prefix(INTEGRATION_NAMESPACE)?.strip_prefix('/'));
        name == Some(application)
    }
}

/// Whether somebody may publish anything at all at an entry, whether it exists or not.
pub fn may_enter(who: &Who, table: &Table, entry: &str) -> Result<(), Denied> {
    decide(who, table, entry, None)
}

/// Whether somebody may publish this event at an entry.
pub fn may(who: &Who, table: &Table, entry: &str, event: &dyn Attributes) -> Result<(), Denied> {
    decide(who, table, entry, Some(event))
}

fn decide(
    who: &Who,
    table: &Table,
    entry: &str,
    event: Option<&dyn Attributes>,
) -> Result<(), Denied> {
    let Some(subject) = who.subject().filter(|_| !who.owns(entry)) else {
        return Ok(());
    };
    let mut granted = table
        .grants(entry)
        .iter()
        .filter(|grant| grant.names(&subject))
        .peekable();
    if granted.peek().is_none() {
        return Err(Denied::NotGranted);
    }
    match event {
        Some(event) if !granted.any(|grant| grant.predicate.matches(event)) => {
            Err(Denied::Filtered)
        }
        _ => Ok(()),
    }
}
