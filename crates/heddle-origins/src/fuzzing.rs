//! For the fuzzer: everything here that reads what old meshes say, and what was recorded of them.

use bytes::BytesMut;

use crate::nats::protocol::{ClientOp, LINE_BYTES_MAX, ServerOp, decode};

pub use crate::jetstream::fuzzing::answer as jetstream_answer;
pub use crate::nats_streaming::fuzzing::{message as stan_message, monitoring as stan_monitoring};
pub use crate::recorded::fuzzing::line as recorded_line;

/// Any bytes as what a NATS server says, whole and in pieces: the same comes of both, and nothing is taken of a half.
///
/// # Panics
/// When the promise does not hold.
pub fn nats_line(soup: &[u8]) {
    let mut whole = BytesMut::from(soup);
    let mut said = Vec::new();
    loop {
        let before = whole.len();
        match decode(&mut whole) {
            Ok(Some(op)) => {
                assert!(whole.len() < before);
                said.push(op);
            }
            Ok(None) => {
                assert_eq!(whole.len(), before);
                break;
            }
            Err(_) => break,
        }
    }
    let mut pieces = BytesMut::new();
    let mut heard = Vec::new();
    'pieces: for piece in soup.chunks(3) {
        pieces.extend_from_slice(piece);
        loop {
            match decode(&mut pieces) {
                Ok(Some(op)) => heard.push(op),
                Ok(None) => break,
                Err(_) => break 'pieces,
            }
        }
    }
    assert_eq!(said, heard);
    for op in said {
        if let ServerOp::NatsMessage { subject, reply, .. } = op {
            assert!(subject.len() < LINE_BYTES_MAX);
            publish(&subject, reply);
        }
    }
}

/// What is said to a place that a server named is one line.
fn publish(subject: &str, reply: Option<String>) {
    if crate::nats::protocol::is_subject(subject) && reply.is_none() {
        let (subject, payload) = (subject.to_owned(), bytes::Bytes::new());
        let publish = ClientOp::Publish {
            subject,
            reply,
            payload,
        };
        let mut out = Vec::new();
        publish.encode(&mut out);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
    }
}

#[cfg(test)]
mod tests;
