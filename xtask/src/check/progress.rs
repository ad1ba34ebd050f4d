//! Says that a long command is still running, so that a silent minute is not taken for a hang.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Result;

/// The longest silence of a step.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Does `work`, and announces every [`SILENCE_MAX`] for how long it has been at it, and in the end how long it took.
pub(crate) fn reported(
    name: &str,
    announce: impl Fn(&str) + Sync,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    every(SILENCE_MAX, name, announce, work)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore tells a person how long it really took"
)]
fn every(
    pause: Duration,
    name: &str,
    announce: impl Fn(&str) + Sync,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let started = Instant::now();
    let (finished, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let waiting = waiting;
            while waiting.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                announce(&format!(
                    "    {name} is still running, {}",
                    spelled(started.elapsed())
                ));
            }
        });
        let outcome = work();
        drop(finished);
        outcome
    })?;
    announce(&format!("    {name} took {}", spelled(started.elapsed())));
    Ok(())
}

fn spelled(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use anyhow::bail;

    use super::*;

    #[test]
    fn a_long_step_reports_until_it_ends() {
        let (heard_tx, heard) = sync_channel(64);
        let outcome = every(
            Duration::from_millis(1),
            "clippy",
            |line| heard_tx.send(line.to_owned()).expect("the test listens"),
            || {
                // Ends when it has been reported twice, however slow the machine is.
                for _ in 0..2 {
                    let line = heard.recv()?;
                    assert!(line.starts_with("    clippy is still running, "), "{line}");
                }
                Ok(())
            },
        );
        outcome.unwrap();
        let last = heard.try_iter().last().unwrap();
        assert!(last.starts_with("    clippy took "), "{last}");
    }

    #[test]
    fn a_step_that_fails_is_not_said_to_have_finished() {
        let announce = |line: &str| panic!("{line}");
        let outcome = every(SILENCE_MAX, "clippy", announce, || bail!("no"));
        assert!(outcome.is_err());
    }

    #[test]
    fn durations_are_spelled_for_people() {
        assert_eq!(spelled(Duration::from_secs(59)), "59 s");
        assert_eq!(spelled(Duration::from_secs(61)), "1 min 1 s");
    }
}
