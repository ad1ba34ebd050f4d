//! Bytes on disk: every record says its layout, its length and its checksum.
//!
//! ```text
//!   record    layout u8 │ payload length u32 │ CRC32C u32 of (key, layout, payload) │ payload
//!   object    version u64 │ created u64 │ flags u8 │ uid │ labels │ owners │ json
//!   tombstone version u64 │ created u64 │ seconds i64 │ resource │ namespace │ name │ uid │ labels
//!   meta      format u32 │ version u64 │ horizon u64 │ objects u64 │ tombstones u64
//! ```
//! Numbers are little-endian, texts a u32 length and UTF-8, lists a u32 count. The key under which a
//! record is stored goes into its checksum, so a record in the wrong place is noticed as well.
//! Invariant: no length is believed before it is compared with the bytes that are there.

pub(crate) mod fuzzing;

use std::sync::Arc;

use bytes::Bytes;

use crate::object::Json;
use crate::recovery::Tombstone;
use crate::sample::Samples;
use crate::{Facts, Key, Object, ResourceVersion};

/// The layout of everything below. A store with a higher number is refused, not guessed at.
pub(crate) const FORMAT: u32 = 1;

const LAYOUT: u8 = 1;
const HEADER_BYTES: usize = 1 + 4 + 4;
const FLAG_DELETING: u8 = 1;

/// The one record about the whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) format: u32,
    /// The last version given out.
    pub(crate) version: ResourceVersion,
    /// Deletions up to here may be forgotten.
    pub(crate) horizon: ResourceVersion,
    /// How many records there are: a missing one is noticed.
    pub(crate) objects_count: u64,
    pub(crate) tombstones_count: u64,
}

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("a record is cut short")]
    Short,
    #[error("a record has layout {0}, which is unknown")]
    Layout(u8),
    #[error("the checksum of a record does not fit")]
    Checksum,
    #[error("a record holds text that is not UTF-8")]
    Text,
    #[error("a record has bytes left over")]
    Rest,
}

/// The longest text in a key: its length has to fit two bytes.
pub(crate) const KEY_PART_BYTES_MAX: usize = u16::MAX as usize;

