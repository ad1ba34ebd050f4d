//! The codes with which a publish is refused: what each means, and what to do about it.
//!
//! They may be relied upon: a code is retired, never given another meaning. The page for people, `docs/reference/refusals.md`, is
//! made from this table, and an answer with a code or a status that is not in it fails the tests that meet it.

/// One way to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: &'static str,
    pub status: u16,
    /// In Markdown, like the remedy.
    pub meaning: &'static str,
    pub remedy: &'static str,
}

/// Each code is a constant, and an entry of the table.
macro_rules! codes {
    ($($name:ident = $code:literal, $status:literal, $meaning:literal, $remedy:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: &str = $code;
        )*

        /// Every code there is.
        pub const ALL: &[Refused] = &[
            $(Refused { code: $code, status: $status, meaning: $meaning, remedy: $remedy },)*
        ];
    };
}

codes! {
    ATTRIBUTE_MISSING = "attribute-missing", 400, "`id`, `source`, `type` or `specversion` is not there or empty",
        "add it";
    ATTRIBUTE_DUPLICATE = "attribute-duplicate", 400, "an attribute is there twice",
        "send it once";
    ATTRIBUTE_NAME = "attribute-name", 400, "a name with something else than lower-case letters and digits, or `data`",
        "rename it";
    ATTRIBUTE_TYPE = "attribute-type", 400, "a value of the wrong type, such as a fraction for an integer",
        "correct the value";
    ATTRIBUTE_INVALID = "attribute-invalid", 400, "a value its attribute may not have: a time that is not RFC 3339, an empty subject",
        "correct the value";
    ATTRIBUTE_ENCODING = "attribute-encoding", 400, "a `Content-Type` header that is not UTF-8",
        "correct it";
    ATTRIBUTE_TOO_LONG = "attribute-too-long", 413, "one value is longer than the [limits](../operating/limits.md) allow",
        "move it into the data";
    ATTRIBUTES_TOO_MANY = "attributes-too-many", 413, "more attributes than an event may have",
        "move some into the data";
    SPECVERSION_UNSUPPORTED = "specversion-unsupported", 400, "not CloudEvents 1.0",
        "send 1.0";
    FORMAT_UNSUPPORTED = "format-unsupported", 415, "an event format other than JSON",
        "send JSON, or the binary mode";
    CHARSET_UNSUPPORTED = "charset-unsupported", 415, "JSON in something other than UTF-8",
        "send UTF-8";
    ENCODING_UNSUPPORTED = "encoding-unsupported", 415, "a compressed body",
        "send it plain";
    BATCH_UNEXPECTED = "batch-unexpected", 415, "a batch where one event was expected",
        "send one";
    DATA_INVALID = "data-invalid", 400, "data that does not fit its content type, or is given twice",
        "correct one of them";
    JSON_INVALID = "json-invalid", 400, "a body that is not the JSON it claims to be",
        "correct it";
    JSON_TOO_DEEP = "json-too-deep", 400, "JSON that is nested deeper than is read",
        "nest it less, or send it in binary mode";
    EVENT_TOO_LARGE = "event-too-large", 413, "an event larger than is kept",
        "send less, or refer to the data";
    BATCH_TOO_LARGE = "batch-too-large", 413, "a batch with more bytes or more events than are taken at once",
        "send fewer at once";
    REQUEST_TOO_LARGE = "request-too-large", 413, "a body larger than any batch",
        "send less at once, or refer to the data";
    BODY_INCOMPLETE = "body-incomplete", 400, "the body did not arrive whole",
        "send it again";
    LOOP = "loop", 400, "`knativebrokerttl`, or what a delivery says in `heddle-hops-left`, is used up",
        "look for a loop of triggers and replies";
    NO_SUCH_PATH = "no-such-path", 404, "not one of the three doors",
        "correct the path";
    METHOD_NOT_ALLOWED = "method-not-allowed", 405, "not POST",
        "use POST";
    APPLICATION_NOT_FOUND = "application-not-found", 404, "no such Application",
        "apply it, or correct the path";
    ENTRY_NOT_FOUND = "entry-not-found", 404, "no such Broker or Channel",
        "apply it, or correct the path";
    APPLICATION_NOT_READY = "application-not-ready", 503, "its channel or source is not there yet",
        "wait as long as `Retry-After` says; its conditions say for what";
    STARTING = "starting", 503, "the mesh has no routes yet",
        "wait as long as `Retry-After` says";
    BUSY = "busy", 429, "more is waiting for the disk than is good",
        "wait as long as `Retry-After` says";
    STORAGE_FULL = "storage-full", 507, "the disk is full",
        "make room; it goes on by itself";
    STORAGE_LOW = "storage-low", 507, "less is free than is kept for what was accepted; `directory`, `freeBytes` and `neededBytes` tell how much",
        "make room, or keep less free; it goes on by itself";
    LOG_BROKEN = "log-broken", 503, "the disk failed; where `fate` is `unknown` this request may be in the log after the restart, or not; where it is `not-stored` it is not",
        "restart once it is well, and send again with the same ids; what was stored already then arrives twice";
    LOG_EXHAUSTED = "log-exhausted", 503, "this machine had too little of something while the log went on to its next file: descriptors, memory",
        "again soon, after `Retry-After`; raise the limit of open files";
    BODY_TOO_SLOW = "body-too-slow", 408, "the body brought less than 8 KiB a second after its first ten, or 256 KiB while others waited for the room it took",
        "send it at once";
    OVERLOADED = "overloaded", 503, "more bodies are being received than there is room for",
        "wait as long as `Retry-After` says";
    MISDIRECTED = "misdirected", 421, "the request names a host that this server is not called",
        "use its address, or start it with `--tls-name`";
    UNAUTHORIZED = "unauthorized", 401, "credentials that nobody has, or none where they are asked for",
        "send the token or the certificate of [a publisher](../operating/publishers.md)";
    FORBIDDEN = "forbidden", 403, "an Application at a place that is not its own, without an EventPolicy there that names it, or with an event that its filters do not let pass",
        "apply the policy that the message describes, or publish to `/{application}/events`";
    TYPE_RESERVED = "type-reserved", 403, "a type that begins with `dev.heddle.heartbeat.`, which nobody but heddle sends",
        "use another type";
}

/// Whether this is answered at all: the code, with the status.
#[must_use]
pub fn is_known(code: &str, status: u16) -> bool {
    ALL.iter()
        .any(|known| known.code == code && known.status == status)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_code_has_two_meanings() {
        let codes: BTreeSet<&str> = ALL.iter().map(|known| known.code).collect();
        assert_eq!(codes.len(), ALL.len());
        let plain = |code: &&str| {
            code.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        assert!(codes.iter().all(plain));
        assert!(is_known(BUSY, 429) && !is_known(BUSY, 503) && !is_known("new", 400));
    }
}
