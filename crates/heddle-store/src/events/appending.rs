//! Waiting for an append: one answer per write, heard by everybody who took part.
//!
//! The promise is kept by the writer. When it is dropped without an answer, because the writer
//! broke, everybody hears that instead of waiting for ever.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::AppendError;

/// The offsets of an append, once they are safe. Dropping it does not take the append back.
#[derive(Debug)]
#[must_use = "an append is safe only when this says so"]
pub struct Appending(Stage);

#[derive(Debug)]
enum Stage {
    Refused(Option<AppendError>),
    Waiting {
        answer: Arc<AppendReply>,
        offsets: Range<u64>,
        /// Which of the wakers is ours, once there is one.
        seat: Option<usize>,
    },
}

impl Appending {
    pub(super) fn refused(error: AppendError) -> Self {
        Self(Stage::Refused(Some(error)))
    }

    pub(super) fn waiting(answer: Arc<AppendReply>, offsets: Range<u64>) -> Self {
        let seat = None;
        Self(Stage::Waiting {
            answer,
            offsets,
            seat,
        })
    }
}

impl Future for Appending {
    type Output = Result<Range<u64>, AppendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Stage::Refused(error) => {
                Poll::Ready(Err(error.take().expect("polled once after it was ready")))
            }
            Stage::Waiting {
                answer,
                offsets,
                seat,
            } => {
                let mut state = answer.state.lock();
                match &state.given {
                    Some(Ok(())) => Poll::Ready(Ok(offsets.clone())),
                    Some(Err(error)) => Poll::Ready(Err(error.clone())),
                    None => {
                        match *seat {
                            Some(seat) => state.wakers[seat].clone_from(cx.waker()),
                            None => {
                                *seat = Some(state.wakers.len());
                                state.wakers.push(cx.waker().clone());
                            }
                        }
                        Poll::Pending
                    }
                }
            }
        }
    }
}

/// What became of one write.
#[derive(Debug, Default)]
pub(super) struct AppendReply {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    given: Option<Result<(), AppendError>>,
    wakers: Vec<Waker>,
}

/// The duty to answer.
#[derive(Debug, Default)]
pub(super) struct Promise(Arc<AppendReply>);

impl Promise {
    /// An answer that is there already.
    pub(super) fn kept() -> Arc<AppendReply> {
        let promise = Self::default();
        let answer = promise.answer();
        promise.keep(&Ok(()));
        answer
    }

    pub(super) fn answer(&self) -> Arc<AppendReply> {
        self.0.clone()
    }

    pub(super) fn keep(self, result: &Result<(), AppendError>) {
        self.give(result);
    }

    fn give(&self, result: &Result<(), AppendError>) {
        let mut state = self.0.state.lock();
        if state.given.is_some() {
            return;
        }
        state.given = Some(result.clone());
        let wakers = std::mem::take(&mut state.wakers);
        // Those who are woken may want the lock at once.
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.give(&Err(AppendError::Undetermined("the writer broke".into())));
    }
}
