//! Kept small: the JSON of an object, told as what it shares with another of its resource.
//!
//! Objects of one resource have the same fields in the same order, the same words of the same controllers, the same notes
//! about who wrote what. One of them is the sample; of all others only this is kept:
//!
//! ```text
//!   packed   ( new bytes: count, bytes │ copy: count, where )*  and perhaps new bytes at the end
//! ```
//! Copies come from the sample or from what the text has had so far, which stands behind the sample as if both were one.
//! *Where* is told as the distance from the place at which the last copy would go on, so that texts which differ in a name
//! here and a time there pay one byte for it. Numbers are of variable length, seven bits a byte.
//!
//! All this is in memory only: nothing on disk depends on it, and a sample lives as long as something packed with it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Copies that go on where the last one would have are told in two bytes, others in three or four.
const COPY_ALONG_MIN: usize = 4;
const COPY_MIN: usize = 8;

/// A sample is made of this much at most; places in it fit two bytes.
const SAMPLE_BYTES_MAX: usize = 32 * 1024;

/// A text that needs more than this share of itself is unlike the sample.
const SHARE_WANTED: usize = 4;
/// A sample is replaced when unlike texts have cost this many times its size: however the texts are, old samples are a
/// small part of what is kept.
const PATIENCE: usize = 8;

/// The text that others are told by.
#[derive(Debug, Default)]
struct Sample(Box<[u8]>);

/// A text, packed.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    sample: Arc<Sample>,
    bytes: Box<[u8]>,
    /// Of the text.
    len: u32,
}

impl Packed {
    /// Without a sample: for texts that are made to be read once.
    pub(crate) fn alone(text: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 4);
        number(&mut bytes, text.len());
        bytes.extend_from_slice(text);
        Self::new(Arc::default(), bytes, text)
    }

    fn new(sample: Arc<Sample>, bytes: Vec<u8>, text: &[u8]) -> Self {
        let len = u32::try_from(text.len()).expect("objects are far smaller than 4 GiB");
        Self {
            sample,
            bytes: bytes.into(),
            len,
        }
    }

    /// How long the text is.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// What it takes, without the sample.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Puts the text behind what `out` has.
    pub(crate) fn unpack(&self, out: &mut Vec<u8>) {
        const SOUND: &str = "what was packed in this process is whole";
        let (sample, start) = (&self.sample.0, out.len());
        let mut rest = &*self.bytes;
        // Where the last copy would go on.
        let mut along = 0;
        while !rest.is_empty() {
            let new = take(&mut rest).expect(SOUND);
            let (bytes, behind) = rest.split_at(new);
            out.extend_from_slice(bytes);
            rest = behind;
            let Some(count) = take(&mut rest) else { break };
            let from = displaced(along + new, take(&mut rest).expect(SOUND));
            match from.checked_sub(sample.len()) {
                None => out.extend_from_slice(&sample[from..from + count]),
                Some(own) => out.extend_from_within(start + own..start + own + count),
            }
            along = from + count;
        }
    }
}

/// Finds places by the bytes that stand there.
#[derive(Debug)]
struct Places {
    /// By hash, the last place plus one.
    last: Box<[u32]>,
}

impl Places {
    fn new(len: usize) -> Self {
        let slots = len.next_power_of_two().clamp(64, SAMPLE_BYTES_MAX);
        Self {
            last: vec![0; slots].into(),
        }
    }

    /// The slot for what stands at the beginning of `text`; `None` when it is shorter than any copy.
    fn slot(&self, text: &[u8]) -> Option<usize> {
        let head = u64::from_le_bytes(*text.first_chunk::<COPY_MIN>()?);
        let hash = head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        Some(hash as usize & (self.last.len() - 1))
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        (self.last[self.slot(text)?] as usize).checked_sub(1)
    }

    fn put(&mut self, text: &[u8], place: usize) {
        if let (Some(slot), Ok(place)) = (self.slot(text), u32::try_from(place + 1)) {
            self.last[slot] = place;
        }
    }
}

/// A sample and what is needed to pack with it.
#[derive(Debug)]
struct Model {
    sample: Arc<Sample>,
    places: Places,
}

