//! What was acknowledged is there after every crash, damage costs its own line and no other, and there is an end to it.

use heddle_api::audit::{AuditDoor, AuditOutcome};
use heddle_rt::vfs::{Crash, Open, Vfs as _};
use heddle_rt::{Chance, MemoryVfs};

use super::*;

const LINES: usize = 6;

fn world(vfs: &MemoryVfs) -> World {
    World {
        clock: Clock::simulated(Timestamp::UNIX_EPOCH),
        chance: Chance::seeded(1),
        vfs: vfs.shared(),
    }
}

fn open(vfs: &MemoryVfs) -> anyhow::Result<AuditJournal> {
    AuditJournal::open(Path::new("/data"), &world(vfs), &Tasks::new("test"))
}

fn entry(number: usize) -> AuditEntry {
    let mut entry = AuditEntry::new(AuditDoor::Resources, "create", "POST /api".to_owned());
    entry.name = Some(format!("number-{number}"));
    entry.outcome = AuditOutcome::Done;
    entry
}

/// Everything that can be read, oldest first.
fn entries(journal: &AuditJournal) -> Vec<AuditEntry> {
    let mut search = journal.search(AuditQuery::default(), u64::MAX, 0);
    let mut found = Vec::new();
    while search.next().is_some() {
        found.extend(search.step().unwrap().lines);
    }
    assert!(
        found.is_sorted_by(|newer, older| newer.number > older.number),
        "newest first, each once"
    );
    found.reverse();
    found.into_iter().map(|line| line.entry).collect()
}

/// Writes until something fails; says how many were acknowledged.
async fn write(vfs: &MemoryVfs) -> usize {
    let Ok(journal) = open(vfs) else { return 0 };
    for number in 0..LINES {
        if journal.append(&entry(number)).await.is_err() {
            return number;
        }
    }
    journal.close().await;
    LINES
}

