//! One look at whether a destination answers: over the connections of deliveries, and under the same limits and rules of where
//! anything may be sent. What follows from it is left to whoever looks.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::{Address, Courier, DRAIN_TIME_MAX, Extra, Outcome, Reader, Say, Unsent, ask};
use crate::event::Event;
use crate::path::delivery::signing::MessageSigning;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProbeRequest<'a> {
    /// A connection, with TLS where the address asks for it.
    Connect,
    /// A question to which any answer will do that is no fault of the server.
    Options(&'a [(HeaderName, HeaderValue)]),
    /// An event, which has to be accepted.
    Event(
        &'a Event,
        &'a [(HeaderName, HeaderValue)],
        Option<MessageSigning<'a>>,
    ),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeOutcome {
    Answered,
    Unanswered(String),
    /// Nothing was sent, for reasons that are ours.
    Untried,
}

impl Courier {
    /// Tries a destination once.
    pub(crate) async fn probe(
        &self,
        to: &Address,
        how: ProbeRequest<'_>,
        timeout: Duration,
    ) -> ProbeOutcome {
        match how {
            ProbeRequest::Event(event, headers, signing) => {
                let extra = Extra {
                    headers,
                    signing,
                    ..Extra::default()
                };
                let report = self.send(to, event, None, &extra, timeout).await;
                of_outcome(report.outcome)
            }
            ProbeRequest::Connect => self.within(timeout, to.pool.dial()).await,
            ProbeRequest::Options(headers) => {
                self.within(timeout, self.question(to, headers)).await
            }
        }
    }

    async fn within<E: Into<Unsent>>(
        &self,
        timeout: Duration,
        trying: impl Future<Output = Result<(), E>>,
    ) -> ProbeOutcome {
        match self.inner.deps.clock.timeout(timeout, trying).await {
            Ok(tried) => match tried.map_err(Into::into) {
                // Whoever reads this is there.
                Ok(()) | Err(Unsent::OwnListener) => ProbeOutcome::Answered,
                Err(Unsent::Failed(error)) => ProbeOutcome::Unanswered(error),
                Err(Unsent::Exhausted(_)) => ProbeOutcome::Untried,
            },
            Err(late) => ProbeOutcome::Unanswered(format!("no answer within {:?}", late.0)),
        }
    }

    async fn question(
        &self,
        to: &Address,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<(), Unsent> {
        let extra = Extra {
            headers,
            ..Extra::default()
        };
        let answer = ask(to, Say::Options, &extra).await?.answer;
        let status = answer.status;
        self.inner
            .read(to, Reader::drain(answer.body), DRAIN_TIME_MAX)
            .await;
        if status.is_server_error() {
            return Err(Unsent::Failed(format!("OPTIONS was answered {status}")));
        }
        Ok(())
    }
}

fn of_outcome(outcome: Outcome) -> ProbeOutcome {
    match outcome {
        // An event in the answer is nobody's.
        Outcome::Accepted { .. } | Outcome::OwnListener => ProbeOutcome::Answered,
        Outcome::Refused { status, .. } => {
            ProbeOutcome::Unanswered(format!("a heartbeat was answered {status}"))
        }
        Outcome::Gone => ProbeOutcome::Unanswered("a heartbeat was answered 410".to_owned()),
        Outcome::Failed { error } => ProbeOutcome::Unanswered(error),
        Outcome::Unsent { .. } => ProbeOutcome::Untried,
    }
}
