//! A recording, verified: where each event lies, and whatever else there is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use heddle_rt::vfs::Open;
use heddle_rt::{Vfs, VfsFile};
use serde::Deserialize;
use serde_json::Value;

use super::limits::{CHANNELS_MAX, EVENTS_MAX, FILES_MAX, LINE_BYTES_MAX, NAMED_MAX, OBJECTS_MAX};
use super::line::{ChannelRecord, EventRecord, decode};
use super::ranges::Ranges;
use crate::counters::{Channel, Sequence, SubscriptionId};
use crate::origin::Error;

/// The one format there is.
pub(super) const FORMAT: u64 = 1;
pub(super) const RECORDING: &str = "recording.json";
pub(super) const OBJECTS: &str = "objects.jsonl";
pub(super) const CHANNELS: &str = "channels.jsonl";
pub(super) const EVENTS: &str = "events-";
/// What is read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// The longest `recording.json`.
const RECORDING_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
struct Recordings {
    format: u64,
    files: BTreeMap<String, FileSum>,
}

/// What a file is as a whole.
#[derive(Debug, Deserialize)]
struct FileSum {
    lines: usize,
    crc32c: String,
}

/// Where a line with an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    file: u32,
    line: u32,
    offset: u64,
    bytes: u32,
}

/// A channel that was recorded.
#[derive(Debug)]
pub(super) struct Recording {
    name: String,
    first: Sequence,
    high_water: Sequence,
    bytes: u64,
    pub(super) events: BTreeMap<Sequence, At>,
    pub(super) subscriptions: Vec<RecordedSubscription>,
}

/// How far a subscription was when it was recorded.
#[derive(Clone, Debug)]
pub(super) struct RecordedSubscription {
    pub(super) id: SubscriptionId,
    pub(super) acknowledged: Ranges,
    pub(super) last_sent: Sequence,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) objects: Vec<Value>,
    pub(super) channels: BTreeMap<String, Recording>,
    files: Vec<String>,
    events: usize,
}

impl Recording {
    pub(super) fn counted(&self) -> Channel {
        Channel {
            name: self.name.clone(),
            first: self.first,
            high_water: self.high_water,
            events: self.events.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// What is wrong with a recording, line by line.
#[derive(Debug, Default)]
struct Damage {
    named: Vec<String>,
    count: usize,
}

impl Damage {
    fn add(&mut self, file: &str, line: usize, why: &str) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(format!("{file}:{line}: {why}"));
        }
    }

    fn into_error(self) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        let more = self.count - self.named.len();
        let mut text = self.named.join("\n");
        if more > 0 {
            text.push_str(&format!("\nand {more} more"));
        }
        Err(Error::Corrupt(format!("the recording is damaged:\n{text}")))
    }
}

