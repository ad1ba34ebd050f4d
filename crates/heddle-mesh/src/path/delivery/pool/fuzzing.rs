//! For the fuzzer: any bytes, taken for what a destination answers over HTTP/1.

use bytes::BytesMut;

use super::framing::{BodyPart, Framing};
use super::head;

/// No longer than a line may be: only whoever hears a longer one piece by piece notices that it is too long.
const BYTES_MAX: usize = 4096;

/// The answer is read or broken, and the same one whether it comes at once or byte by byte.
///
/// # Panics
/// When the promise does not hold.
pub fn answer(soup: &[u8]) {
    let soup = &soup[..soup.len().min(BYTES_MAX)];
    let Ok(Some((head, length))) = head::read(soup) else {
        return;
    };
    assert!(length <= soup.len());
    let (at_once, _) = body(head.framing, &soup[length..], usize::MAX);
    let (piecewise, _) = body(head.framing, &soup[length..], 1);
    assert_eq!(at_once, piecewise, "a body is the same however it comes");
}

/// What the body is and how it ended, when it comes in pieces of this length.
fn body(mut framing: Framing, bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let mut pieces = bytes.chunks(piece.clamp(1, bytes.len().max(1)));
    let (mut input, mut body) = (BytesMut::new(), Vec::new());
    loop {
        match framing.take(&mut input) {
            Ok(BodyPart::Piece(bytes)) => body.extend_from_slice(&bytes),
            Ok(BodyPart::End) => return (body, true),
            Ok(BodyPart::Nothing) => match pieces.next() {
                Some(more) => input.extend_from_slice(more),
                None => return (body, false),
            },
            Err(_) => return (body, false),
        }
    }
}
