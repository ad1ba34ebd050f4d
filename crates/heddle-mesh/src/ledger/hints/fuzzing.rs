//! For the fuzzer: any bytes, taken for the hints of a segment.

use std::io;

use heddle_api::search::IndexedWord;
use heddle_rt::MemoryVfs;
use jiff::Timestamp;

use super::{BLOCK_BYTES, Derived, Hint, HintWord, SegmentInfo, ask, block_sum, path, write_head};

/// What words may set of a block; the rest of it is its checksum.
const BITS_BYTES: usize = BLOCK_BYTES - 4;
const WORDS: [&str; 4] = ["ord-1", "ord-2", "/shop", ""];

/// Any bytes are damaged, or are hints that say of each word what their bits say. One bit elsewhere is noticed wherever it is
/// looked at, and hints about another segment are none about this one.
///
/// # Panics
/// When the promise does not hold.
pub fn segment(soup: &[u8]) {
    let derived = Derived {
        vfs: MemoryVfs::new().shared(),
        dir: "hints".into(),
        mark: 7,
    };
    let made = derived.vfs.create_dir_all(&derived.dir);
    made.expect("memory takes it");
    let segment = SegmentInfo {
        first: 1,
        next: 1001,
        last_at: Timestamp::UNIX_EPOCH,
        bytes: 1 << 20,
        sealed: true,
    };
    let words = WORDS.map(|word| HintWord::of(IndexedWord::Id, word));
    put(&derived, &segment, soup).expect("memory takes it");
    ask(&derived, &segment, &words);

    let (blocks, _) = soup.as_chunks::<BITS_BYTES>();
    let Ok(count @ 1..) = u32::try_from(blocks.len()) else {
        return;
    };
    let mut whole = write_head(&derived, &segment, count).to_vec();
    for (number, bits) in (0..).zip(blocks) {
        whole.extend_from_slice(bits);
        let sum = block_sum(&derived, &segment, number, bits);
        whole.extend_from_slice(&sum.to_le_bytes());
    }
    put(&derived, &segment, &whole).expect("memory takes it");
    let said = words.map(|word| ask(&derived, &segment, &[word]));
    for (word, said) in words.into_iter().zip(said) {
        let block = usize::try_from(word.block(count)).expect("one of those there are");
        let is_set = |bit: usize| blocks[block][bit / 8] & (1 << (bit % 8)) != 0;
        let expected = match word.bits().all(is_set) {
            true => Hint::Look,
            false => Hint::SurelyNot,
        };
        assert_eq!(said, expected);
    }
    let longer = SegmentInfo {
        next: segment.next + 1,
        ..segment
    };
    assert_eq!(ask(&derived, &longer, &words), Hint::Damaged);
    let place = soup.iter().map(|byte| usize::from(*byte)).sum::<usize>() % whole.len();
    whole[place] ^= 1;
    put(&derived, &segment, &whole).expect("memory takes it");
    for (word, before) in words.into_iter().zip(said) {
        let now = ask(&derived, &segment, &[word]);
        assert!(now == Hint::Damaged || now == before, "{now:?} at {place}");
    }
}

fn put(derived: &Derived, segment: &SegmentInfo, bytes: &[u8]) -> io::Result<()> {
    let path = path(derived, segment.first);
    derived.vfs.write_atomic(&path, bytes, 0o600)
}
