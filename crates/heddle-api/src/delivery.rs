//! Delivery, as the conditions of several kinds speak of it: one promise and one reason have one text, whichever kind shows
//! them.
//!
//! Each kind takes what it may show into its own modules `condition` and `reason`, so that those still list everything a
//! kind can say.

/// What kinds promise about delivery.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// Undeliverable events have somewhere to go.
    pub const DEAD_LETTER_SINK_RESOLVED: ConditionType = ConditionType {
        name: "DeadLetterSinkResolved",
        meaning: "The dead-letter sink has an address, or none is configured.",
        reasons: &[
            reason::DEAD_LETTER_SINK_NOT_FOUND,
            reason::DEAD_LETTER_SINK_NOT_CONFIGURED,
        ],
    };
}

/// Why events are not delivered, or not yet.
pub mod reason {
    use crate::conditions::Reason;

    /// The sink does not resolve.
    pub const DEAD_LETTER_SINK_NOT_FOUND: Reason = Reason {
        name: "DeadLetterSinkNotFound",
        meaning: "The dead-letter sink does not exist or has no address; correct `spec.delivery.deadLetterSink`.",
    };
    /// There is no sink, which is fine.
    pub const DEAD_LETTER_SINK_NOT_CONFIGURED: Reason = Reason {
        name: "DeadLetterSinkNotConfigured",
        meaning: "No external sink is configured; undeliverable events rest in the internal dead-letter store.",
    };
    /// The log is closed.
    pub const LOG_UNAVAILABLE: Reason = Reason {
        name: "LogUnavailable",
        meaning: "The event log refuses appends; its own health says why.",
    };
    /// The subscriber does not resolve.
    pub const SUBSCRIBER_NOT_FOUND: Reason = Reason {
        name: "SubscriberNotFound",
        meaning: "The subscriber does not exist or has no address.",
    };
    /// The subscriber is gone.
    pub const SUBSCRIBER_GONE: Reason = Reason {
        name: "SubscriberGone",
        meaning: "The subscriber answered 410 Gone, so nothing is sent to it any more; its events are kept. Correct the subscriber.",
    };
    /// The subscriber was asked for its consent and has not given it.
    pub const CONSENT_MISSING: Reason = Reason {
        name: "ConsentMissing",
        meaning: "The subscriber is asked before anything is sent to it and has not consented; its events are kept, and it is asked again. The message says what its answer lacks.",
    };
    /// There is no key to sign with.
    pub const SIGNING_KEY_UNREADABLE: Reason = Reason {
        name: "SigningKeyUnreadable",
        meaning: "Events are to be signed and the Secret with the key is missing or damaged; nothing is sent unsigned, and the events are kept. `heddle trigger sign` makes another key.",
    };
    /// The backlog is larger than it may be.
    pub const BACKLOG_OVER_QUOTA: Reason = Reason {
        name: "BacklogOverQuota",
        meaning: "The subscriber does not keep up, and its backlog is larger than its quota: the oldest events expire undelivered. Repair the subscriber, or raise the quota.",
    };
    /// Nothing is sent for the moment.
    pub const DELIVERY_HELD: Reason = Reason {
        name: "DeliveryHeld",
        meaning: "Matching events are kept and will be sent, but not at the moment; the message says why.",
    };
    /// Replies could not go on.
    pub const BAD_REPLIES: Reason = Reason {
        name: "BadReplies",
        meaning: "Events are delivered; replies of the subscriber that are no events, or are refused where they go, rest as dead letters until somebody discards them.",
    };
    /// A setting has no effect.
    pub const SETTINGS_IGNORED: Reason = Reason {
        name: "SettingsIgnored",
        meaning: "An annotation has a value that cannot be understood, and the default is used instead; correct it.",
    };
}
