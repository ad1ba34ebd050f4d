//! Bodies in all the ways strangers send them, under a clock that stands still.

use std::collections::VecDeque;
use std::convert::Infallible;

use jiff::Timestamp;

use super::*;
use crate::budget::{Limits, Share};

/// A body that brings a piece whenever its time has come.
struct Dripping {
    pieces: VecDeque<usize>,
    pause: Duration,
    waiting: Option<Pin<Box<dyn Future<Output = ()>>>>,
    clock: Clock,
    ends: bool,
}

impl Body for Dripping {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(waiting) = &mut self.waiting {
            if waiting.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.waiting = None;
        }
        let Some(bytes) = self.pieces.pop_front() else {
            return if self.ends {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        };
        if !self.pause.is_zero() {
            let (clock, pause) = (self.clock.clone(), self.pause);
            self.waiting = Some(Box::pin(async move { clock.sleep(pause).await }));
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))))
    }
}

struct World {
    clock: Clock,
    budget: Budget,
}

impl World {
    fn new() -> Self {
        let limits = Limits {
            requests: Share {
                bytes_max: 4 << 20,
                holder_bytes_max: 2 << 20,
            },
            ..Limits::default()
        };
        Self {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            budget: Budget::new(limits),
        }
    }

    fn intake(&self, last: u8) -> Intake {
        let holder = Holder::at([10, 0, 0, last].into());
        Intake::new(self.budget.clone(), holder, self.clock.clone())
    }

    fn body(&self, pieces: &[usize], pause: Duration, ends: bool) -> Dripping {
        Dripping {
            pieces: pieces.iter().copied().collect(),
            pause,
            waiting: None,
            clock: self.clock.clone(),
            ends,
        }
    }
}

const MIB: usize = 1 << 20;

