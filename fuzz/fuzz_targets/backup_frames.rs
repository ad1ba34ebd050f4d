//! Any bytes, taken for a backup, are frames up to some place.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle::fuzzing::backup_frames(bytes));
