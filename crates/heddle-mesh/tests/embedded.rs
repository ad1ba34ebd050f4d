//! The embedded log keeps the contract of a log, on a simulated disk and on a real one.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "soup/disk.rs"]
mod soup;

use std::path::PathBuf;
use std::sync::Arc;

use heddle_mesh::log::embedded::{EmbeddedLog, Options};
use heddle_mesh::log::{Draft, Log, Reserve, conformance};
use heddle_rt::vfs::{DiskVfs, MemoryVfs, Vfs};
use heddle_rt::{Clock, Tasks};
use heddle_store::Mode;
use proptest::prelude::*;

fn open(vfs: Arc<dyn Vfs>, dir: impl Into<PathBuf>, mode: Mode) -> Arc<dyn Log> {
    let options = Options {
        vfs,
        dir: dir.into(),
        clock: Clock::system(),
        tasks: Tasks::new("test"),
        mode,
        segment_bytes: Some(64 << 10),
        reserve: Reserve::default(),
    };
    Arc::new(EmbeddedLog::open(options).unwrap())
}

#[tokio::test]
async fn on_a_simulated_disk_it_keeps_the_contract() {
    conformance::all(|| async { open(MemoryVfs::new().shared(), "/log", Mode::Inline) }).await;
}

#[tokio::test]
async fn on_a_real_disk_it_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let mut number = 0;
    conformance::all(|| {
        number += 1;
        let place = dir.path().join(number.to_string());
        async move { open(DiskVfs::shared(), place, Mode::Thread) }
    })
    .await;
}

#[tokio::test]
async fn the_journal_takes_what_many_large_dead_letters_need_at_once() {
    let log = open(MemoryVfs::new().shared(), "/log", Mode::Inline);
    // As large as an event may be, behind as many other lines as a record takes.
    let line = vec![7; (1 << 20) + (512 << 10)];
    let draft = Draft {
        key: 1,
        parts: [&line, &line[..256 << 10]],
    };
    let drafts = vec![draft; 32];
    assert_eq!(log.acknowledge(&drafts).await, Ok(1..33));
}

/// Numbers that lengths and kinds are made of, more often than any others.
fn almost_record() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(0_u8), 3 => 0..16_u8, 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..256)
}

proptest! {
    #[test]
    fn whatever_lies_on_the_disk_is_read_or_refused(soup in almost_record()) {
        soup::disk(&soup);
    }
}
