//! Any bytes, taken for a layer of an image, are unpacked inside of its root or are refused.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

/// A folder for this process, below the one of the operating system, which is fast if it is in memory.
static HOME: LazyLock<PathBuf> = LazyLock::new(|| {
    let home = std::env::temp_dir().join(format!("heddle-fuzz-{}", std::process::id()));
    std::fs::create_dir(&home).expect("a folder can be made");
    home
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::layer(bytes, &HOME));
