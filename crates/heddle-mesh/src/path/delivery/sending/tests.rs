//! Nobody holds more than their share, what is shared counts once, and who waits is served.

use heddle_rt::budget::Limits;

use super::*;

const MIB: usize = 1 << 20;

fn sending(mebibytes: usize) -> Sending {
    Sending::new(Budget::new(Limits {
        delivery_bytes_max: mebibytes * MIB,
        ..Limits::default()
    }))
}

fn need(account: &Account, number: u64) -> SendingNeed<'_> {
    SendingNeed {
        key: Key::Log(number),
        bytes: MIB,
        copies: 0,
        account,
    }
}

fn event() -> Bytes {
    Bytes::from(vec![b'x'; MIB])
}

#[test]
fn one_destination_has_a_share_and_all_have_one() {
    let sending = sending(12);
    let (stalled, other) = (Account::default(), Account::default());
    let now = |number, account| sending.large_now(&need(account, number), &event());
    let mut held: Vec<_> = (0..8)
        .map(|number| now(number, &stalled).unwrap())
        .collect();
    assert!(now(8, &stalled).is_err(), "it has its share");
    held.extend((8..12).map(|number| now(number, &other).unwrap()));
    assert!(now(12, &other).is_err(), "all is taken");
    held.remove(0);
    assert!(now(12, &other).is_ok());
}

#[test]
fn an_event_to_many_is_held_and_counted_once() {
    let sending = sending(1);
    let accounts: Vec<Account> = (0..100).map(|_| Account::default()).collect();
    let read: Vec<Bytes> = accounts.iter().map(|_| event()).collect();
    let rooms: Vec<_> = accounts
        .iter()
        .zip(&read)
        .map(|(account, read)| sending.large_now(&need(account, 7), read).unwrap())
        .collect();
    let sent = rooms.iter().zip(&read);
    let mut sent = sent.map(|(room, read)| room.payload(read.clone()));
    assert!(sent.all(|payload| payload.as_ptr() == read[0].as_ptr()));
    assert!(sending.large_now(&need(&accounts[0], 8), &event()).is_err());
    drop(rooms);
    assert!(sending.bodies.lock().is_empty());
    assert!(sending.large_now(&need(&accounts[0], 8), &event()).is_ok());
}

#[test]
fn what_is_written_anew_is_counted_with_its_event() {
    let sending = sending(3);
    let (one, other) = (Account::default(), Account::default());
    let structured = |account| SendingNeed {
        copies: 1,
        ..need(account, 7)
    };
    let first = sending.large_now(&structured(&one), &event()).unwrap();
    let second = sending.large_now(&structured(&other), &event()).unwrap();
    assert!(sending.large_now(&need(&one, 8), &event()).is_err());
    drop(first);
    // Its copy is given back; the event is still being sent by the other.
    let third = sending.large_now(&need(&one, 8), &event()).unwrap();
    drop((second, third));
    assert!(sending.large_now(&structured(&one), &event()).is_ok());
}

#[tokio::test]
async fn who_waits_for_a_stalled_destination_is_in_nobody_elses_way() {
    let sending = sending(9);
    let (stalled, other) = (Account::default(), Account::default());
    let mut held: Vec<_> = (0..8)
        .map(|number| {
            sending
                .large_now(&need(&stalled, number), &event())
                .unwrap()
        })
        .collect();
    let ninth = need(&stalled, 8);
    let read = event();
    let mut waiting = std::pin::pin!(sending.reserve(&ninth, read.clone()));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    assert!(read.is_unique(), "whoever waits holds nothing");
    drop(sending.large_now(&need(&other, 9), &event()).unwrap());
    let tenth = need(&other, 10);
    let reserved = sending.reserve(&tenth, event()).await;
    drop(sending.fill(&tenth, reserved, &event()));
    held.clear();
    let reserved = waiting.await;
    let room = sending.fill(&ninth, reserved, &event());
    assert_eq!(room.payload(Bytes::new()).len(), MIB);
}

#[tokio::test]
async fn whoever_waited_shares_what_somebody_sends_by_then() {
    let sending = sending(2);
    let (one, other) = (Account::default(), Account::default());
    let (waits, sends) = (need(&one, 7), need(&other, 7));
    let reserved = sending.reserve(&waits, event()).await;
    let first = sending.large_now(&sends, &event()).unwrap();
    let second = sending.fill(&waits, reserved, &event());
    let pointer = |room: &SendingRoom<'_>| room.payload(Bytes::new()).as_ptr();
    assert_eq!(pointer(&first), pointer(&second));
    // Counted once: there is room for another event.
    assert!(sending.large_now(&need(&one, 8), &event()).is_ok());
}

#[test]
fn small_events_are_counted_and_bounded_as_well() {
    let sending = sending(1);
    let most = SMALL_ALL_BYTES_MAX / (2 * SMALL_BYTES_MAX);
    let rooms: Vec<_> = (0..most)
        .map(|_| sending.small(SMALL_BYTES_MAX).unwrap())
        .collect();
    assert!(sending.small(1).is_none(), "there are enough of them");
    drop(rooms);
    assert!(sending.small(1).is_some());
    assert!(sending.small(SMALL_BYTES_MAX + 1).is_none(), "not small");
    assert_eq!(sending.small_bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_event_larger_than_a_share_is_sent_alone() {
    let sending = sending(4);
    let account = Account::default();
    let huge = SendingNeed {
        bytes: 40 * MIB,
        copies: 3,
        ..need(&account, 7)
    };
    let reserved = sending.reserve(&huge, event()).await;
    let room = sending.fill(&huge, reserved, &event());
    assert!(sending.large_now(&need(&account, 8), &event()).is_err());
    drop(room);
    assert!(sending.large_now(&need(&account, 8), &event()).is_ok());
}
