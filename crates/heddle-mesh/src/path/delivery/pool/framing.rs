//! Where the body of an HTTP/1 answer ends, found piece by piece as it comes.

use bytes::{Buf as _, Bytes, BytesMut};

use super::single::Broken;

/// A line between chunks that is longer than this says nothing that anybody wants to know.
const LINE_BYTES_MAX: usize = 4096;

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    Chunked(Chunk),
    /// Everything until the other side closes.
    UntilClosed,
}

/// What comes next in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Size,
    Data(u64),
    /// The end of the line behind the data.
    Break,
    /// Headers behind the body, which nobody reads, up to an empty line.
    Trailers,
    Done,
}

/// What could be taken from what has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    Piece(Bytes),
    /// More has to come first.
    Nothing,
    End,
}

impl Framing {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    pub(super) fn is_at_end(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Done))
    }

    /// How many bytes are still to come at least.
    pub(super) fn announced(self) -> u64 {
        match self {
            Self::Length(left) | Self::Chunked(Chunk::Data(left)) => left,
            Self::Chunked(_) | Self::UntilClosed => 0,
        }
    }

    /// Takes the next piece of the body off what has come.
    pub(super) fn take(&mut self, input: &mut BytesMut) -> Result<BodyPart, Broken> {
        match self {
            Self::Length(left) => Ok(counted(left, input)),
            Self::UntilClosed if input.is_empty() => Ok(BodyPart::Nothing),
            Self::UntilClosed => Ok(BodyPart::Piece(input.split().freeze())),
            Self::Chunked(chunk) => chunk.take(input),
        }
    }
}

fn counted(left: &mut u64, input: &mut BytesMut) -> BodyPart {
    if *left == 0 {
        return BodyPart::End;
    }
    if input.is_empty() {
        return BodyPart::Nothing;
    }
    let here = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *left -= here as u64;
    BodyPart::Piece(input.split_to(here).freeze())
}

impl Chunk {
    fn take(&mut self, input: &mut BytesMut) -> Result<BodyPart, Broken> {
        loop {
            match self {
                Self::Size => {
                    let parsed = httparse::parse_chunk_size(input).map_err(|_| Broken::Chunk)?;
                    let httparse::Status::Complete((length, size)) = parsed else {
                        return within_a_line(input);
                    };
                    input.advance(length);
                    *self = if size == 0 {
                        Self::Trailers
                    } else {
                        Self::Data(size)
                    };
                }
                Self::Data(left) => match counted(left, input) {
                    BodyPart::End => *self = Self::Break,
                    taken => return Ok(taken),
                },
                Self::Break => match input.get(..2) {
                    Some(b"\r\n") => {
                        input.advance(2);
                        *self = Self::Size;
                    }
                    Some(_) => return Err(Broken::Chunk),
                    None => return Ok(BodyPart::Nothing),
                },
                Self::Trailers => {
                    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
                        return within_a_line(input);
                    };
                    let line = input.split_to(end + 1);
                    if line.trim_ascii().is_empty() {
                        *self = Self::Done;
                    }
                }
                Self::Done => return Ok(BodyPart::End),
            }
        }
    }
}

fn within_a_line(input: &BytesMut) -> Result<BodyPart, Broken> {
    if input.len() > LINE_BYTES_MAX {
        return Err(Broken::Chunk);
    }
    Ok(BodyPart::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, read from pieces of this length, and what is left over behind it.
    fn read(mut framing: Framing, text: &[u8], piece: usize) -> Result<(Vec<u8>, usize), Broken> {
        let mut pieces = text.chunks(piece);
        let mut input = BytesMut::new();
        let mut body = Vec::new();
        loop {
            match framing.take(&mut input)? {
                BodyPart::Piece(bytes) => body.extend_from_slice(&bytes),
                BodyPart::End => break,
                BodyPart::Nothing => match pieces.next() {
                    Some(more) => input.extend_from_slice(more),
                    None if framing == Framing::UntilClosed => break,
                    None => return Err(Broken::Closed),
                },
            }
        }
        assert!(framing.is_at_end() || framing == Framing::UntilClosed);
        Ok((body, input.len() + pieces.map(<[u8]>::len).sum::<usize>()))
    }

    #[test]
    fn a_body_is_the_same_however_it_comes() {
        let chunked = b"3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx-trailer: y\r\n\r\nHTTP";
        for piece in 1..=chunked.len() {
            let whole = read(Framing::chunked(), chunked, piece).unwrap();
            assert_eq!(whole, (b"abc0123456789".to_vec(), 4), "{piece}");
            let counted = read(Framing::Length(6), b"abcdefgh", piece).unwrap();
            assert_eq!(counted, (b"abcdef".to_vec(), 2), "{piece}");
            let all = read(Framing::UntilClosed, b"abcdefgh", piece).unwrap();
            assert_eq!(all, (b"abcdefgh".to_vec(), 0), "{piece}");
        }
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_broken() {
        let long = format!("5;{}", "x".repeat(LINE_BYTES_MAX));
        let bad = [
            "x\r\n",
            "3\r\nabcdef\r\n",
            "-1\r\n",
            "fffffffffffffffff\r\n",
            &long,
        ];
        for text in bad {
            let broken = read(Framing::chunked(), text.as_bytes(), 7);
            assert!(matches!(broken, Err(Broken::Chunk)), "{text}: {broken:?}");
        }
        let cut = [
            (Framing::Length(5), "abc"),
            (Framing::chunked(), "5\r\nabc"),
            (Framing::chunked(), "3\r\nabc\r\n0\r\n"),
        ];
        for (framing, text) in cut {
            let broken = read(framing, text.as_bytes(), 2);
            assert!(matches!(broken, Err(Broken::Closed)), "{text}: {broken:?}");
        }
    }
}
