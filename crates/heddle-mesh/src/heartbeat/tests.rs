//! The board by itself, with invented times.

use std::time::Duration;

use heddle_api::dataplane::{HeartbeatReading, HeartbeatTarget};

use super::PathFacts;
use super::board::{Board, SourceRefusal};
use crate::faults::InjectedFaults;
use crate::routes::Table;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn target(application: &str, namespace: &str, interval: u64) -> HeartbeatTarget {
    HeartbeatTarget {
        application: application.to_owned(),
        namespace: namespace.to_owned(),
        broker: "default".to_owned(),
        interval: seconds(interval),
    }
}

fn reading(board: &Board, target: &HeartbeatTarget, now: u64) -> HeartbeatReading {
    let (table, faults) = (Table::empty(), InjectedFaults::default());
    let facts = PathFacts {
        table: &table,
        held: None,
        faults: &faults,
    };
    board.reading(target, seconds(now), &facts)
}

/// A board with one target at an interval of ten seconds, of which heartbeats were sent at these times.
fn sent_at(times: &[u64]) -> (Board, HeartbeatTarget, Vec<u64>) {
    let target = target("shop", "team", 10);
    let mut board = Board::default();
    board.follow(std::slice::from_ref(&target), Duration::ZERO);
    let mut send = |at: &u64| {
        let sent = board.take_due(seconds(*at)).expect("one is due");
        board.published("shop", sent.sequence, None, seconds(*at));
        sent.sequence
    };
    let sequences = times.iter().map(&mut send).collect();
    (board, target, sequences)
}

#[test]
fn one_is_missed_after_five_seconds_and_found_again_within_three_intervals() {
    let (mut board, target, sequences) = sent_at(&[0, 10]);
    let streak = |board: &Board, now| {
        let reading = reading(board, &target, now);
        (reading.misses, reading.hits)
    };
    let before = reading(&board, &target, 4);
    assert_eq!(
        (before.misses, before.age),
        (0, None),
        "it is too early to tell"
    );
    assert_eq!(before.since, Some(seconds(4)));
    assert_eq!(streak(&board, 14), (1, 0));
    assert_eq!(streak(&board, 15), (2, 0));
    // The first one comes late, and the second one is still missing.
    board.arrived("shop", "team", sequences[0], seconds(30));
    assert_eq!(streak(&board, 30), (1, 0));
    board.arrived("shop", "team", sequences[1], seconds(41));
    assert_eq!(streak(&board, 41), (1, 0), "it is too old");
    let after = reading(&board, &target, 41);
    assert_eq!(after.age, Some(seconds(11)));
    assert_eq!(after.end_to_end, Some(seconds(30)));
}

#[test]
fn the_hop_with_the_largest_gap_is_the_slowest() {
    let times = |channel: u64, broker: u64, trigger: u64, delivery: u64| {
        let (mut board, target, sequences) = sent_at(&[0]);
        let (first, mut at) = (sequences[0], channel);
        board.published("shop", first, None, seconds(at));
        at += broker;
        board.stamp("shop", "team", first, |beat| {
            (beat.scanned, beat.matched) = (Some(seconds(at)), Some(seconds(at)));
        });
        at += trigger;
        board.stamp("shop", "team", first, |beat| {
            beat.attempted = Some(seconds(at));
        });
        board.arrived("shop", "team", first, seconds(at + delivery));
        let slowest = reading(&board, &target, 29).slowest.unwrap();
        (slowest.hop, slowest.object, slowest.took.as_secs())
    };
    let cases = [
        ([6, 1, 1, 1], "channel", "channel/kyma-integration/shop"),
        ([1, 7, 1, 1], "broker", "broker/team/default"),
        ([1, 1, 8, 1], "trigger", "heartbeat/team/shop"),
        ([1, 1, 1, 9], "delivery", "heartbeat/team/shop"),
    ];
    for ([channel, broker, trigger, delivery], hop, object) in cases {
        let longest = channel.max(broker).max(trigger).max(delivery);
        let found = times(channel, broker, trigger, delivery);
        assert_eq!(found, (hop.to_owned(), object.to_owned(), longest));
    }
}

