//! Making hints for segments that are full and have none, aside and one at a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::attributes::Attributes as _;
use heddle_api::search::IndexedWord;

use super::{
    BLOCK_BYTES, BLOCK_WORDS, HEAD_BYTES, HintWord, Hints, SUFFIX, block_sum, path, write_head,
};
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
    let hints = Arc::clone(&shared.hints);
    let missing = shared
        .aside
        .slice(move || missing(&looking, &*looked, &hints));
    let Ok(missing) = missing.await else {
        return Ok(());
    };
    for segment in missing? {
        let first = segment.first;
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
            match state? {
                MakingState::Going => {}
                MakingState::Made => break,
                MakingState::Impossible => {
                    shared.hints.without.lock().insert(first);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Full segments without hints of which some can be made, newest first: what is recent is asked for most.
fn missing(derived: &Derived, log: &dyn Log, hints: &Hints) -> io::Result<Vec<SegmentInfo>> {
    let sealed: Vec<SegmentInfo> = log
        .segments()
        .into_iter()
        .filter(|one| one.sealed)
        .collect();
    let is_of = |first: Offset| sealed.iter().any(|segment| segment.first == first);
    let mut known = {
        let mut without = hints.without.lock();
        without.retain(|first| is_of(*first));
        without.clone()
    };
    if sealed.is_empty() {
        return Ok(sealed);
    }
    make_dir(derived)?;
    for name in derived.vfs.list(&derived.dir)? {
        let number = name.strip_suffix(SUFFIX).and_then(|name| name.parse().ok());
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

/// The directory itself and none above it: where the log is no longer, nothing is begun anew.
pub(super) fn make_dir(derived: &Derived) -> io::Result<()> {
    let above = derived.dir.parent();
    let above = above.filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above
        && !derived.vfs.exists(above)?
    {
        let text = format!("there is no directory {}", above.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    derived.vfs.create_dir_all(&derived.dir)
}

/// How far hints are that are being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MakingState {
    Going,
    Made,
    /// The segment cannot be read whole, or has too many words: what is in it is found by looking.
    Impossible,
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

    /// One slice of it. Blocks.
    fn slice(&mut self) -> io::Result<MakingState> {
        let batch = self.log.read(self.next, READ_BYTES);
        let batch = batch.map_err(|error| io::Error::other(error.to_string()))?;
        let end = self.segment.next;
        // What is damaged now may have been one of those that are looked for.
        if batch.damaged.iter().any(|lost| lost.start < end) {
            return Ok(MakingState::Impossible);
        }
        for record in &batch.records {
            // What cannot be read now may be read by a newer version, which must look itself.
            let Ok(envelope) = Envelope::decode(&record.payload) else {
                return Ok(MakingState::Impossible);
            };
            if record.offset < self.segment.next {
                words_of(&envelope, &mut self.words);
            }
        }
        if self.words.len() > WORDS_MAX {
            return Ok(MakingState::Impossible);
        }
        // Few differ where many are the same, such as types.
        if self.words.len() > WORDS_MAX / 2 {
            self.words.sort_unstable();
            self.words.dedup();
        }
        if batch.next < end && batch.next <= self.next {
            return Ok(MakingState::Impossible);
        }
        self.next = batch.next;
        if self.next < end {
            return Ok(MakingState::Going);
        }
        self.words.sort_unstable();
        self.words.dedup();
        let bytes = encode(&self.derived, &self.segment, &self.words);
        let path = path(&self.derived, self.segment.first);
        self.derived.vfs.write_atomic(&path, &bytes, 0o600)?;
        Ok(MakingState::Made)
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
