//! Appending and reading, when nothing goes wrong.

use std::time::Duration;

use heddle_rt::{Clock, MemoryVfs};
use heddle_store::events::{AppendError, Draft, EventLog, RemoveError, Slot};
use heddle_store::{Health, OpenError};
use jiff::Timestamp;

use crate::support::*;

#[tokio::test]
async fn offsets_begin_at_one_and_the_records_of_an_append_are_neighbours() {
    let log = open(&MemoryVfs::new());
    assert_eq!((log.first(), log.committed()), (1, 1));
    let drafts = [draft(5, b"one"), draft(0, b""), draft(5, b"three")];
    assert_eq!(log.append(&drafts).await, Ok(1..4));
    assert_eq!(log.append(&[]).await, Ok(4..4));
    assert_eq!(one(&log, "four").await, Ok(4));
    assert_eq!(texts(&log), ["one", "", "three", "four"]);
    assert_eq!((log.first(), log.committed()), (1, 5));
    let Slot::Record(record) = log.get(3).unwrap() else {
        panic!("it was appended")
    };
    assert_eq!((record.offset, record.stream, record.key), (3, 7, 5));
    assert_eq!(log.get(5).unwrap(), Slot::Gone);
    assert_eq!(log.find(5, 10).unwrap(), [1, 3]);
    assert_eq!(log.find(5, 1).unwrap(), [1]);
    assert!(log.find(0, 10).unwrap().is_empty());
    assert_eq!(log.health(), Health::Serving);
}

#[tokio::test]
async fn what_is_recent_is_read_from_memory_and_is_the_same() {
    let vfs = MemoryVfs::new();
    let mut options = options_on(vfs.shared());
    options.limits.cache_bytes_max = 20_000;
    let log = EventLog::open(options).unwrap();
    assert_eq!(log.recent(1, 100), None, "there is nothing yet");
    for number in 0..40 {
        let payload = format!("{number}").repeat(20);
        log.append(&[draft(1, payload.as_bytes()), draft(2, b"")])
            .await
            .unwrap();
    }
    let oldest = (1..=80)
        .find(|offset| log.recent(*offset, 1).is_some())
        .unwrap();
    assert!(oldest > 1, "the oldest made room");
    assert_eq!(log.recent(81, 100), None, "not there yet");
    let reader = open(&vfs.kill());
    for from in oldest..=80 {
        for bytes_max in [1, 30, 1_000_000] {
            let recent = log.recent(from, bytes_max).unwrap();
            let bytes: usize = recent.iter().map(|record| record.payload.len()).sum();
            let last = recent.last().unwrap().payload.len();
            assert!(bytes - last < bytes_max, "no more than asked for");
            let files: Vec<_> = all(&reader)
                .into_iter()
                .filter(|record| record.offset >= from)
                .take(recent.len())
                .collect();
            assert_eq!(recent, files);
        }
    }
    let all: Vec<_> = log.recent(oldest, usize::MAX).unwrap();
    assert_eq!(all.last().unwrap().offset, 80);
    assert!(log.stats().cache_bytes <= 20_000);
}

#[tokio::test]
async fn too_much_at_once_is_refused() {
    let mut options = options_on(MemoryVfs::new().shared());
    options.limits.record_bytes_max = 100;
    options.limits.pending_bytes_max = 1000;
    let log = EventLog::open(options).unwrap();
    let (bytes, bytes_max) = (101, 100);
    let refused = one(&log, &"x".repeat(bytes)).await;
    assert_eq!(refused, Err(AppendError::TooLarge { bytes, bytes_max }));
    let many = [draft(0, b"0123456789"); 20];
    let refused = log.append(&many).await.unwrap_err();
    let bytes_max = 1000;
    assert_eq!(
        refused,
        AppendError::TooLarge {
            bytes: 20 * 72,
            bytes_max
        }
    );
    assert_eq!(one(&log, "small").await, Ok(1));
}