#[tokio::test(start_paused = true)]
async fn what_is_there_at_once_needs_no_lease_and_the_rest_is_given_back() {
    let world = World::new();
    let intake = world.intake(1);
    let small = world.body(&[1000, 24], Duration::ZERO, true);
    let small = receive(small, MIB, Some(intake.account())).await.unwrap();
    assert_eq!((small.bytes.len(), world.budget.bytes()), (1024, 0));
    let large = world.body(&[60_000; 10], Duration::from_millis(1), true);
    let large = receive(large, MIB, Some(intake.account())).await.unwrap();
    assert_eq!(large.bytes.len(), 600_000);
    assert!(world.budget.bytes() >= 600_000);
    drop(large);
    assert_eq!(world.budget.bytes(), 0);
    let alone = world.body(&[60_000; 10], Duration::from_millis(1), true);
    assert!(receive(alone, MIB, None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_noticed_as_it_comes() {
    let world = World::new();
    let intake = world.intake(1);
    for pieces in [&[MIB + 1][..], &[MIB, 1]] {
        let body = world.body(pieces, Duration::ZERO, false);
        let refused = receive(body, MIB, Some(intake.account()))
            .await
            .unwrap_err();
        assert_eq!(refused, NotReceived::TooLarge(MIB));
    }
    assert_eq!(world.budget.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn half_sent_bodies_are_let_go_when_their_time_is_up() {
    let world = World::new();
    let intake = world.intake(1);
    for pieces in [&[][..], &[1], &[40_000]] {
        let body = world.body(pieces, Duration::ZERO, false);
        let begun = world.clock.monotonic();
        let refused = receive(body, MIB, Some(intake.account()))
            .await
            .unwrap_err();
        assert_eq!(refused, NotReceived::TooSlow, "{pieces:?}");
        let took = world.clock.monotonic() - begun;
        assert!(took < Duration::from_secs(20), "{pieces:?}: {took:?}");
    }
    // Seldom, and so often that it is never waited for.
    for pause in [Duration::from_secs(1), LOOK_EVERY / 10] {
        let drip = world.body(&[1; 100_000], pause, true);
        let refused = receive(drip, MIB, Some(intake.account()))
            .await
            .unwrap_err();
        assert_eq!(refused, NotReceived::TooSlow, "{pause:?}");
    }
    assert_eq!(world.budget.bytes(), 0);
    // 16 KiB each second is slow, and no attack.
    let slow = world.body(&[16_384; 60], Duration::from_secs(1), true);
    assert!(receive(slow, MIB, Some(intake.account())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn bodies_of_which_nothing_has_come_are_counted_too() {
    let world = World::new();
    let intake = world.intake(1);
    let share = 2 * MIB;
    let none = || world.body(&[], Duration::ZERO, false);
    let waiting = futures_all((0..200).map(|_| receive(none(), MIB, Some(intake.account()))));
    let looking = async {
        world.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.budget.bytes(), share);
    };
    let (refused, ()) = tokio::join!(waiting, looking);
    assert!(refused.iter().all(Result::is_err));
    assert_eq!(world.budget.bytes(), 0);
}

/// A body that says how long it will be, and does not come.
struct Announced(u64);

impl Body for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_announces_too_much_is_refused_before_it_comes() {
    let world = World::new();
    let intake = world.intake(1);
    for bytes in [MIB as u64 + 1, u64::MAX] {
        let refused = receive(Announced(bytes), MIB, Some(intake.account())).await;
        assert_eq!(refused.unwrap_err(), NotReceived::TooLarge(MIB));
    }
    assert_eq!(world.clock.monotonic(), Duration::ZERO);
    let late = receive(Announced(MIB as u64), MIB, Some(intake.account())).await;
    assert_eq!(late.unwrap_err(), NotReceived::TooSlow);
}

/// Whoever sends at once and is made to wait is not slow, also while others are waited for.
#[tokio::test(start_paused = true)]
async fn the_time_for_which_there_is_no_room_is_not_the_senders() {
    let world = World::new();
    let intake = world.intake(1);
    let holder = || Holder::at([10, 0, 0, 1].into());
    // Each makes another step of the body wait until it is gone.
    let blockers = [300_000, 400_000, 1_100_000].map(|bytes| {
        let mut lease = world.budget.lease(Class::Request, holder());
        lease.grow(bytes).unwrap();
        lease
    });
    let leaving = async {
        for blocker in blockers {
            world.clock.sleep(ROOM_TIME_MAX * 4 / 5).await;
            drop(blocker);
        }
    };
    let mut hungry = world.budget.lease(Class::Request, holder());
    let body = world.body(&[60_000; 17], Duration::from_millis(1), true);
    let receiving = async {
        let received = receive(body, MIB, Some(intake.account())).await;
        assert_eq!(received.map(|it| it.bytes.len()), Ok(17 * 60_000));
        assert!(world.clock.monotonic() > 2 * ROOM_TIME_MAX);
    };
    tokio::join!(leaving, receiving, hungry.grow_to(2 * MIB));
}

#[tokio::test(start_paused = true)]
async fn stalled_bodies_make_room_for_others_at_the_same_address_and_for_those_elsewhere() {
    let world = World::new();
    let (here, elsewhere) = (world.intake(1), world.intake(2));
    let stalled = || world.body(&[60_000; 9], Duration::from_millis(1), false);
    let attack = futures_all((0..40).map(|_| receive(stalled(), MIB, Some(here.account()))));
    let honest = async {
        world.clock.sleep(Duration::from_secs(3)).await;
        let held = world.budget.bytes();
        assert!(held > MIB, "the attack holds {held}");
        assert!(held <= 2 * MIB, "it holds no more than a share: {held}");
        let begun = world.clock.monotonic();
        let body = world.body(&[60_000; 10], Duration::from_millis(1), true);
        receive(body, MIB, Some(elsewhere.account())).await.unwrap();
        // Who shares an account with the attack may be told to come back, and is served soon.
        loop {
            let body = world.body(&[60_000; 10], Duration::from_millis(1), true);
            match receive(body, MIB, Some(here.account())).await {
                Ok(_) => break,
                Err(error) => assert_eq!(error, NotReceived::NoRoom),
            }
        }
        let took = world.clock.monotonic() - begun;
        assert!(took < Duration::from_secs(20), "{took:?}");
    };
    let (refused, ()) = tokio::join!(attack, honest);
    let let_go =
        |refused: &NotReceived| matches!(refused, NotReceived::TooSlow | NotReceived::NoRoom);
    assert!(
        refused
            .iter()
            .all(|received| received.as_ref().is_err_and(let_go))
    );
    assert_eq!(world.budget.bytes(), 0);
}

/// Waits for all of them in this task.
async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        let mut all = true;
        for (future, output) in &mut running {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}
