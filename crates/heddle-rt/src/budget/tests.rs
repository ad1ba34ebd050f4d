//! Nobody gets more than their share, whatever is given back is there again, and who waits is served.

use std::task::{Context, Waker};

use jiff::Timestamp;

use super::*;

const LIMITS: Limits = Limits {
    requests: Share {
        bytes_max: 60,
        holder_bytes_max: 40,
    },
    replies: Share {
        bytes_max: 50,
        holder_bytes_max: 40,
    },
    delivery_bytes_max: 4 * UNIT_BYTES,
};

fn someone(last: u8) -> Holder {
    Holder::at([10, 0, 0, last].into())
}

#[test]
fn shares_are_bounded_by_holder_and_by_class() {
    let budget = Budget::new(LIMITS);
    let mut first = budget.lease(Class::Request, someone(1));
    first.grow(40).unwrap();
    let mut same = budget.lease(Class::Request, someone(1));
    assert_eq!(same.grow(1), Err(NoRoom), "its holder has its share");
    let mut second = budget.lease(Class::Request, someone(2));
    second.grow(20).unwrap();
    assert_eq!(second.grow(1), Err(NoRoom), "requests have their share");
    let mut reply = budget.lease(Class::Reply, someone(1));
    reply.grow(40).unwrap();
    let mut last = budget.lease(Class::Reply, someone(3));
    last.grow(10).unwrap();
    assert_eq!(last.grow(1), Err(NoRoom), "replies have their share");
    assert_eq!(budget.bytes(), 110);
    drop((first, second, same, reply, last));
    assert_eq!(budget.bytes(), 0);
    assert!(budget.inner.state.lock().holders.is_empty());
}

#[tokio::test]
async fn deliveries_are_served_in_turn_and_give_back_part_by_part() {
    let budget = Budget::new(LIMITS);
    let mut first = budget.deliver_now(3 * UNIT_BYTES).unwrap();
    let mut large = std::pin::pin!(budget.deliver(2 * UNIT_BYTES));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(large.as_mut().poll(&mut cx).is_pending());
    let small = budget.deliver_now(UNIT_BYTES);
    assert_eq!(small.err(), Some(NoRoom), "another was first");
    let part = first.split(UNIT_BYTES);
    drop(part);
    let large = large.await;
    drop((first, large));
    // What is larger than all there is gets all there is.
    let all = budget.deliver_now(100 * UNIT_BYTES).unwrap();
    assert_eq!(budget.deliver_now(UNIT_BYTES).err(), Some(NoRoom));
    drop(all);
    budget.deliver_now(4 * UNIT_BYTES).unwrap();
}

#[test]
fn what_is_larger_than_a_share_is_let_in_alone() {
    let budget = Budget::new(LIMITS);
    let mut large = budget.lease(Class::Request, someone(1));
    large.grow(1_000).unwrap();
    assert_eq!(large.grow(1), Err(NoRoom));
    let mut other = budget.lease(Class::Request, someone(2));
    assert_eq!(other.grow(1), Err(NoRoom));
}

#[test]
fn one_network_of_ipv6_is_one_holder() {
    let at = |text: &str| Holder::at(text.parse().unwrap());
    assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:1"));
    assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
    assert_eq!(at("::ffff:10.0.0.1"), someone(1));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_when_somebody_lets_go_and_gives_up_otherwise() {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let budget = Budget::new(LIMITS);
    let mut stalled = budget.lease(Class::Request, someone(1));
    stalled.grow(40).unwrap();
    let mut elsewhere = budget.lease(Class::Request, someone(2));
    elsewhere.grow(10).unwrap();
    let second = Duration::from_secs(1);
    let mut waiting = budget.lease(Class::Request, someone(1));
    assert!(!stalled.is_wanted());
    let (served, ()) = tokio::join!(waiting.grow_within(10, &clock, 10 * second), async {
        clock.sleep(second).await;
        assert!(stalled.is_wanted(), "it is in the way");
        assert!(!elsewhere.is_wanted(), "the other one is not");
        drop(stalled);
    });
    assert_eq!(served, Ok(()));
    let mut late = budget.lease(Class::Request, someone(1));
    assert_eq!(late.grow_within(31, &clock, second).await, Err(NoRoom));
    assert!(!waiting.is_wanted(), "nobody waits any more");
    assert_eq!(budget.bytes(), 20);
}