#[test]
fn what_is_met_before_its_publisher_is_told_was_not_kept_up_by_its_channel() {
    let target = target("shop", "team", 10);
    let mut board = Board::default();
    board.follow(std::slice::from_ref(&target), Duration::ZERO);
    let first = board.take_due(Duration::ZERO).unwrap().sequence;
    board.stamp("shop", "team", first, |beat| {
        (beat.scanned, beat.matched) = (Some(seconds(1)), Some(seconds(1)));
        beat.attempted = Some(seconds(2));
    });
    board.published("shop", first, None, seconds(8));
    board.arrived("shop", "team", first, seconds(9));
    let slowest = reading(&board, &target, 9).slowest.unwrap();
    assert_eq!(
        (slowest.hop.as_str(), slowest.took),
        ("delivery", seconds(7))
    );
}

#[test]
fn what_is_refused_is_missed_at_once() {
    let (mut board, target, sequences) = sent_at(&[0]);
    let refusal = SourceRefusal {
        hop: "source",
        object: "httpsource/x".into(),
        why: "503".into(),
    };
    board.published("shop", sequences[0], Some(refusal), seconds(0));
    let reading = reading(&board, &target, 0);
    assert_eq!(reading.misses, 1);
    let stuck = reading.stuck.unwrap();
    assert_eq!(
        (stuck.hop.as_str(), stuck.object.as_str()),
        ("source", "httpsource/x")
    );
}

#[test]
fn rows_go_on_when_single_heartbeats_are_forgotten() {
    let times: Vec<u64> = (0..100).map(|number| number * 10).collect();
    let (mut board, target, _) = sent_at(&times);
    assert_eq!(reading(&board, &target, 1000).misses, 100);
    let sent = board.take_due(seconds(1000)).unwrap();
    board.arrived("shop", "team", sent.sequence, seconds(1000));
    let found = reading(&board, &target, 1000);
    assert_eq!((found.misses, found.hits), (0, 1));
    assert!(
        found.stuck.is_some(),
        "what was missed before is still known"
    );
}

#[test]
fn one_that_is_not_safe_yet_holds_up_the_next_which_is_missed_all_the_same() {
    let target = target("shop", "team", 10);
    let mut board = Board::default();
    board.follow(std::slice::from_ref(&target), Duration::ZERO);
    let first = board.take_due(Duration::ZERO).unwrap();
    for now in [10, 20, 30] {
        assert_eq!(board.take_due(seconds(now)), None);
    }
    let found = reading(&board, &target, 30);
    assert_eq!(found.misses, 4);
    assert_eq!(found.stuck.unwrap().hop, "channel");
    board.published("shop", first.sequence, None, seconds(31));
    assert!(board.take_due(seconds(40)).is_some());
}

#[test]
fn intervals_are_stretched_by_one_factor_when_there_are_very_many() {
    let mut board = Board::default();
    let mut targets: Vec<_> = (0..900)
        .map(|number| target(&format!("app{number}"), "team", 10))
        .collect();
    board.follow(&targets[..400], Duration::ZERO);
    assert_eq!(reading(&board, &targets[0], 0).interval, seconds(10));
    targets.push(target("app0", "other", 60));
    board.follow(&targets, Duration::ZERO);
    let stretched = |target| reading(&board, target, 0).interval;
    assert_eq!(stretched(&targets[0]), seconds(20));
    assert_eq!(stretched(&targets[900]), seconds(20), "by the shortest");
}

#[test]
fn a_long_pause_is_not_made_up_for() {
    let (mut board, target, _) = sent_at(&[0]);
    assert!(board.take_due(seconds(605)).is_some());
    assert_eq!(board.take_due(seconds(609)), None);
    assert_eq!(
        board.next_due(),
        Some(seconds(610)),
        "its place within the interval stays"
    );
    assert_eq!(reading(&board, &target, 605).misses, 1);
}

#[test]
fn targets_that_stay_keep_what_is_known_and_others_begin_anew() {
    let (mut board, stays, sequences) = sent_at(&[0]);
    board.arrived("shop", "team", sequences[0], seconds(1));
    let new = target("shop", "other", 10);
    board.follow(&[new.clone(), stays.clone()], seconds(2));
    assert_eq!(reading(&board, &stays, 2).hits, 1);
    assert_eq!(reading(&board, &new, 2).since, None);
    board.follow(std::slice::from_ref(&new), seconds(3));
    board.follow(&[new, stays.clone()], seconds(4));
    assert_eq!(reading(&board, &stays, 4).hits, 0);
}
