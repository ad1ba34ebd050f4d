use serde_json::{Value, json};

use super::*;

fn channelz(change: impl FnOnce(&mut Value)) -> Channelz {
    let mut told = json!({
        "name": "orders", "msgs": 5, "bytes": 305, "first_seq": 6, "last_seq": 10, "subs_count": 1,
        "subscriptions": [{
            "client_id": "dispatcher", "inbox": "_INBOX.a", "ack_inbox": "_INBOX.b", "durable_name": "audit",
            "is_durable": true, "is_offline": true, "max_inflight": 4, "ack_wait": 30, "last_sent": 8,
            "pending_count": 3, "is_stalled": false,
        }],
    });
    change(&mut told);
    serde_json::from_value(told).unwrap()
}

fn only(found: Vec<Subscription>) -> Subscription {
    let [found] = <[Subscription; 1]>::try_from(found).unwrap();
    found
}

#[test]
fn what_is_outstanding_unsent_and_expired_follows_from_the_counters() {
    let (channel, found) = counted(channelz(|_| {})).unwrap();
    assert_eq!(
        (channel.first, channel.high_water, channel.events),
        (6, 10, 5)
    );
    let found = only(found);
    assert_eq!((found.outstanding, found.unsent, found.expired), (3, 2, 0));
    assert_eq!(found.ack_floor, AckFloor::AtMost(5));
    assert!(found.is_durable && !found.is_attached);
    let behind = counted(channelz(|told| {
        told["subscriptions"][0]["last_sent"] = 2.into();
        told["subscriptions"][0]["pending_count"] = 0.into();
    }));
    let behind = only(behind.unwrap().1);
    assert_eq!(
        (behind.outstanding, behind.unsent, behind.expired),
        (0, 5, 3)
    );
}

#[test]
fn members_of_a_durable_group_are_one_subscription() {
    let told = channelz(|told| {
        let mut member = told["subscriptions"][0].clone();
        member["queue_name"] = "audit:all".into();
        member["durable_name"] = "".into();
        let mut other = member.clone();
        other["client_id"] = "other".into();
        other["pending_count"] = 2.into();
        other["last_sent"] = 10.into();
        other["is_offline"] = false.into();
        told["subscriptions"] = json!([member, other]);
    });
    let found = only(counted(told).unwrap().1);
    assert_eq!(
        found.id.to_string(),
        "subscription audit of group all on channel orders"
    );
    assert_eq!(
        (found.outstanding, found.unsent, found.last_sent),
        (5, 0, 10)
    );
    assert!(found.is_attached);
}

#[test]
fn counters_that_were_falsified_are_refused() {
    let check = |change: fn(&mut Value)| {
        let refused = counted(channelz(change));
        assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    };
    check(|told| told["last_seq"] = 7.into());
    check(|told| told["msgs"] = 6.into());
    check(|told| told["last_seq"] = u64::MAX.into());
    check(|told| told["subscriptions"][0]["last_sent"] = 11.into());
    check(|told| told["subscriptions"][0]["pending_count"] = 9.into());
    check(|told| {
        told["subscriptions"][0]["queue_name"] = "nameless".into();
    });
}
