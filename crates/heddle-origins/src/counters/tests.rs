use super::*;

fn channel(first: Sequence, high_water: Sequence, events: u64) -> Channel {
    Channel {
        name: "orders".to_owned(),
        first,
        high_water,
        events,
        bytes: 0,
    }
}

fn subscription(
    ack_floor: AckFloor,
    last_sent: Sequence,
    outstanding: u64,
    unsent: u64,
) -> Subscription {
    Subscription {
        id: SubscriptionId {
            channel: "orders".to_owned(),
            client: Some("dispatcher".to_owned()),
            durable: "audit".to_owned(),
            group: None,
        },
        is_durable: true,
        is_attached: false,
        ack_floor,
        last_sent,
        outstanding,
        unsent,
        expired: 0,
    }
}

fn problem(checked: Result<(), Contradiction>) -> String {
    checked.map_or_else(|contradiction| contradiction.how, |()| "none".to_owned())
}

#[test]
fn numbers_of_a_channel_must_agree() {
    let check = |first, last, events, expected: &str| {
        assert_eq!(problem(channel(first, last, events).check()), expected);
    };
    check(1, 0, 0, "none");
    check(1, 5, 5, "none");
    check(6, 5, 0, "none");
    check(3, 5, 2, "none");
    check(0, 5, 5, "the first is 0 and the last 5");
    check(7, 5, 0, "the first is 7 and the last 5");
    check(3, 5, 4, "4 are kept from 3 to 5");
    check(1, u64::MAX, 1, "there is no number left");
}

#[test]
fn numbers_of_a_subscription_must_agree() {
    use AckFloor::{AtMost, Exactly};
    let check = |floor, last_sent, outstanding, unsent, expected: &str| {
        let subscription = subscription(floor, last_sent, outstanding, unsent);
        assert_eq!(problem(subscription.check(&channel(1, 10, 10))), expected);
    };
    check(Exactly(0), 0, 0, 10, "none");
    check(Exactly(2), 6, 3, 4, "none");
    check(AtMost(3), 6, 3, 4, "none");
    check(Exactly(10), 10, 0, 0, "none");
    check(
        Exactly(0),
        11,
        11,
        0,
        "11 was sent last and 10 accepted last",
    );
    check(Exactly(7), 6, 0, 4, "7 is acknowledged and 6 was sent last");
    check(Exactly(2), 6, 5, 4, "5 are outstanding between 2 and 6");
    check(AtMost(2), 6, 3, 4, "3 are outstanding between 2 and 6");
    check(Exactly(2), 6, 3, 5, "5 are unsent between 6 and 10");
}

#[test]
fn nothing_is_drained_while_something_is_unsent_or_outstanding() {
    use AckFloor::Exactly;
    assert!(!subscription(Exactly(9), 10, 1, 0).is_drained());
    assert!(!subscription(Exactly(9), 9, 0, 1).is_drained());
    assert!(subscription(Exactly(10), 10, 0, 0).is_drained());
    assert_eq!(subscription(Exactly(0), 9, u64::MAX, 1).pending(), u64::MAX);
}

#[test]
fn a_fence_is_broken_by_whatever_moves_the_channel() {
    let fence = Fence {
        channel: "orders".to_owned(),
        high_water: 10,
        hold: FenceHold::Watched,
    };
    assert_eq!(fence.check(&channel(1, 10, 10)), Ok(()));
    assert_eq!(
        fence.check(&channel(11, 10, 0)),
        Ok(()),
        "what expires is no publication"
    );
    for found in [9, 11] {
        let broken = fence.check(&channel(1, found, 0)).unwrap_err();
        assert_eq!((broken.fenced, broken.found), (10, found));
    }
}