#[tokio::test]
async fn segments_are_sealed_by_size_and_by_request_and_removed_for_good() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    for number in 0..20 {
        let payload = format!("{number:0>100}");
        log.append(&[draft(number + 1, payload.as_bytes())])
            .await
            .unwrap();
    }
    let segments = log.segments();
    assert!(segments.len() > 1);
    let last = segments.last().unwrap();
    assert!(
        !last.sealed
            && segments[..segments.len() - 1]
                .iter()
                .all(|segment| segment.sealed)
    );
    assert!(
        segments
            .windows(2)
            .all(|pair| pair[0].next == pair[1].first)
    );
    let active = last.first;
    let refused = log.remove_segment(active).await;
    assert!(matches!(refused, Err(RemoveError::Active { .. })));
    log.seal();
    log.seal();
    assert!(log.segments().iter().all(|segment| segment.sealed));
    log.remove_segment(active).await.unwrap();
    let refused = log.remove_segment(active).await;
    assert!(matches!(refused, Err(RemoveError::NotFound { .. })));
    // The end is gone, and still no offset comes twice.
    assert_eq!(log.committed(), 21);
    let batch = log.read(active, 100).unwrap();
    assert_eq!((batch.records.len(), batch.next), (0, 21));
    let first = log.first();
    log.remove_segment(first).await.unwrap();
    for log in [&log, &open(&vfs.kill())] {
        assert_eq!(log.damage(), []);
        assert_eq!(log.committed(), 21);
        assert_eq!(log.read(1, 1).unwrap().records[0].offset, log.first());
        assert!(log.find(20, 1).unwrap().is_empty());
        assert_eq!(log.find(log.first(), 1).unwrap(), [log.first()]);
    }
    drop(log);
    let reopened = open(&vfs.kill());
    assert_eq!(one(&reopened, "next").await, Ok(21));
}

#[tokio::test]
async fn a_log_without_any_segment_left_goes_on_where_it_was() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    one(&log, "a").await.unwrap();
    log.seal();
    log.remove_segment(1).await.unwrap();
    assert_eq!((log.first(), log.committed()), (2, 2));
    let reopened = open(&vfs.kill());
    assert_eq!((reopened.first(), reopened.committed()), (2, 2));
    assert_eq!(one(&reopened, "b").await, Ok(2));
    assert_eq!(reopened.damage(), []);
}

#[tokio::test(start_paused = true)]
async fn a_time_leads_to_the_first_record_accepted_then() {
    let vfs = MemoryVfs::new();
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let clock = Clock::simulated(start);
    let mut options = options_on(vfs.shared());
    options.clock = clock.clone();
    let log = EventLog::open(options).unwrap();
    for number in 0..30 {
        one(&log, &format!("{number:0>120}")).await.unwrap();
        clock.sleep(Duration::from_secs(10)).await;
    }
    let after = |seconds| start + Duration::from_secs(seconds);
    for log in [&log, &open(&vfs.kill())] {
        assert_eq!(log.at_time(Timestamp::UNIX_EPOCH), 1);
        assert_eq!(log.at_time(start), 1);
        for number in 0..29 {
            assert_eq!(log.at_time(after(number * 10 + 1)), number + 2);
            assert_eq!(log.at_time(after(number * 10 + 10)), number + 2);
        }
        assert_eq!(log.at_time(after(291)), 31);
    }
}

#[tokio::test(start_paused = true)]
async fn time_as_the_log_tells_it_never_goes_back() {
    let vfs = MemoryVfs::new();
    let open_at = |start: &str| {
        let mut options = options_on(vfs.shared());
        options.clock = Clock::simulated(start.parse().unwrap());
        EventLog::open(options).unwrap()
    };
    let log = open_at("2026-01-01T00:00:00Z");
    one(&log, "a").await.unwrap();
    log.close().await;
    let log = open_at("2025-01-01T00:00:00Z");
    one(&log, "b").await.unwrap();
    let times: Vec<String> = all(&log).iter().map(|r| r.at.to_string()).collect();
    assert_eq!(times, ["2026-01-01T00:00:00Z"; 2]);
}

#[tokio::test]
async fn a_log_is_open_once_and_can_be_closed() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    assert!(matches!(try_open(&vfs), Err(OpenError::Busy { .. })));
    one(&log, "a").await.unwrap();
    log.close().await;
    log.close().await;
    assert_eq!(one(&log, "b").await, Err(AppendError::Closed));
    let refused = log.remove_segment(1).await;
    assert!(matches!(refused, Err(RemoveError::Closed)));
    assert_eq!(texts(&log), ["a"]);
    let again = open(&vfs);
    assert_eq!(texts(&again), ["a"]);
    assert_eq!(again.segments().len(), 1, "a small segment is continued");
    assert_eq!(one(&again, "b").await, Ok(2));
    assert_eq!(again.segments().len(), 1);
}

#[tokio::test]
async fn an_append_larger_than_a_segment_gets_one_of_its_own() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    one(&log, "small").await.unwrap();
    let payload = vec![b'x'; 5000];
    let drafts: Vec<Draft<'_>> = (1..=12).map(|key| draft(key, &payload)).collect();
    assert_eq!(log.append(&drafts).await, Ok(2..14));
    one(&log, "small").await.unwrap();
    let reopened = open(&vfs.kill());
    assert_eq!(all(&reopened).len(), 14);
    assert_eq!(reopened.find(12, 1).unwrap(), [13]);
}