/// The bytes under which an object is stored.
///
/// # Panics
/// When a part is longer than [`KEY_PART_BYTES_MAX`], which commits refuse.
pub(crate) fn encode_key(key: &Key) -> Vec<u8> {
    let parts = [&key.resource, &key.namespace, &key.name];
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 2).sum());
    for part in parts {
        let len = u16::try_from(part.len()).expect("commits refuse longer keys");
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

pub(crate) fn decode_key(bytes: &[u8]) -> Result<Key, Damage> {
    let mut rest = bytes;
    let mut part = || -> Result<&str, Damage> {
        let (len, after) = rest.split_first_chunk().ok_or(Damage::Short)?;
        let (text, after) = after
            .split_at_checked(usize::from(u16::from_le_bytes(*len)))
            .ok_or(Damage::Short)?;
        rest = after;
        std::str::from_utf8(text).map_err(|_| Damage::Text)
    };
    let key = Key::new(part()?, part()?, part()?);
    if rest.is_empty() {
        Ok(key)
    } else {
        Err(Damage::Rest)
    }
}

/// The record of an object. `json` comes in two pieces, between which the version goes.
pub(crate) fn encode_object(
    key: &Key,
    version: ResourceVersion,
    created: ResourceVersion,
    facts: &Facts,
    json: (&[u8], &[u8]),
) -> Bytes {
    let digits = version.to_string();
    let pieces = [json.0, digits.as_bytes(), json.1];
    object_record(key, version, created, facts, &pieces)
}

/// The record of an object as it is.
pub(crate) fn reencode_object(object: &Object) -> Bytes {
    let Object {
        key,
        version,
        created,
        facts,
        ..
    } = object;
    object_record(key, *version, *created, facts, &[&object.json()])
}

fn object_record(
    key: &Key,
    version: ResourceVersion,
    created: ResourceVersion,
    facts: &Facts,
    json: &[&[u8]],
) -> Bytes {
    let json_bytes: usize = json.iter().map(|piece| piece.len()).sum();
    let mut record = Encoder::with_capacity(json_bytes + 256);
    record.u64(version.get());
    record.u64(created.get());
    record
        .bytes
        .push(if facts.deleting { FLAG_DELETING } else { 0 });
    record.text(&facts.uid);
    record.pairs(&facts.labels);
    record.u32(facts.owners.len());
    facts.owners.iter().for_each(|owner| record.text(owner));
    record.u32(json_bytes);
    json.iter()
        .for_each(|piece| record.bytes.extend_from_slice(piece));
    record.seal(&encode_key(key))
}

pub(crate) fn decode_object(
    key_bytes: &[u8],
    record: &[u8],
    samples: &Samples,
) -> Result<Object, Damage> {
    let key = decode_key(key_bytes)?;
    let mut decoder = Decoder::unseal(key_bytes, record)?;
    let version = decoder.version()?;
    let created = decoder.version()?;
    let deleting = decoder.u8()? & FLAG_DELETING != 0;
    let uid = decoder.str()?.into();
    let labels = decoder.pairs()?;
    let owners = decoder.list(|decoder| decoder.str().map(Into::into))?;
    let json_bytes = decoder.u32()?;
    if decoder.rest.len() != json_bytes {
        return Err(Damage::Rest);
    }
    let json = Json::with_version(samples.pack(&key.resource, decoder.rest));
    let facts = Arc::new(Facts {
        uid,
        labels,
        owners,
        deleting,
    });
    Ok(Object {
        key,
        version,
        created,
        facts,
        json,
    })
}

pub(crate) fn encode_tombstone(tombstone: &Tombstone) -> Bytes {
    let mut record = Encoder::with_capacity(256);
    record.u64(tombstone.version.get());
    record.u64(tombstone.created.get());
    record
        .bytes
        .extend_from_slice(&tombstone.seconds.to_le_bytes());
    record.text(&tombstone.key.resource);
    record.text(&tombstone.key.namespace);
    record.text(&tombstone.key.name);
    record.text(&tombstone.uid);
    record.pairs(&tombstone.labels);
    record.seal(&tombstone.version.get().to_le_bytes())
}

pub(crate) fn decode_tombstone(stored_under: u64, record: &[u8]) -> Result<Tombstone, Damage> {
    let mut decoder = Decoder::unseal(&stored_under.to_le_bytes(), record)?;
    let version = decoder.version()?;
    let created = decoder.version()?;
    let seconds = i64::from_le_bytes(decoder.array()?);
    let key = Key::new(decoder.str()?, decoder.str()?, decoder.str()?);
    let uid = decoder.str()?.into();
    let labels = decoder.pairs()?;
    decoder.end()?;
    Ok(Tombstone {
        version,
        created,
        seconds,
        key,
        uid,
        labels,
    })
}

pub(crate) fn encode_meta(meta: &Meta) -> Bytes {
    let mut record = Encoder::with_capacity(64);
    record.bytes.extend_from_slice(&meta.format.to_le_bytes());
    record.u64(meta.version.get());
    record.u64(meta.horizon.get());
    record.u64(meta.objects_count);
    record.u64(meta.tombstones_count);
    record.seal(b"meta")
}

/// Reads the meta record. Of a newer format only the number is read; the rest may mean anything.
pub(crate) fn decode_meta(record: &[u8]) -> Result<Meta, Damage> {
    let mut decoder = Decoder::unseal(b"meta", record)?;
    let format = u32::from_le_bytes(decoder.array()?);
    if format > FORMAT {
        return Ok(Meta {
            format,
            ..Meta::default()
        });
    }
    let meta = Meta {
        format,
        version: decoder.version()?,
        horizon: decoder.version()?,
        objects_count: decoder.u64()?,
        tombstones_count: decoder.u64()?,
    };
    decoder.end()?;
    Ok(meta)
}

struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    fn with_capacity(payload_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload_bytes);
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes }
    }

    fn u64(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn u32(&mut self, number: usize) {
        let number = u32::try_from(number).expect("objects are far smaller than 4 GiB");
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn pairs(&mut self, pairs: &[(String, String)]) {
        self.u32(pairs.len());
        for (name, value) in pairs {
            self.text(name);
            self.text(value);
        }
    }

    /// Writes the header in front of the payload.
    fn seal(mut self, key: &[u8]) -> Bytes {
        let payload = self.bytes.len() - HEADER_BYTES;
        let len = u32::try_from(payload)
            .expect("objects are far smaller than 4 GiB")
            .to_le_bytes();
        let checksum = checksum(key, &self.bytes[HEADER_BYTES..]);
        self.bytes[0] = LAYOUT;
        self.bytes[1..5].copy_from_slice(&len);
        self.bytes[5..9].copy_from_slice(&checksum.to_le_bytes());
        self.bytes.into()
    }
}

fn checksum(key: &[u8], payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(key), &[LAYOUT]);
    crc32c::crc32c_append(crc, payload)
}

struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Checks the header and the checksum.
    fn unseal(key: &[u8], record: &'a [u8]) -> Result<Self, Damage> {
        let (header, payload) = record
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Damage::Short)?;
        let [layout, l0, l1, l2, l3, c0, c1, c2, c3] = *header;
        if layout != LAYOUT {
            return Err(Damage::Layout(layout));
        }
        if u32::from_le_bytes([l0, l1, l2, l3]) as usize != payload.len() {
            return Err(Damage::Short);
        }
        if u32::from_le_bytes([c0, c1, c2, c3]) != checksum(key, payload) {
            return Err(Damage::Checksum);
        }
        Ok(Self { rest: payload })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Damage::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Damage::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, Damage> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<usize, Damage> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn u64(&mut self) -> Result<u64, Damage> {
        self.array().map(u64::from_le_bytes)
    }

    fn version(&mut self) -> Result<ResourceVersion, Damage> {
        self.u64().map(ResourceVersion::new)
    }

    fn str(&mut self) -> Result<&'a str, Damage> {
        let len = self.u32()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| Damage::Text)
    }

    fn text(&mut self) -> Result<String, Damage> {
        self.str().map(str::to_owned)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Damage>) -> Result<Vec<T>, Damage> {
        let count = self.u32()?;
        // Each item takes at least four bytes: a count beyond that is not believed.
        let mut items = Vec::with_capacity(count.min(self.rest.len() / 4));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn pairs(&mut self) -> Result<Vec<(String, String)>, Damage> {
        self.list(|decoder| Ok((decoder.text()?, decoder.text()?)))
    }

    fn end(&self) -> Result<(), Damage> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Damage::Rest)
        }
    }
}

#[cfg(test)]
mod tests;
