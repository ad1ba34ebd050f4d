//! Protocol buffers, as far as messages go that are written down here field by field: numbered fields in, numbered fields out.
//!
//! Every length is checked against what is there, and nothing is kept of what is read, so no input can hurt. What the numbers
//! mean, and which fields there are, is for each reader to know; unknown ones are there to be skipped, as protobuf asks.

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// A field's content as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire<'b> {
    Varint(u64),
    Bytes(&'b [u8]),
    /// Fixed-width numbers, which no message read here uses.
    Other,
}

/// The numbered fields of a message, in order. Ends after an error.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Wire<'b>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Result<(u64, Wire<'b>), Malformed> {
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| TRUNCATED)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Other)?,
            _ => return Err(Malformed("unknown wire type")),
        };
        match tag >> 3 {
            0 => Err(Malformed("a field has no number")),
            number => Ok((number, content)),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for (index, byte) in self.0.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Ok(number);
            }
        }
        Err(TRUNCATED)
    }
}

const TRUNCATED: Malformed = Malformed("a length or number exceeds the body");

/// Puts a message together. What is empty or zero is left out, as others do.
#[derive(Debug, Clone, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    #[must_use]
    pub fn number(mut self, field: u64, number: u64) -> Self {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
        self
    }

    #[must_use]
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        if !bytes.is_empty() {
            self.varint(field << 3 | 2);
            self.varint(bytes.len() as u64);
            self.0.extend_from_slice(bytes);
        }
        self
    }

    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, Malformed> {
        Fields(bytes).collect()
    }

    #[test]
    fn what_is_written_is_read_and_emptiness_is_left_out() {
        let written = Writer::default()
            .bytes(1, "hi")
            .number(2, 300)
            .number(3, u64::MAX)
            .bytes(4, "")
            .number(5, 0)
            .bytes(97, [0; 200])
            .finish();
        assert_eq!(written[..7], [0x0a, 2, b'h', b'i', 0x10, 0xac, 0x02]);
        let read = [
            (1, Wire::Bytes(b"hi")),
            (2, Wire::Varint(300)),
            (3, Wire::Varint(u64::MAX)),
            (97, Wire::Bytes(&[0; 200])),
        ];
        assert_eq!(fields(&written).unwrap(), read);
    }

    #[test]
    fn what_is_cut_or_no_message_is_refused() {
        let check = |bytes: &[u8], why| assert_eq!(fields(bytes), Err(Malformed(why)));
        let truncated = "a length or number exceeds the body";
        check(&[0x0a], truncated);
        check(&[0x0a, 3, b'h', b'i'], truncated);
        check(&[0xff; 11], truncated);
        check(
            &[
                0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
            ],
            truncated,
        );
        check(&[0x09, 1, 2], truncated);
        check(&[0x0b], "unknown wire type");
        check(&[0x02, 0], "a field has no number");
    }
}
