//! Makes a recording. It is one once [`Writer::finish`] has answered, and nothing that is read here before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_rt::vfs::Open;
use heddle_rt::{Vfs, VfsFile};
use serde_json::{Value, json};

use super::index::{CHANNELS, EVENTS, FORMAT, OBJECTS, RECORDING};
use super::limits::LINE_BYTES_MAX;
use super::line::{EventRecord, SubscriptionRecord, encode};
use super::ranges::Ranges;
use crate::counters::{Channel, Sequence, SubscriptionId};
use crate::origin::{Error, OriginEvent};

/// Where a file of events ends and the next begins.
const FILE_BYTES: u64 = 64 << 20;

/// How far a subscription is.
#[derive(Clone, Debug)]
pub struct RecordedProgress {
    pub id: SubscriptionId,
    /// First and last of what is acknowledged.
    pub acknowledged: Vec<(Sequence, Sequence)>,
    pub last_sent: Sequence,
}

/// Writes a recording. All calls block.
#[derive(Debug)]
pub struct Writer {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    files: BTreeMap<String, OneFile>,
    event_files: u32,
}

#[derive(Debug)]
struct OneFile {
    file: Arc<dyn VfsFile>,
    bytes: u64,
    lines: usize,
    crc32c: u32,
}

fn unwritable(error: std::io::Error) -> Error {
    Error::Unavailable(format!("cannot write the recording: {error}"))
}

impl Writer {
    /// Begins anew. What was recorded in this directory before is no recording any more.
    pub fn create(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Self, Error> {
        let begin = || {
            vfs.create_dir_all(dir)?;
            let old = dir.join(RECORDING);
            if vfs.exists(&old)? {
                vfs.remove(&old)?;
                vfs.sync_dir(dir)?;
            }
            Ok(())
        };
        begin().map_err(unwritable)?;
        Ok(Self {
            vfs,
            dir: dir.to_owned(),
            files: BTreeMap::new(),
            event_files: 1,
        })
    }

    pub fn object(&mut self, object: &Value) -> Result<(), Error> {
        self.line(OBJECTS, object)
    }

    pub fn channel(
        &mut self,
        channel: &Channel,
        subscriptions: &[RecordedProgress],
    ) -> Result<(), Error> {
        let records = subscriptions.iter().map(|progress| {
            let mut acknowledged = Ranges::default();
            for (first, last) in &progress.acknowledged {
                acknowledged.insert(*first, *last);
            }
            SubscriptionRecord::write(&progress.id, &acknowledged, progress.last_sent)
        });
        let records: Vec<Value> = records.collect();
        let record = json!({"channel": channel.name, "first": channel.first, "highWater": channel.high_water,
                            "subscriptions": records});
        self.line(CHANNELS, &record)
    }

    /// Those of one channel in order.
    pub fn event(&mut self, channel: &str, event: &OriginEvent) -> Result<(), Error> {
        let name = |number: u32| format!("{EVENTS}{number:06}.jsonl");
        let current = self.files.get(&name(self.event_files));
        if current.is_some_and(|file| file.bytes >= FILE_BYTES) {
            self.event_files += 1;
        }
        self.line(&name(self.event_files), &EventRecord::write(channel, event))
    }

    fn line(&mut self, name: &str, record: &Value) -> Result<(), Error> {
        let line = encode(record);
        if line.len() > LINE_BYTES_MAX {
            let bytes = line.len();
            let text = format!("a line of {bytes} bytes is too long for a recording");
            return Err(Error::Invalid(text));
        }
        if !self.files.contains_key(name) {
            let opened = self.vfs.open(&self.dir.join(name), Open::truncated(0o600));
            let file = OneFile {
                file: opened.map_err(unwritable)?,
                bytes: 0,
                lines: 0,
                crc32c: 0,
            };
            self.files.insert(name.to_owned(), file);
        }
        let file = self.files.get_mut(name).expect("it was opened just now");
        file.file.write_at(file.bytes, &line).map_err(unwritable)?;
        file.bytes += line.len() as u64;
        file.lines += 1;
        file.crc32c = crc32c::crc32c_append(file.crc32c, &line);
        Ok(())
    }

    /// Makes everything safe, and then a recording of it.
    pub fn finish(self) -> Result<(), Error> {
        let finish = || {
            for file in self.files.values() {
                file.file.sync()?;
            }
            self.vfs.sync_dir(&self.dir)?;
            let whole = |file: &OneFile| {
                let crc = format!("{:08x}", file.crc32c);
                json!({"lines": file.lines, "crc32c": crc})
            };
            let files = self.files.iter();
            let files = files.map(|(name, file)| (name.clone(), whole(file)));
            let files: serde_json::Map<String, Value> = files.collect();
            let text = json!({"format": FORMAT, "files": files}).to_string();
            let path = self.dir.join(RECORDING);
            self.vfs.write_atomic(&path, text.as_bytes(), 0o600)
        };
        finish().map_err(unwritable)
    }
}
