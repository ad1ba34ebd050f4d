//! What every engine of the log must do. Each function is one promise; an engine's tests call [`all`].
//!
//! Not compiled for tests only: engines of other crates run it too.

use std::sync::Arc;

use super::{Draft, Log, Lookup, Offset, Record};

/// Runs everything, each on a new and empty log.
///
/// # Panics
/// When a promise is broken; that is the report.
pub async fn all<F>(mut open: impl FnMut() -> F)
where
    F: Future<Output = Arc<dyn Log>>,
{
    offsets_grow_by_one_from_one(&*open().await).await;
    what_was_appended_is_read_byte_for_byte(&*open().await).await;
    a_read_gives_at_least_one_record_and_says_where_to_go_on(&*open().await).await;
    a_key_finds_its_records_oldest_first(&*open().await).await;
    waiting_ends_when_something_is_safe(open().await).await;
    a_time_finds_the_first_record_at_or_after_it(&*open().await).await;
    the_journal_is_a_log_of_its_own(&*open().await).await;
    snapshots_come_back_newest_first_and_few(&*open().await).await;
    trimming_removes_a_segment_and_nothing_else(&*open().await).await;
    a_segment_in_use_is_not_trimmed(&*open().await).await;
}

/// Appends texts with key 0, one append each.
async fn fill(log: &dyn Log, texts: impl Iterator<Item = String>) {
    for text in texts {
        append(log, 0, &text).await;
    }
}

async fn append(log: &dyn Log, key: u64, text: &str) -> Offset {
    let (head, body) = text.as_bytes().split_at(text.len() / 2);
    let draft = Draft {
        key,
        parts: [head, body],
    };
    let range = log
        .append(&[draft])
        .await
        .expect("an engine in good health takes an event");
    assert_eq!(range.end, range.start + 1, "one draft is one record");
    range.start
}

fn record_at(log: &dyn Log, offset: Offset) -> Option<Record> {
    log.get(offset).expect("readable").found()
}

fn texts(records: &[Record]) -> Vec<String> {
    let text = |record: &Record| String::from_utf8_lossy(&record.payload).into_owned();
    records.iter().map(text).collect()
}

async fn offsets_grow_by_one_from_one(log: &dyn Log) {
    assert_eq!(log.bounds(), 1..1, "an empty log begins and ends at 1");
    assert_eq!(append(log, 0, "a").await, 1);
    let draft = |text: &'static str| Draft {
        key: 0,
        parts: [text.as_bytes(), &[]],
    };
    let range = log.append(&[draft("b"), draft("c"), draft("d")]).await;
    assert_eq!(range, Ok(2..5), "drafts of one append lie side by side");
    assert_eq!(log.bounds(), 1..5);
}

async fn what_was_appended_is_read_byte_for_byte(log: &dyn Log) {
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let draft = Draft {
        key: 7,
        parts: [&bytes[..1000], &bytes[1000..]],
    };
    let range = log.append(&[draft]).await.expect("taken");
    let record = record_at(log, range.start).expect("there");
    assert_eq!(record.payload, bytes);
    assert_eq!(record.offset, range.start);
    assert_eq!(
        log.get(range.end),
        Ok(Lookup::Gone),
        "nothing lies beyond the end"
    );
}

async fn a_read_gives_at_least_one_record_and_says_where_to_go_on(log: &dyn Log) {
    fill(log, (1..=50).map(|number| format!("event {number}"))).await;
    let mut next = 1;
    let mut seen = Vec::new();
    while next < log.bounds().end {
        let batch = log.read(next, 20).expect("readable");
        assert!(batch.next > next, "every read gets further");
        assert_eq!(
            batch.records.first().map(|record| record.offset),
            Some(next)
        );
        seen.extend(texts(&batch.records));
        next = batch.next;
    }
    let expected: Vec<String> = (1..=50).map(|number| format!("event {number}")).collect();
    assert_eq!(seen, expected);
    let end = log.read(next, 20).expect("readable");
    assert!(
        end.records.is_empty(),
        "nothing is read beyond what is safe"
    );
}

