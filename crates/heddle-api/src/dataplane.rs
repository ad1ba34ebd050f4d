//! What the control plane and the mesh say to each other: resources one way, what the table in force makes of them the other.
//!
//! Plain data and nothing else. The controllers have the port ([`Resources`] are handed over, the rest is asked for), the
//! mesh answers in the same types, and neither knows the other.

use std::sync::Arc;

use crate::{Application, Broker, Channel, EventPolicy, HTTPSource, Subscription, Trigger};

/// Everything that a routing table is compiled from.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pub applications: Vec<Arc<Application>>,
    pub http_sources: Vec<Arc<HTTPSource>>,
    pub channels: Vec<Arc<Channel>>,
    pub subscriptions: Vec<Arc<Subscription>>,
    /// Those that are served here, whatever their class says.
    pub brokers: Vec<Arc<Broker>>,
    pub triggers: Vec<Arc<Trigger>>,
    pub policies: Vec<Arc<EventPolicy>>,
}

impl Resources {
    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.applications.len()
            + self.http_sources.len()
            + self.channels.len()
            + self.subscriptions.len()
            + self.brokers.len()
            + self.triggers.len()
            + self.policies.len()
    }
}

/// What the table in force says about a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RoutedConsumer {
    /// Uid of the object that was compiled.
    pub uid: String,
    /// Its generation then.
    pub generation: i64,
    /// Why nothing is sent at the moment, or not everything.
    pub held: Option<Held>,
    /// Why events end without being delivered, while its backlog is larger than its quota.
    pub over_quota: Option<String>,
    /// Replies of its subscriber could not go on and rest, if so.
    pub bad_replies: Option<String>,
    /// Settings that could not be understood; defaults are used for them.
    pub faults: Vec<String>,
}

/// Why a consumer's events wait, whatever its subscriber does with those that are sent. They are kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Held {
    /// It goes on by itself, or when somebody lets it: there is no room for what comes of events, or it cannot be written
    /// down.
    Waiting(String),
    /// The subscriber said that it is gone for good.
    Gone(String),
    /// The subscriber is asked before anything is sent to it, and has not consented.
    Unconsented(String),
}

/// How events end that will not be delivered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// They rest where they can be found and sent on their way again.
    DeadLetter,
    /// They are removed, in the name of whoever asked.
    Discard,
}

/// How many events were ended, counted per consumer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenUp {
    pub dead_lettered: u64,
    pub discarded: u64,
}

impl GivenUp {
    /// So many events, all ended in the same way.
    pub fn of(fate: Fate, count: u64) -> Self {
        match fate {
            Fate::DeadLetter => Self {
                dead_lettered: count,
                discarded: 0,
            },
            Fate::Discard => Self {
                dead_lettered: 0,
                discarded: count,
            },
        }
    }
}
