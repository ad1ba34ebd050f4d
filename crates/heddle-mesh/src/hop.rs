//! The names of the hops. Traces, metrics and conditions all use these words.

/// From a publisher elsewhere to the listener: names, certificates, whatever stands in between.
pub const EDGE: &str = "edge";
/// Accept an event over HTTP.
pub const SOURCE: &str = "source";
/// Append it to the log.
pub const CHANNEL: &str = "channel";
/// From a channel to a broker, or to a subscriber of its own.
pub const SUBSCRIPTION: &str = "subscription";
/// Hand it to the triggers of a namespace.
pub const BROKER: &str = "broker";
/// Decide whether it is wanted.
pub const TRIGGER: &str = "trigger";
/// Attempt, back off, attempt again.
pub const DELIVERY: &str = "delivery";
/// Where it rests when trying ends.
pub const DEAD_LETTER: &str = "dead-letter";
