//! What names an object, and what orders its changes.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

/// The place of a change in the one order of all changes. Never reused, never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(u64);

impl ResourceVersion {
    /// Before every change.
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ResourceVersion {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// The name of an object. Ordered by resource, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Plural and group, `triggers.eventing.knative.dev`; the plural alone for the core group.
    pub resource: Arc<str>,
    /// Empty for objects of the cluster.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    #[must_use]
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{}/{}", self.resource, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.resource, self.name),
        }
    }
}
