//! Each change is told once, in order, and none is forgotten by a restart.

use std::slice;

use super::*;

fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

fn alert(trigger: &str, state: AlertState) -> ToldAlert {
    ToldAlert {
        name: "HeddleBacklogAge".to_owned(),
        state,
        severity: "warning".to_owned(),
        since: now(),
        value: Some(400.0),
        labels: [("trigger".to_owned(), trigger.to_owned())].into(),
        summary: "it is old".to_owned(),
        codes: Vec::new(),
        page: String::new(),
    }
}

fn list(items: &[ToldAlert]) -> AlertList {
    AlertList {
        looked_at: Some(now()),
        items: items.to_vec(),
        left_out: 0,
    }
}

/// Takes everything that waits.
fn take(notices: &mut AlertNotices) -> Vec<(String, AlertChange)> {
    let mut taken = Vec::new();
    while let Some(notice) = notices.next().cloned() {
        notices.forget(&notice.id);
        taken.push((notice.alert.labels["trigger"].clone(), notice.change));
    }
    taken
}

#[test]
fn each_change_is_told_once() {
    let mut notices = AlertNotices::default();
    let (pending, firing) = (
        alert("a", AlertState::Pending),
        alert("a", AlertState::Firing),
    );
    assert!(!notices.look(&list(slice::from_ref(&pending)), now(), true));
    assert!(notices.look(&list(slice::from_ref(&firing)), now(), true));
    assert!(!notices.look(&list(slice::from_ref(&firing)), now(), true));
    assert_eq!(take(&mut notices), [("a".to_owned(), AlertChange::Firing)]);
    // After a restart it has yet to hold for long enough; that is no news.
    assert!(!notices.look(&list(&[pending]), now(), true));
    assert!(!notices.look(&list(&[]), now(), false), "nobody knows yet");
    assert!(notices.look(&list(&[]), now(), true));
    assert_eq!(
        take(&mut notices),
        [("a".to_owned(), AlertChange::Resolved)]
    );
    assert!(notices.look(&list(&[firing]), now(), true));
}

#[test]
fn what_is_not_taken_waits_over_a_restart_in_its_order() {
    let mut notices = AlertNotices::default();
    notices.look(&list(&[alert("a", AlertState::Firing)]), now(), true);
    notices.look(&list(&[alert("b", AlertState::Firing)]), now(), true);
    let ids: Vec<String> = notices
        .waiting
        .iter()
        .map(|notice| notice.id.clone())
        .collect();
    let written = serde_json::to_string(&notices).unwrap();
    let mut read: AlertNotices = serde_json::from_str(&written).unwrap();
    assert_eq!(read, notices);
    assert_eq!(
        read.waiting
            .iter()
            .map(|notice| notice.id.clone())
            .collect::<Vec<_>>(),
        ids
    );
    let told = take(&mut read);
    let expected = [
        ("a", AlertChange::Firing),
        ("a", AlertChange::Resolved),
        ("b", AlertChange::Firing),
    ];
    let mut told: Vec<(&str, AlertChange)> = told
        .iter()
        .map(|(name, change)| (&**name, *change))
        .collect();
    told.sort_by_key(|(name, _)| *name);
    assert_eq!(told, expected);
    assert_eq!(take(&mut notices).len(), 3);
}

#[test]
fn what_waits_is_bounded_and_what_is_over_goes_first() {
    let mut notices = AlertNotices::default();
    notices.look(&list(&[alert("stays", AlertState::Firing)]), now(), true);
    for round in 0..600_i64 {
        let mut over = alert("over", AlertState::Firing);
        over.since = now() + jiff::SignedDuration::from_secs(round);
        let stays = alert("stays", AlertState::Firing);
        notices.look(&list(&[stays.clone(), over]), now(), true);
        notices.look(&list(&[stays]), now(), true);
    }
    assert!(notices.waiting() <= WAITING_MAX);
    assert_eq!(notices.dropped + notices.waiting() as u64, 1_201);
    assert_eq!(notices.next().unwrap().alert.labels["trigger"], "stays");
}

#[test]
fn a_notice_is_an_event_with_an_id_of_its_own() {
    let mut notices = AlertNotices::default();
    notices.look(
        &list(&[
            alert("a", AlertState::Firing),
            alert("b", AlertState::Firing),
        ]),
        now(),
        true,
    );
    let events: Vec<Value> = notices.waiting.iter().map(AlertNotice::event).collect();
    assert_ne!(events[0]["id"], events[1]["id"]);
    assert_eq!(events[0]["type"], "dev.heddle.alert.v1");
    assert_eq!(events[0]["data"]["change"], "firing");
    assert_eq!(events[0]["data"]["alert"]["name"], "HeddleBacklogAge");
    assert_eq!(events[0]["time"], "2026-05-01T12:00:00Z");
}
