//! Seeds of fuzz targets and simple mutations of them, for the tests that try a target with every change.
//!
//! Included by the crates' tests, so that a promise is checked where it is made, also by those who never start a fuzzer.

use std::path::Path;

/// How many places of a seed are tampered with.
const PLACES_MAX: usize = 96;

/// Bytes that mean something to one reader or another.
const BYTES: &[u8] = b"\0\x01\x7f\x80\xff \n\r\t\"\\,:;=/[{(0-9";

/// Gives a promise every seed of its target, and each of them cut, shortened, doubled and changed in many places.
pub(crate) fn check(target: &str, promise: impl Fn(&[u8])) {
    check_in(PLACES_MAX, target, promise);
}

/// The same with fewer places, for a promise that takes long.
pub(crate) fn check_in(places: usize, target: &str, promise: impl Fn(&[u8])) {
    for seed in seeds(target) {
        promise(&seed);
        let step = (seed.len() / places).max(1);
        for at in (0..seed.len()).step_by(step) {
            let (before, rest) = seed.split_at(at);
            let (one, after) = rest.split_at(1);
            promise(before);
            promise(&[before, after].concat());
            promise(&[before, one, one, after].concat());
            for byte in BYTES {
                promise(&[before, &[*byte], after].concat());
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the working tree; no fault is injected here"
)]
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let folder = std::fs::read_dir(root.join(target)).expect("every target has seeds");
    let seeds: Vec<Vec<u8>> = folder
        .map(|entry| entry.and_then(|entry| std::fs::read(entry.path())))
        .collect::<Result<_, _>>()
        .expect("seeds can be read");
    assert!(!seeds.is_empty(), "{target} has no seeds");
    seeds
}
