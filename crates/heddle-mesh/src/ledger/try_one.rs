//! One dead letter is sent on its way again, and whoever asked hears what its subscriber says.

use std::time::Duration;

use heddle_api::dead_letters::{TriedDeadLetter, TriedOutcome};

use super::{Error, held};
use crate::mesh::Mesh;
use crate::path::dead_letter::tries::TriedAttempt;

/// Whoever asks waits no longer.
const WAIT_MAX: Duration = Duration::from_secs(30);

impl Mesh {
    /// Sends one on its way again on somebody's behalf, and waits a while for the answer. Whatever comes of it, and be it after
    /// that while, is treated as that of any redrive.
    pub async fn try_dead_letter(&self, name: &str, by: &str) -> Result<TriedDeadLetter, Error> {
        let shared = &self.shared;
        let missing = || Error::NotFound(format!("there is no dead letter {name}"));
        let number: u64 = name.parse().map_err(|_| missing())?;
        let consumer = {
            let consumers = shared.consumers.read();
            let letters = shared.dead.lock();
            let rest = letters.get(number).ok_or_else(missing)?;
            if rest.reply.is_some() {
                return Err(Error::Conflict(format!(
                    "dead letter {name} is a reply: its event was delivered, and it cannot be sent again"
                )));
            }
            consumers.by_id.get(&rest.consumer).cloned()
        };
        let consumer = consumer.ok_or_else(missing)?;
        let busy = || {
            Error::Conflict(format!(
                "the event of dead letter {name} is on its way already"
            ))
        };
        let (_guard, told) = shared.tries.watch(number).ok_or_else(busy)?;
        {
            let mut state = consumer.lock();
            let full = state.window.dead_full.is_some();
            if let Some(why) = held(&state).filter(|_| !full) {
                let key = &consumer.key;
                return Err(Error::Conflict(format!(
                    "nothing can be sent to the subscriber of {key} now: {why}"
                )));
            }
            if !consumer.redrive(shared, &mut state, number, by) {
                return Err(busy());
            }
        }
        shared.look_for_dead_letter_room();
        let told = shared.clock.timeout(WAIT_MAX, told).await;
        // What is told is safe, or will be told again after a restart.
        shared.settled().await;
        let tried = TriedDeadLetter {
            name: name.to_owned(),
            consumer: consumer.key.to_string(),
            outcome: TriedOutcome::UnderWay,
            status: None,
            latency_ms: None,
            error: None,
            answer: None,
            rests_as: None,
        };
        Ok(match told {
            Ok(Ok(attempt)) => with(tried, &attempt),
            _ => tried,
        })
    }
}

fn with(tried: TriedDeadLetter, attempt: &TriedAttempt) -> TriedDeadLetter {
    let answer = String::from_utf8_lossy(&attempt.answer).into_owned();
    TriedDeadLetter {
        outcome: match (attempt.delivered, attempt.rests_as) {
            (true, _) => TriedOutcome::Delivered,
            (false, Some(_)) => TriedOutcome::DeadLettered,
            (false, None) => TriedOutcome::Failed,
        },
        status: (attempt.status > 0).then_some(attempt.status),
        latency_ms: Some(attempt.latency.as_secs_f64() * 1000.0),
        error: attempt.error.clone(),
        answer: (!answer.is_empty()).then_some(answer),
        rests_as: attempt.rests_as.map(|name| name.to_string()),
        ..tried
    }
}