async fn a_key_finds_its_records_oldest_first(log: &dyn Log) {
    for number in 0..40_u64 {
        append(log, number % 4, &format!("{number}")).await;
    }
    let expected: Vec<Offset> = (0..10).map(|number| number * 4 + 3).collect();
    assert_eq!(log.find(2, 100).expect("readable"), expected);
    assert_eq!(log.find(2, 3).expect("readable"), expected[..3]);
    assert_eq!(log.find(99, 3).expect("readable"), Vec::<Offset>::new());
    assert_eq!(log.find_from(2, 0).expect("readable"), expected);
    assert_eq!(log.find_from(2, 19).expect("readable"), expected[4..]);
    assert_eq!(log.find_from(2, 20).expect("readable"), expected[5..]);
}

async fn waiting_ends_when_something_is_safe(log: Arc<dyn Log>) {
    let waiting = log.beyond(1);
    append(&*log, 0, "a").await;
    assert_eq!(waiting.await, 2);
    assert_eq!(log.beyond(1).await, 2, "what is there is not waited for");
}

async fn a_time_finds_the_first_record_at_or_after_it(log: &dyn Log) {
    fill(log, (0..10).map(|number| number.to_string())).await;
    let fifth = record_at(log, 5).expect("there").at;
    let found = log.at_time(fifth);
    assert!(
        (1..=5).contains(&found),
        "the record itself, or an earlier one of the same time"
    );
    assert_eq!(record_at(log, found).expect("there").at, fifth);
    assert_eq!(log.at_time(jiff::Timestamp::MIN), 1);
    assert_eq!(log.at_time(jiff::Timestamp::MAX), log.bounds().end);
}

async fn the_journal_is_a_log_of_its_own(log: &dyn Log) {
    append(log, 0, "an event").await;
    let line = Draft {
        key: 5,
        parts: [b"a line", &[]],
    };
    assert_eq!(log.acknowledge(&[line, line]).await, Ok(1..3));
    assert_eq!(log.bounds(), 1..2, "lines are not events");
    let journal = log.journal();
    assert_eq!(journal.bounds(), 1..3);
    assert_eq!(journal.find(5, 10).expect("readable"), [1, 2]);
    assert_eq!(
        texts(&journal.read(1, 1 << 20).expect("readable").records),
        ["a line", "a line"]
    );
}

async fn snapshots_come_back_newest_first_and_few(log: &dyn Log) {
    let journal = log.journal();
    assert!(journal.snapshots().expect("readable").is_empty());
    for number in [1_u64, 2, 30] {
        journal
            .keep_snapshot(number, &[number as u8; 9])
            .expect("kept");
    }
    let kept = journal.snapshots().expect("readable");
    assert_eq!(kept, [(30, vec![30; 9]), (2, vec![2; 9])]);
}

/// Enough records that every engine has a sealed segment, however large its segments are.
async fn fill_segments(log: &dyn Log) {
    let text = "x".repeat(4000);
    let mut appended = 0;
    while log
        .segments()
        .iter()
        .filter(|segment| segment.sealed)
        .count()
        < 2
    {
        append(log, 3, &text).await;
        appended += 1;
        assert!(
            appended < 100_000,
            "open the engine with small stretches for this suite"
        );
    }
}

async fn trimming_removes_a_segment_and_nothing_else(log: &dyn Log) {
    fill_segments(log).await;
    let segments = log.segments();
    let (gone, kept) = (segments[0], segments[1]);
    log.trim(gone.first)
        .await
        .expect("a sealed stretch can be trimmed");
    assert_eq!(log.get(gone.first), Ok(Lookup::Gone));
    assert!(record_at(log, kept.first).is_some());
    assert_eq!(log.bounds().start, kept.first);
    let batch = log.read(1, 1).expect("readable");
    assert_eq!(
        batch.records.first().map(|record| record.offset),
        Some(kept.first)
    );
    let found = log.find(3, 1).expect("readable");
    assert_eq!(found, [kept.first], "the index has forgotten it too");
}

async fn a_segment_in_use_is_not_trimmed(log: &dyn Log) {
    append(log, 0, "a").await;
    assert!(log.trim(1).await.is_err());
    assert!(record_at(log, 1).is_some());
}
