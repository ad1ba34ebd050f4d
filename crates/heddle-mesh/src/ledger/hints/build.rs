//! Making hints for segments that are full and have none, aside and one at a time.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::attributes::Attributes as _;
use heddle_api::search::IndexedWord;

use super::{BLOCK_BYTES, BLOCK_WORDS, HEAD_BYTES, HintWord, SUFFIX, block_sum, path, write_head};
use crate::envelope::Envelope;
use crate::log::{Derived, Log, Offset, SegmentInfo};
use crate::shared::Shared;

/// How often somebody looks for segments without hints.
const EVERY: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 1 << 20;
/// Hints of more words than this would take too much memory to make: the segment is read instead.
const WORDS_MAX: usize = 8 << 20;

/// Makes what is missing, for as long as the mesh runs.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut told = false;
    loop {
        shared.clock.sleep(EVERY).await;
        if let Err(error) = tend(&shared).await
            && !std::mem::replace(&mut told, true)
        {
            tracing::warn!(%error, "no hints about segments can be kept; searches read more than they need");
        }
    }
}

/// Makes what is missing, and forgets what speaks of segments that are gone.
pub(crate) async fn tend(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(derived) = shared.log.derived() else {
        return Ok(());
    };
    let log = Arc::clone(&shared.log);
    let (looking, looked) = (derived.clone(), Arc::clone(&log));
    let missing = shared.aside.slice(move || missing(&looking, &*looked));
    let Ok(missing) = missing.await else {
        return Ok(());
    };
    for segment in missing? {
        let mut making = HintMaking::new(Arc::clone(&log), derived.clone(), segment);
        loop {
            let slice = shared.aside.slice(move || {
                let state = making.slice();
                (making, state)
            });
            let Ok((back, state)) = slice.await else {
                return Ok(());
            };
            making = back;
            if state? {
                break;
            }
        }
    }
    Ok(())
}

/// Full segments without hints, newest first: what is recent is asked for most.
fn missing(derived: &Derived, log: &dyn Log) -> io::Result<Vec<SegmentInfo>> {
    let sealed: Vec<SegmentInfo> = log
        .segments()
        .into_iter()
        .filter(|one| one.sealed)
        .collect();
    if sealed.is_empty() {
        return Ok(sealed);
    }
    derived.vfs.create_dir_all(&derived.dir)?;
    let mut known = BTreeSet::new();
    for name in derived.vfs.list(&derived.dir)? {
        let number = name.strip_suffix(SUFFIX).and_then(|name| name.parse().ok());
        let is_of = |first: Offset| sealed.iter().any(|segment| segment.first == first);
        match number {
            Some(first) if is_of(first) => drop(known.insert(first)),
            _ => derived.vfs.remove(&derived.dir.join(&name))?,
        }
    }
    let missing = sealed.into_iter().rev();
    Ok(missing
        .filter(|segment| !known.contains(&segment.first))
        .collect())
}

/// Hints that are being made.
struct HintMaking {
    log: Arc<dyn Log>,
    derived: Derived,
    segment: SegmentInfo,
    next: Offset,
    words: Vec<HintWord>,
}

impl HintMaking {
    fn new(log: Arc<dyn Log>, derived: Derived, segment: SegmentInfo) -> Self {
        Self {
            log,
            derived,
            next: segment.first,
            segment,
            words: Vec::new(),
        }
    }

    /// One slice of it; whether that was the last. Blocks.
    fn slice(&mut self) -> io::Result<bool> {
        let batch = self.log.read(self.next, READ_BYTES);
        let batch = batch.map_err(|error| io::Error::other(error.to_string()))?;
        for record in &batch.records {
            // What cannot be read now may be read by a newer version, which must look itself.
            let Ok(envelope) = Envelope::decode(&record.payload) else {
                return Ok(true);
            };
            if record.offset < self.segment.next {
                words_of(&envelope, &mut self.words);
            }
        }
        if self.words.len() > WORDS_MAX {
            return Ok(true);
        }
        // Few differ where many are the same, such as types.
        if self.words.len() > WORDS_MAX / 2 {
            self.words.sort_unstable();
            self.words.dedup();
        }
        let is_stuck = batch.next <= self.next;
        self.next = batch.next;
        if self.next < self.segment.next && !is_stuck {
            return Ok(false);
        }
        self.words.sort_unstable();
        self.words.dedup();
        let bytes = encode(&self.derived, &self.segment, &self.words);
        let path = path(&self.derived, self.segment.first);
        self.derived.vfs.write_atomic(&path, &bytes, 0o600)?;
        Ok(true)
    }
}

fn words_of(envelope: &Envelope, words: &mut Vec<HintWord>) {
    let event = &envelope.event;
    let mut add = |kind, text: &str| words.push(HintWord::of(kind, text));
    add(IndexedWord::Id, event.id());
    add(IndexedWord::Source, event.source());
    add(IndexedWord::Type, event.type_());
    add(IndexedWord::Entry, &envelope.entry);
    if let Some(subject) = event.text("subject") {
        add(IndexedWord::Subject, subject);
    }
    if let Some(request) = &envelope.request_id {
        add(IndexedWord::Request, request);
    }
    if let Some(trace) = envelope.trace_id() {
        add(IndexedWord::Trace, trace);
    }
}

pub(super) fn encode(derived: &Derived, segment: &SegmentInfo, words: &[HintWord]) -> Vec<u8> {
    let blocks = words.len().div_ceil(BLOCK_WORDS).max(1);
    let mut bytes = vec![0; HEAD_BYTES + blocks * BLOCK_BYTES];
    let blocks = u32::try_from(blocks).expect("there are fewer words");
    bytes[..HEAD_BYTES].copy_from_slice(&write_head(derived, segment, blocks));
    let (filled, _) = bytes[HEAD_BYTES..].as_chunks_mut::<BLOCK_BYTES>();
    for word in words {
        let block = &mut filled[word.block(blocks) as usize];
        for bit in word.bits() {
            block[bit / 8] |= 1 << (bit % 8);
        }
    }
    for (number, block) in (0..).zip(filled) {
        let sum = block_sum(derived, segment, number, &block[..BLOCK_BYTES - 4]);
        block[BLOCK_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}
