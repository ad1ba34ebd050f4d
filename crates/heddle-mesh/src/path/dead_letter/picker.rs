//! Which dead letters a selection means, worked out once, and the keys of their groups.

use std::collections::BTreeSet;

use heddle_api::ledger::DeadLetterSelection;

use crate::event;
use crate::journal::positions::{DeadLetterEntry, short};
use crate::metrics;

/// A selection, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    selection: DeadLetterSelection,
    names: BTreeSet<u64>,
    group: Option<GroupKey>,
    up_to: u64,
    /// Those of other namespaces are not there, for whoever asks.
    within: Option<BTreeSet<String>>,
    /// Whether anything is meant at all.
    something: bool,
}

impl Picker {
    pub(crate) fn new(selection: &DeadLetterSelection, within: Option<&BTreeSet<String>>) -> Self {
        let something = selection.all
            || !selection.names.is_empty()
            || selection.consumer.is_some()
            || selection.namespace.is_some()
            || selection.type_.is_some()
            || selection.source.is_some()
            || selection.id.is_some()
            || selection.application.is_some()
            || selection.group.is_some();
        let names = selection.names.iter().filter_map(|name| name.parse().ok());
        let group = selection.group.as_deref();
        // A name that never was ends before all of them.
        let up_to = selection.up_to.as_ref();
        Self {
            names: names.collect(),
            group: group.map(GroupKey::read),
            up_to: up_to.map_or(u64::MAX, |name| name.parse().unwrap_or(0)),
            within: within.cloned(),
            something,
            selection: DeadLetterSelection {
                // Texts of a dead letter are kept short.
                type_: selection.type_.as_deref().map(short),
                source: selection.source.as_deref().map(short),
                id: selection.id.as_deref().map(short),
                names: Vec::new(),
                all: !selection.names.is_empty(),
                ..selection.clone()
            },
        }
    }

    /// The last that is meant, as far as somebody said so.
    pub(crate) fn up_to(&self) -> u64 {
        self.up_to
    }

    /// The namespaces outside of which none is meant.
    pub(crate) fn within(&self) -> Option<&BTreeSet<String>> {
        self.within.as_ref()
    }

    /// Whether any letter of the consumer with this key can be meant.
    pub(crate) fn may_mean(&self, key: &str) -> bool {
        let namespace = namespace_of(key);
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let in_group = match &self.group {
            Some(GroupKey::Cause(cause)) => cause.consumer == key,
            Some(GroupKey::Unknown) => false,
            Some(GroupKey::Type(_) | GroupKey::Application(_)) | None => true,
        };
        self.something
            && in_group
            && same(&self.selection.consumer, key)
            && same(&self.selection.namespace, namespace)
            && (self.within.as_ref()).is_none_or(|within| within.contains(namespace))
    }

    /// Whether this one is meant, of the consumer with this key.
    pub(crate) fn picks(&self, name: u64, rest: &DeadLetterEntry, key: &str) -> bool {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        // Here it says whether names are given.
        let named = self.selection.all;
        let namespace = namespace_of(key);
        self.something
            && name <= self.up_to
            && (!named || self.names.contains(&name))
            && same(&self.selection.consumer, key)
            && same(&self.selection.namespace, namespace)
            && same(&self.selection.type_, &rest.type_)
            && same(&self.selection.source, &rest.source)
            && same(&self.selection.id, &rest.id)
            && same(
                &self.selection.application,
                metrics::application(&rest.entry),
            )
            && (self.within.as_ref()).is_none_or(|within| within.contains(namespace))
            && (self.group.as_ref()).is_none_or(|group| group.contains(rest, key))
    }
}

/// The namespace of a consumer.
pub(crate) fn namespace_of(key: &str) -> &str {
    key.split('/').nth(1).unwrap_or_default()
}

/// What dead letters are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupBy {
    Cause,
    Type,
    Application,
}

impl GroupBy {
    pub(crate) fn read(word: &str) -> Option<Self> {
        match word {
            "cause" => Some(Self::Cause),
            "type" => Some(Self::Type),
            "application" => Some(Self::Application),
            _ => None,
        }
    }

    /// The key of the group that one belongs to.
    pub(crate) fn key(self, rest: &DeadLetterEntry, consumer: &str) -> String {
        match self {
            Self::Cause => cause_key(consumer, cause_of(rest)),
            Self::Type => format!("type:{}", rest.type_),
            Self::Application => format!("application:{}", metrics::application(&rest.entry)),
        }
    }
}

/// A group by cause, as its key names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CauseKey {
    pub(crate) consumer: String,
    pub(crate) cause: u64,
}

impl CauseKey {
    pub(crate) fn read(key: &str) -> Option<Self> {
        match GroupKey::read(key) {
            GroupKey::Cause(cause) => Some(cause),
            GroupKey::Type(_) | GroupKey::Application(_) | GroupKey::Unknown => None,
        }
    }

    /// The key, as groups are told with it.
    pub(crate) fn key(&self) -> String {
        cause_key(&self.consumer, self.cause)
    }
}

fn cause_key(consumer: &str, cause: u64) -> String {
    format!("cause:{consumer}:{cause:016x}")
}

/// A group, as its key names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GroupKey {
    Cause(CauseKey),
    Type(String),
    Application(String),
    /// Nothing is in it.
    Unknown,
}

impl GroupKey {
    fn read(key: &str) -> Self {
        match key.split_once(':') {
            Some(("type", type_)) => Self::Type(type_.to_owned()),
            Some(("application", name)) => Self::Application(name.to_owned()),
            Some(("cause", rest)) => match rest.rsplit_once(':') {
                Some((consumer, cause)) => match u64::from_str_radix(cause, 16) {
                    Ok(cause) => Self::Cause(CauseKey {
                        consumer: consumer.to_owned(),
                        cause,
                    }),
                    Err(_) => Self::Unknown,
                },
                None => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    fn contains(&self, rest: &DeadLetterEntry, key: &str) -> bool {
        match self {
            Self::Cause(CauseKey { consumer, cause }) => {
                consumer == key && *cause == cause_of(rest)
            }
            Self::Type(type_) => *type_ == rest.type_,
            Self::Application(name) => name == metrics::application(&rest.entry),
            Self::Unknown => false,
        }
    }
}

/// The cause as a number. Two causes of one consumer have the same only if its subscriber takes pains.
pub(crate) fn cause_of(rest: &DeadLetterEntry) -> u64 {
    let reply = rest.reply.map_or("", |fault| fault.label());
    let kind = format!("{} {} {reply}", rest.class.word(), rest.status);
    event::key_of(&kind, &rest.cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_nobody_gave_out_is_that_of_no_group() {
        for key in ["", "cause", "cause:x", "cause:trigger/a/b:zz", "what:ever"] {
            assert_eq!(GroupKey::read(key), GroupKey::Unknown, "{key}");
        }
        let key = "cause:trigger/a/b:00000000000000ff";
        let expected = CauseKey {
            consumer: "trigger/a/b".to_owned(),
            cause: 255,
        };
        assert_eq!(expected.key(), key);
        assert_eq!(GroupKey::read(key), GroupKey::Cause(expected));
    }
}
