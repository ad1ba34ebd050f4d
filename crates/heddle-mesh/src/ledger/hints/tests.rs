//! What was put in is never denied, little else is let pass, and damage is noticed.

use std::sync::Arc;

use heddle_api::search::IndexedWord;
use heddle_rt::vfs::{MemoryVfs, Open, Vfs};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::build::{encode, make_dir};
use super::{Hint, HintWord, Hints, ask, path};
use crate::log::{Derived, SegmentInfo};

fn derived() -> Derived {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new().shared();
    vfs.create_dir_all("hints".as_ref()).unwrap();
    Derived {
        vfs,
        dir: "hints".into(),
        mark: 7,
    }
}

fn segment(first: u64) -> SegmentInfo {
    SegmentInfo {
        first,
        next: first + 1000,
        last_at: Timestamp::UNIX_EPOCH,
        bytes: 1 << 20,
        sealed: true,
    }
}

fn word(number: u32) -> HintWord {
    HintWord::of(IndexedWord::Id, &format!("id-{number}"))
}

fn keep(derived: &Derived, segment: &SegmentInfo) {
    let words: Vec<HintWord> = (0..1000).map(word).collect();
    let bytes = encode(derived, segment, &words);
    let path = path(derived, segment.first);
    derived.vfs.write_atomic(&path, &bytes, 0o600).unwrap();
}

#[test]
fn what_is_there_is_never_denied_and_little_else_is_let_pass() {
    let (derived, segment) = (derived(), segment(1));
    assert_eq!(ask(&derived, &segment, &[word(1)]), Hint::Missing);
    keep(&derived, &segment);
    for number in 0..1000 {
        assert_eq!(ask(&derived, &segment, &[word(number)]), Hint::Look);
    }
    let others = 10_000..30_000;
    let passed = others.filter(|number| ask(&derived, &segment, &[word(*number)]) == Hint::Look);
    assert!(passed.count() < 400, "at most one in fifty");
    assert_eq!(
        ask(&derived, &segment, &[word(1), word(10_000), word(10_001)]),
        Hint::SurelyNot
    );
    let as_subject = HintWord::of(IndexedWord::Subject, "id-1");
    assert_eq!(ask(&derived, &segment, &[as_subject]), Hint::SurelyNot);
}

#[test]
fn what_is_damaged_or_speaks_of_another_segment_is_thrown_away_and_denies_nothing() {
    let (derived, segment) = (derived(), segment(1));
    let hints = Hints {
        derived: Some(derived.clone()),
        without: Mutex::default(),
    };
    let path = path(&derived, segment.first);
    let kept = || derived.vfs.exists(&path).unwrap();
    for byte in [0, 9, 20, 50, 64, 100, 124] {
        keep(&derived, &segment);
        let file = derived.vfs.open(&path, Open::existing()).unwrap();
        let mut whole = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_at(0, &mut whole).unwrap();
        // The same place in each block.
        for at in (byte..whole.len()).step_by(64) {
            whole[at] ^= 1;
        }
        file.write_at(0, &whole).unwrap();
        assert!(hints.may_have(&segment, &[word(70_000)]), "byte {byte}");
        assert!(!kept(), "byte {byte}");
    }
    keep(&derived, &segment);
    let file = derived.vfs.open(&path, Open::existing()).unwrap();
    file.set_len(64).unwrap();
    assert!(hints.may_have(&segment, &[word(70_000)]));
    assert!(!kept());
    keep(&derived, &segment);
    assert!(!hints.may_have(&segment, &[word(70_000)]));
    let longer = SegmentInfo {
        next: segment.next + 1,
        ..segment
    };
    assert!(hints.may_have(&longer, &[word(70_000)]));
    assert!(!kept());
}

#[test]
fn where_the_log_is_gone_no_directory_is_made() {
    let here = derived();
    make_dir(&here).unwrap();
    let gone = Derived {
        dir: "gone/hints".into(),
        ..here
    };
    let error = make_dir(&gone).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    assert!(!gone.vfs.exists("gone".as_ref()).unwrap());
}
