//! The lines of the NATS protocol: what a server says, taken apart, and what we say, put together. Pure.
//!
//! A server is a stranger: a line, a header and a payload have limits that are checked before anything is kept for them.

use bytes::{Buf as _, Bytes, BytesMut};

use super::headers::Headers;

/// The longest line. Only a greeting is ever long, and grows with the servers of a cluster.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 10;
/// The largest payload, headers included: what the makers of NATS recommend as the limit.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 8 << 20;

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerOp {
    /// In JSON.
    Info(Bytes),
    NatsMessage {
        subscription: u64,
        subject: String,
        reply: Option<String>,
        headers: Headers,
        payload: Bytes,
    },
    Ping,
    Pong,
    Ok,
    Error(String),
}

/// It does not speak NATS, or wants more room than it may have. The connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak NATS: {0}")]
pub(crate) struct ProtocolViolation(pub(crate) &'static str);

/// Takes the next whole thing out of what was received; nothing while it is not whole.
pub(crate) fn decode(received: &mut BytesMut) -> Result<Option<ServerOp>, ProtocolViolation> {
    let Some(end) = line_end(received)? else {
        return Ok(None);
    };
    let line = std::str::from_utf8(&received[..end])
        .map_err(|_| ProtocolViolation("a line is no text"))?;
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    let op = match word.to_ascii_uppercase().as_str() {
        "MSG" => return message(received, end, false),
        "HMSG" => return message(received, end, true),
        "INFO" => ServerOp::Info(Bytes::copy_from_slice(rest.as_bytes())),
        "PING" => ServerOp::Ping,
        "PONG" => ServerOp::Pong,
        "+OK" => ServerOp::Ok,
        "-ERR" => ServerOp::Error(rest.trim_matches('\'').to_owned()),
        _ => return Err(ProtocolViolation("an unknown word")),
    };
    received.advance(end + 2);
    Ok(Some(op))
}

/// Where the first line ends, in front of its `\r\n`.
fn line_end(received: &[u8]) -> Result<Option<usize>, ProtocolViolation> {
    let looked_at = &received[..received.len().min(LINE_BYTES_MAX)];
    match looked_at.iter().position(|byte| *byte == b'\n') {
        Some(end) if end > 0 && looked_at[end - 1] == b'\r' => Ok(Some(end - 1)),
        Some(_) => Err(ProtocolViolation("a line ends without a carriage return")),
        None if looked_at.len() == LINE_BYTES_MAX => Err(ProtocolViolation("a line is too long")),
        None => Ok(None),
    }
}

/// `MSG subject subscription [reply] bytes`, or with the bytes of headers before those of everything.
fn message(
    received: &mut BytesMut,
    end: usize,
    has_headers: bool,
) -> Result<Option<ServerOp>, ProtocolViolation> {
    const SHAPE: ProtocolViolation = ProtocolViolation("a message has the wrong fields");
    let line = std::str::from_utf8(&received[..end]).map_err(|_| SHAPE)?;
    let mut fields: Vec<&str> = line.split_ascii_whitespace().skip(1).take(6).collect();
    let size = |text: Option<&str>| text.and_then(number).ok_or(SHAPE);
    let payload_bytes = size(fields.pop())?;
    let header_bytes = if has_headers { size(fields.pop())? } else { 0 };
    if payload_bytes > PAYLOAD_BYTES_MAX || header_bytes > payload_bytes {
        return Err(ProtocolViolation("a message is larger than it may be"));
    }
    let (subject, subscription, reply) = match fields[..] {
        [subject, subscription] => (subject, subscription, None),
        [subject, subscription, reply] => (subject, subscription, Some(reply)),
        _ => return Err(SHAPE),
    };
    let subscription = number(subscription)
        .map(|number| number as u64)
        .ok_or(SHAPE)?;
    let whole = end + 2 + payload_bytes + 2;
    if received.len() < whole {
        return Ok(None);
    }
    if received[whole - 2..whole] != *b"\r\n" {
        return Err(ProtocolViolation("a message is not as long as it says"));
    }
    let (subject, reply) = (subject.to_owned(), reply.map(str::to_owned));
    received.advance(end + 2);
    // A copy: what is kept is as large as it counts, and no part of a buffer that is larger.
    let mut payload = Bytes::copy_from_slice(&received[..payload_bytes]);
    received.advance(payload_bytes + 2);
    let headers = payload.split_to(header_bytes);
    let headers = if has_headers {
        Headers::decode(&headers).ok_or(ProtocolViolation("headers are not what they should be"))?
    } else {
        Headers::default()
    };
    Ok(Some(ServerOp::NatsMessage {
        subscription,
        subject,
        reply,
        headers,
        payload,
    }))
}

/// A number in plain digits.
fn number(text: &str) -> Option<usize> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// What we say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientOp {
    /// In JSON.
    Connect(String),
    Subscribe {
        subscription: u64,
        subject: String,
        group: Option<String>,
    },
    Unsubscribe(u64),
    Publish {
        subject: String,
        reply: Option<String>,
        payload: Bytes,
    },
    Ping,
    Pong,
}

impl ClientOp {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut line = |words: &[&str]| {
            for (index, word) in words.iter().filter(|word| !word.is_empty()).enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                out.extend_from_slice(word.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        };
        match self {
            Self::Connect(json) => line(&["CONNECT", json]),
            Self::Subscribe {
                subscription,
                subject,
                group,
            } => {
                let group = group.as_deref().unwrap_or_default();
                line(&["SUB", subject, group, &subscription.to_string()]);
            }
            Self::Unsubscribe(subscription) => line(&["UNSUB", &subscription.to_string()]),
            Self::Publish {
                subject,
                reply,
                payload,
            } => {
                let reply = reply.as_deref().unwrap_or_default();
                line(&["PUB", subject, reply, &payload.len().to_string()]);
                out.extend_from_slice(payload);
                out.extend_from_slice(b"\r\n");
            }
            Self::Ping => line(&["PING"]),
            Self::Pong => line(&["PONG"]),
        }
    }
}

/// Whether something can be a subject that is published to: tokens of plain characters. What comes from a server, or from a
/// person, must not become a second line.
pub(crate) fn is_subject(subject: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>');
    !subject.is_empty()
        && subject.len() <= 1024
        && subject
            .split('.')
            .all(|token| !token.is_empty() && token.bytes().all(plain))
}

#[cfg(test)]
mod tests;