#[tokio::test(start_paused = true)]
async fn no_acknowledged_line_is_lost_wherever_the_world_ends() {
    let whole = MemoryVfs::new();
    assert_eq!(write(&whole).await, LINES);
    let operations = whole.operations();
    assert!(operations > 2 * LINES as u64);
    for operation in 1..=operations {
        let vfs = MemoryVfs::new();
        vfs.crash_at(operation);
        let acknowledged = write(&vfs).await;
        for how in Crash::all(operation, 4) {
            let after = vfs.crash(how);
            let journal = open(&after).unwrap();
            let found = entries(&journal);
            assert!(
                (acknowledged..=acknowledged + 1).contains(&found.len()),
                "operation {operation}, {how:?}: {acknowledged} acknowledged, {} found",
                found.len()
            );
            for (number, found) in found.iter().enumerate() {
                assert_eq!(*found, entry(number), "operation {operation}, {how:?}");
            }
            // And it goes on.
            journal.append(&entry(99)).await.unwrap();
            assert_eq!(entries(&journal).last(), Some(&entry(99)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_bit_is_flipped_the_server_starts_and_the_neighbours_stay() {
    let whole = MemoryVfs::new();
    write(&whole).await;
    let dir = Path::new("/data").join(AUDIT);
    let mut told = 0;
    for name in whole.list(&dir).unwrap() {
        let path = dir.join(&name);
        let bytes = whole.read(&path).unwrap();
        for (at, byte) in bytes.iter().enumerate() {
            let vfs = whole.kill();
            let file = vfs.open(&path, Open::existing()).unwrap();
            let bit = 1 << (at % 8);
            file.write_at(at as u64, &[byte ^ bit]).unwrap();
            file.sync().unwrap();
            let journal = open(&vfs).unwrap();
            let found = entries(&journal);
            assert!(
                found.len() >= LINES - 1,
                "{name}, byte {at}: {}",
                found.len()
            );
            let expected: Vec<AuditEntry> = (0..LINES).map(entry).collect();
            assert!(
                found.iter().all(|found| expected.contains(found)),
                "{name}, byte {at}"
            );
            let (lines, damage) = journal.damage();
            let lost = LINES - found.len();
            assert!(
                lost as u64 <= lines,
                "{name}, byte {at}: {lost} lost, {lines} told"
            );
            told += damage.len();
            journal.append(&entry(99)).await.unwrap();
        }
    }
    assert!(told > 0, "damage is told");
}

#[tokio::test(start_paused = true)]
async fn a_torn_end_is_cut_off_and_a_directory_that_is_gone_is_made_again() {
    let vfs = MemoryVfs::new();
    write(&vfs).await;
    let dir = Path::new("/data").join(AUDIT);
    let journal = open(&vfs).unwrap();
    drop(journal.append(&entry(LINES)));
    let torn = vfs.kill();
    let names = torn.list(&dir).unwrap();
    let segment = names.iter().find(|name| name.ends_with(".log")).unwrap();
    let file = torn.open(&dir.join(segment), Open::existing()).unwrap();
    let end = file.len().unwrap();
    file.set_len(end - 9).unwrap();
    file.sync().unwrap();
    assert_eq!(entries(&open(&torn).unwrap()).len(), LINES);

    let gone = vfs.kill();
    for name in gone.list(&dir).unwrap() {
        gone.remove(&dir.join(name)).unwrap();
    }
    let journal = open(&gone).unwrap();
    assert_eq!(entries(&journal), []);
    journal.append(&entry(0)).await.unwrap();
    assert_eq!(entries(&journal), [entry(0)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_bounded_in_bytes_and_in_time_and_the_oldest_goes_first() {
    let vfs = MemoryVfs::new();
    let journal = open(&vfs).unwrap();
    let large = |number: usize| {
        let mut entry = entry(number);
        entry.groups = vec!["g".repeat(256); 40];
        entry
    };
    let count = 4 * usize::try_from(SEGMENT_BYTES).unwrap() / (40 * 256);
    for number in 0..count {
        journal.append(&large(number)).await.unwrap();
    }
    let segments = journal.log.segments().len();
    assert!(segments >= 4, "{segments}");
    let first = |journal: &AuditJournal| entries(journal).first().cloned();
    assert_eq!(first(&journal), Some(large(0)));

    let now = journal.clock.now();
    journal.retain_within(now, u64::MAX).await;
    assert_eq!(
        journal.log.segments().len(),
        segments,
        "nothing is too much"
    );
    journal.retain_within(now, 3 * SEGMENT_BYTES).await;
    let bytes = journal.log.stats().segments_bytes;
    assert!(bytes <= 3 * SEGMENT_BYTES, "{bytes}");
    let left = entries(&journal);
    assert_ne!(left.first(), Some(&large(0)));
    assert_eq!(left.last(), Some(&large(count - 1)));

    let later = now + AGE_MIN + SignedDuration::from_secs(1);
    let segments = journal.log.segments().len();
    for _ in 0..3 {
        journal.retain_within(later, u64::MAX).await;
        assert_eq!(
            journal.log.segments().len(),
            segments - 1,
            "a clock that jumps takes one a day"
        );
    }
    journal.clock.sleep(AGED_EVERY).await;
    journal.retain_within(later, u64::MAX).await;
    assert_eq!(journal.log.segments().len(), segments - 2);
    for _ in 0..10 {
        journal.clock.sleep(AGED_EVERY).await;
        journal.retain_within(later, u64::MAX).await;
    }
    assert_eq!(
        entries(&journal).last(),
        Some(&large(count - 1)),
        "what is written to stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_search_is_bounded_by_time_and_by_numbers() {
    let vfs = MemoryVfs::new();
    let journal = open(&vfs).unwrap();
    let begun = journal.clock.now();
    for number in 0..LINES {
        journal.append(&entry(number)).await.unwrap();
        journal.clock.sleep(Duration::from_secs(60)).await;
    }
    let found = |query: AuditQuery, below, floor| {
        let mut search = journal.search(query, below, floor);
        let mut numbers = Vec::new();
        while search.next().is_some() {
            let step = search.step().unwrap();
            numbers.extend(step.lines.iter().map(|line| line.number));
        }
        numbers
    };
    let minute = |number: i64| Some(begun + SignedDuration::from_mins(number));
    let query = |since, until| AuditQuery {
        since,
        until,
        ..AuditQuery::default()
    };
    assert_eq!(found(query(None, None), u64::MAX, 0), [6, 5, 4, 3, 2, 1]);
    assert_eq!(found(query(None, None), 4, 2), [3, 2]);
    assert_eq!(found(query(minute(2), None), u64::MAX, 0), [6, 5, 4, 3]);
    assert_eq!(found(query(minute(2), minute(4)), u64::MAX, 0), [4, 3]);
    assert_eq!(found(query(minute(9), None), u64::MAX, 0), [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_line_of_a_later_version_is_passed_over_and_counted() {
    let vfs = MemoryVfs::new();
    let journal = open(&vfs).unwrap();
    journal.append(&entry(0)).await.unwrap();
    let draft = Draft {
        stream: 0,
        key: 0,
        parts: [&[LAYOUT + 1], b"{}"],
    };
    journal.log.append(&[draft]).await.unwrap();
    journal.append(&entry(1)).await.unwrap();
    let mut search = journal.search(AuditQuery::default(), u64::MAX, 0);
    let step = search.step().unwrap();
    assert_eq!((step.lines.len(), step.unreadable), (2, 1));
    assert_eq!(search.next(), None);
}
