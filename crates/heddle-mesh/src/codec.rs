//! Numbers and texts as bytes, for what the mesh keeps on disk.
//!
//! Little-endian, lengths first, nothing self-describing: whoever reads knows what was written. Lengths are checked before
//! they are used, so damaged bytes cost an error and nothing else. Checksums are left to the log underneath.

use jiff::Timestamp;

/// Bytes that do not mean what they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("bytes cannot be read: {0}")]
    Damaged(&'static str),
    /// A number that this version does not give. Where a checksum holds, a newer version has.
    #[error("bytes cannot be read: {0}, which this version does not know")]
    Newer(&'static str),
}

/// Appends to a buffer.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// To the microsecond, which is finer than anything a person asks about.
    fn time(&mut self, at: Timestamp) {
        self.i64(at.as_microsecond());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).expect("nothing kept here is four gigabytes long"));
        self.put(bytes);
    }

    fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Takes from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Unreadable::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        Ok(self.take(N)?.try_into().expect("as many as were asked for"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Unreadable> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Unreadable> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Unreadable> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Unreadable> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Unreadable> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Unreadable> {
        Timestamp::from_microsecond(self.i64()?)
            .map_err(|_| Unreadable::Damaged("a time out of range"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn str(&mut self) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Unreadable::Damaged("a text is not UTF-8"))
    }

    pub(crate) fn string(&mut self) -> Result<String, Unreadable> {
        self.str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests;