/// `recording.json` as it is.
pub(super) fn recording(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u8>, Error> {
    let path = dir.join(RECORDING);
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!(
            "{} is no recording: it has no {RECORDING}",
            dir.display()
        )),
        _ => unavailable(RECORDING, &error),
    };
    let file = vfs.open(&path, Open::existing()).map_err(unreadable)?;
    let len = file.len().map_err(unreadable)?;
    if len > RECORDING_BYTES_MAX {
        return Err(Error::Corrupt(format!("{RECORDING} has {len} bytes")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
    file.read_at(0, &mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

pub(super) fn unavailable(name: &str, error: &std::io::Error) -> Error {
    Error::Unavailable(format!("cannot read {name}: {error}"))
}

impl Index {
    /// Reads everything once.
    pub(super) fn verify(vfs: &dyn Vfs, dir: &Path, recording: &[u8]) -> Result<Self, Error> {
        let corrupt = |why: String| Error::Corrupt(format!("{RECORDING}: {why}"));
        let recordings: Recordings =
            serde_json::from_slice(recording).map_err(|error| corrupt(error.to_string()))?;
        if recordings.format != FORMAT {
            let text = format!(
                "its format is {}, and {FORMAT} is read here",
                recordings.format
            );
            return Err(Error::Invalid(text));
        }
        if recordings.files.len() > FILES_MAX {
            return Err(corrupt(format!("it names more than {FILES_MAX} files")));
        }
        let mut index = Self::default();
        let mut damage = Damage::default();
        let names: BTreeSet<&String> = recordings.files.keys().collect();
        // Channels come first: events are of them.
        let rank = |name: &str| match name {
            OBJECTS => Some(0),
            CHANNELS => Some(1),
            _ if name.starts_with(EVENTS) && name.ends_with(".jsonl") => Some(2),
            _ => None,
        };
        if let Some(unknown) = names
            .iter()
            .find(|name| rank(name).is_none() || name.contains('/'))
        {
            return Err(corrupt(format!("{unknown} is no file of a recording")));
        }
        let mut ordered: Vec<&String> = names.into_iter().collect();
        ordered.sort_by_key(|name| (rank(name), *name));
        for name in ordered {
            let expected = &recordings.files[name];
            index.verify_file(vfs, dir, name, expected, &mut damage)?;
        }
        index.verify_channels(&mut damage);
        damage.into_error()?;
        Ok(index)
    }

    fn verify_file(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        name: &str,
        expected: &FileSum,
        damage: &mut Damage,
    ) -> Result<(), Error> {
        let file = match vfs.open(&dir.join(name), Open::existing()) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                damage.add(name, 1, "the file is missing");
                return Ok(());
            }
            Err(error) => return Err(unavailable(name, &error)),
        };
        let number = u32::try_from(self.files.len()).expect("files are bounded");
        self.files.push(name.to_owned());
        let mut lines = Lines::new(file);
        let (mut line, before) = (0, damage.count);
        while let Some((offset, text)) = lines.next().map_err(|error| unavailable(name, &error))? {
            line += 1;
            let at = At {
                file: number,
                line: u32::try_from(line).unwrap_or(u32::MAX),
                offset,
                bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            };
            let taken = match text {
                [] => Err(format!(
                    "it is empty, cut off, or longer than {LINE_BYTES_MAX} bytes"
                )),
                text => self.take(name, text, at)?,
            };
            if let Err(why) = taken {
                damage.add(name, line, &why);
            }
        }
        let crc = format!("{:08x}", lines.crc32c);
        if line != expected.lines {
            let lines = expected.lines;
            let why = format!("the file ends after {line} lines, and {lines} were written");
            damage.add(name, line + 1, &why);
        } else if damage.count == before && crc != expected.crc32c.to_ascii_lowercase() {
            let written = &expected.crc32c;
            damage.add(
                name,
                1,
                &format!("the file's checksum is {crc}, and {written} was written"),
            );
        }
        Ok(())
    }

    /// Takes a line in. The outer error is of the whole recording, the inner one of the line.
    fn take(&mut self, name: &str, text: &[u8], at: At) -> Result<Result<(), String>, Error> {
        let too_many = |what, max| {
            Err(Error::Invalid(format!(
                "the recording has more than {max} {what}"
            )))
        };
        match name {
            OBJECTS if self.objects.len() == OBJECTS_MAX => too_many("objects", OBJECTS_MAX),
            OBJECTS => Ok(decode(text).map(|object| self.objects.push(object))),
            CHANNELS if self.channels.len() == CHANNELS_MAX => too_many("channels", CHANNELS_MAX),
            CHANNELS => Ok(decode(text).and_then(|record| self.add_channel(record))),
            _ if self.events == EVENTS_MAX => too_many("events", EVENTS_MAX),
            _ => Ok(decode(text).and_then(|record| self.add_event(&record, at))),
        }
    }

    fn add_channel(&mut self, record: ChannelRecord) -> Result<(), String> {
        let name = record.channel;
        if self.channels.contains_key(&name) {
            return Err(format!("channel {name} is there twice"));
        }
        let mut subscriptions = Vec::new();
        for subscription in record.subscriptions {
            let mut acknowledged = Ranges::default();
            for (first, last) in &subscription.acknowledged {
                if *first == 0 || first > last || *last > record.high_water {
                    return Err(format!("{first} to {last} cannot be acknowledged"));
                }
                acknowledged.insert(*first, *last);
            }
            if subscription.last_sent > record.high_water {
                return Err(format!("{} cannot have been sent", subscription.last_sent));
            }
            subscriptions.push(RecordedSubscription {
                id: subscription.id(&name),
                last_sent: subscription.last_sent.max(acknowledged.last()),
                acknowledged,
            });
        }
        let recording = Recording {
            name: name.clone(),
            first: record.first,
            high_water: record.high_water,
            bytes: 0,
            events: BTreeMap::new(),
            subscriptions,
        };
        self.channels.insert(name, recording);
        Ok(())
    }

    fn add_event(&mut self, record: &EventRecord, at: At) -> Result<(), String> {
        let bytes = record.data()?.len() as u64;
        let Some(channel) = self.channels.get_mut(&record.channel) else {
            return Err(format!("there is no channel {}", record.channel));
        };
        let sequence = record.sequence;
        if sequence < channel.first || sequence > channel.high_water {
            return Err(format!(
                "event {sequence} is not between the channel's first and last"
            ));
        }
        if channel
            .events
            .last_key_value()
            .is_some_and(|(last, _)| *last >= sequence)
        {
            return Err(format!("event {sequence} is out of order"));
        }
        channel.events.insert(sequence, at);
        channel.bytes += bytes;
        self.events += 1;
        Ok(())
    }

    /// Whether the numbers can be true, and whether the first event of each channel is there, as it says.
    fn verify_channels(&self, damage: &mut Damage) {
        for (line, channel) in self.channels.values().enumerate() {
            let counted = channel.counted();
            if let Err(contradiction) = counted.check() {
                damage.add(CHANNELS, line + 1, &contradiction.to_string());
            }
            let ends = [counted.first, counted.high_water];
            let absent = ends.iter().find(|end| !channel.events.contains_key(end));
            if counted.first <= counted.high_water
                && let Some(absent) = absent
            {
                let why = format!("event {absent} of channel {} is missing", counted.name);
                damage.add(CHANNELS, line + 1, &why);
            }
        }
    }

    pub(super) fn channel(&self, name: &str) -> Result<&Recording, Error> {
        let found = self.channels.get(name);
        found.ok_or_else(|| Error::NotFound(format!("there is no channel {name}")))
    }

    /// The event of a line, which is verified again.
    pub(super) fn read(&self, vfs: &dyn Vfs, dir: &Path, at: At) -> Result<EventRecord, Error> {
        let name = &self.files[at.file as usize];
        let read = || {
            let mut text = vec![0; at.bytes as usize];
            vfs.open(&dir.join(name), Open::existing())?
                .read_at(at.offset, &mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error| unavailable(name, &error))?;
        let damaged = |why: String| Error::Corrupt(format!("{name}:{}: {why}", at.line));
        decode(&text).map_err(damaged)
    }
}

/// The lines of a file, each with its offset. One that is too long is empty.
struct Lines {
    file: Arc<dyn VfsFile>,
    chunk: Vec<u8>,
    /// Where the chunk begins in the file, and where the next line does in the chunk.
    start: u64,
    next: usize,
    /// Of everything that was read.
    crc32c: u32,
}

impl Lines {
    fn new(file: Arc<dyn VfsFile>) -> Self {
        Self {
            file,
            chunk: Vec::new(),
            start: 0,
            next: 0,
            crc32c: 0,
        }
    }

    fn next(&mut self) -> std::io::Result<Option<(u64, &[u8])>> {
        let begins = self.start + self.next as u64;
        let mut is_too_long = false;
        loop {
            let rest = &self.chunk[self.next..];
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let from = self.next;
                self.next = from + length + 1;
                is_too_long |= length > LINE_BYTES_MAX;
                let line = if is_too_long {
                    0..0
                } else {
                    from..from + length
                };
                return Ok(Some((begins, &self.chunk[line])));
            }
            if rest.len() > LINE_BYTES_MAX {
                is_too_long = true;
                self.next = self.chunk.len();
            }
            if !self.fill()? {
                let is_rest = is_too_long || self.next < self.chunk.len();
                self.next = self.chunk.len();
                // The end of a line is part of it: without one it was not written whole.
                return Ok(is_rest.then_some((begins, &[])));
            }
        }
    }

    /// Reads on, keeping what of the chunk is not used up; false at the end of the file.
    fn fill(&mut self) -> std::io::Result<bool> {
        self.chunk.drain(..self.next);
        self.start += self.next as u64;
        self.next = 0;
        let end = self.start + self.chunk.len() as u64;
        let left = self.file.len()?.saturating_sub(end);
        let more = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let kept = self.chunk.len();
        self.chunk.resize(kept + more, 0);
        self.file.read_at(end, &mut self.chunk[kept..])?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &self.chunk[kept..]);
        Ok(more > 0)
    }
}