impl Model {
    fn new(text: Vec<u8>) -> Self {
        let mut places = Places::new(text.len());
        // From the end, so that of equal places the first is found: it has the longest way to go.
        for place in (0..text.len()).rev() {
            places.put(&text[place..], place);
        }
        Self {
            sample: Arc::new(Sample(text.into())),
            places,
        }
    }

    fn pack(&self, text: &[u8]) -> Packed {
        let sample = &*self.sample.0;
        let mut own = Places::new(text.len());
        let mut out = Vec::with_capacity(text.len() / 4 + 64);
        let (mut at, mut new_from, mut along) = (0, 0, 0);
        // How much at `from` is the same as at `at`.
        let same = |from: usize, at: usize| match from.checked_sub(sample.len()) {
            None => common(&sample[from..], &text[at..]),
            // No copy reaches into itself.
            Some(own) if own < at => common(&text[own..at], &text[at..]),
            Some(_) => 0,
        };
        while at < text.len() {
            let ahead = &text[at..];
            let next = along + (at - new_from);
            let mut best = (same(next, at), next);
            if best.0 < COPY_ALONG_MIN {
                best.0 = 0;
            }
            let found = [
                self.places.find(ahead),
                own.find(ahead).map(|place| sample.len() + place),
            ];
            for place in found.into_iter().flatten() {
                let count = same(place, at);
                if count >= COPY_MIN && count > best.0 {
                    best = (count, place);
                }
            }
            let (count, from) = best;
            if count == 0 {
                own.put(ahead, at);
                at += 1;
                continue;
            }
            number(&mut out, at - new_from);
            out.extend_from_slice(&text[new_from..at]);
            number(&mut out, count);
            number(&mut out, displacement(next, from));
            for place in at..at + count {
                own.put(&text[place..], place);
            }
            at += count;
            (new_from, along) = (at, from + count);
        }
        if new_from < text.len() {
            number(&mut out, text.len() - new_from);
            out.extend_from_slice(&text[new_from..]);
        }
        Packed::new(Arc::clone(&self.sample), out, text)
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The samples of all resources.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<HashMap<Arc<str>, Choice>>);

/// What the texts of one resource are told by now.
#[derive(Debug)]
struct Choice {
    model: Arc<Model>,
    /// What unlike texts have cost since it was chosen.
    excess: usize,
}

impl Samples {
    /// Packs a text of a resource. The first text is a sample to the others, and one that came to be unlike many is
    /// replaced.
    pub(crate) fn pack(&self, resource: &Arc<str>, text: &[u8]) -> Packed {
        let model = self.model(resource);
        let packed = model.pack(text);
        let excess = (packed.kept_bytes()).saturating_sub(text.len() / SHARE_WANTED);
        if excess > 0 {
            self.complain(resource, &model, excess, text);
        }
        packed
    }

    fn model(&self, resource: &Arc<str>) -> Arc<Model> {
        let mut choices = self.0.lock();
        if let Some(choice) = choices.get(resource) {
            return Arc::clone(&choice.model);
        }
        let model = Arc::new(Model::new(Vec::new()));
        let choice = Choice {
            model: Arc::clone(&model),
            excess: 0,
        };
        choices.insert(Arc::clone(resource), choice);
        model
    }

    fn complain(&self, resource: &Arc<str>, used: &Arc<Model>, excess: usize, text: &[u8]) {
        let mut choices = self.0.lock();
        let Some(choice) = choices.get_mut(resource) else {
            return;
        };
        let old = &used.sample.0;
        // Somebody else may have replaced it meanwhile.
        if !Arc::ptr_eq(&choice.model, used) {
            return;
        }
        choice.excess += excess;
        if choice.excess > PATIENCE * old.len() {
            let text = text.iter().chain(old).copied();
            choice.model = Arc::new(Model::new(text.take(SAMPLE_BYTES_MAX).collect()));
            choice.excess = 0;
        }
    }
}

fn number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number at the beginning of `rest`; `None` at its end.
fn take(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

/// How to get from one place to another: twice the distance, plus one for backwards.
fn displacement(from: usize, to: usize) -> usize {
    if to >= from {
        (to - from) * 2
    } else {
        (from - to) * 2 + 1
    }
}

fn displaced(from: usize, displacement: usize) -> usize {
    if displacement.is_multiple_of(2) {
        from + displacement / 2
    } else {
        from - displacement / 2
    }
}

#[cfg(test)]
mod tests;
