//! The mesh from its door to its subscribers, with restarts and crashes in between.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod accounting;
mod bad_replies;
mod clocks;
mod closing;
mod consent;
mod damage;
mod damaged;
mod dead_letters;
mod delays;
mod delivery;
mod door;
mod draining;
mod forecasts;
#[cfg(feature = "fault-injection")]
mod heartbeat_faults;
mod heartbeats;
mod ledger;
mod legacy;
mod mask;
mod namespaces;
mod newer;
mod observer;
mod order;
mod own_door;
mod pairs;
mod pause;
mod quota;
mod rate;
mod refused;
mod removed;
mod replies;
mod republish;
mod resend;
mod room;
mod schedule;
mod search;
mod shortened;
mod signing;
mod silence;
mod skipped;
mod subscriber_probes;
mod tables;
mod tried;
mod unavailable;
mod what_if;
mod world;
