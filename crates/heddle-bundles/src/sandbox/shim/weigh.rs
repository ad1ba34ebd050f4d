//! Weighs, while a run lasts, what its instance keeps on disk.
//!
//! A thread of the shim, because a large tree takes a while to count and the shim has a clock to keep meanwhile. Between two
//! looks a program can write as much as the disk takes in, so the bound is met within a second or so and not to the byte.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use heddle_rt::Clock;

use super::super::disk::{Bound, Excess};
use super::super::order::Order;

/// Between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// After a look the tree is left alone for so many times as long as the look took: a tenth of one processor goes into it.
const PAUSE_LOOKS: u32 = 9;

/// Looks until there is too much, which is told, or the sender of `over` is gone.
pub(super) fn weigh(order: &Order, over: &Receiver<()>, excess: &OnceLock<Excess>) {
    let clock = Clock::system();
    let bound = Bound::of(order.run.limits, order.run.action);
    let is_wanted = || over.try_recv() != Err(TryRecvError::Disconnected);
    // What cannot be counted now may be later.
    let look = || bound.weigh(&order.data, is_wanted).ok().flatten();
    // A removal that begins with more than all bounds is let go on: to stop it would keep everything for ever.
    if order.run.action.is_removal() && look().is_some() {
        return;
    }
    let mut pause = PAUSE_MIN;
    while over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let started = clock.monotonic();
        if let Some(found) = look() {
            excess.set(found).expect("nobody else tells");
            return;
        }
        let took = clock.monotonic().saturating_sub(started);
        pause = PAUSE_MIN.max(took * PAUSE_LOOKS);
    }
}
