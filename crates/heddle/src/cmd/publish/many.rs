//! Publishing at a rate: several requests in flight over kept connections.
//!
//! With a rate each event is due at its own moment and its latency counts from there: a server that
//! stalls is charged for everybody who had to wait, not for one slow answer. Without a rate the
//! next event goes out when an answer comes in, and latency counts from sending.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use heddle_rt::shutdown::Interrupts;

use super::EventDoor;
use super::figures::Figures;
use super::message::Content;
use crate::client::ledger;
use crate::failure::Failure;
use crate::output::count;
use crate::terminal::Terminal;
use crate::wire::World;

const PROGRESS_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Many events")]
pub(super) struct PaceArgs {
    /// How many; each id gets a number
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,

    /// How many a second; as fast as they are answered when absent
    #[arg(long, value_name = "PER SECOND", value_parser = rate)]
    rate: Option<f64>,

    /// How many may wait for their answer at once
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 0.0 && rate <= 1e6 {
        Ok(rate)
    } else {
        Err("must be above 0 and at most 1000000".to_owned())
    }
}

impl PaceArgs {
    /// Nothing when one event is meant.
    pub(super) fn pace(&self) -> Option<Pace> {
        (self.count > 1).then_some(Pace {
            count: self.count,
            rate: self.rate,
            concurrency: self.concurrency,
        })
    }
}

/// How many, how fast, how wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) count: u64,
    pub(super) rate: Option<f64>,
    pub(super) concurrency: u16,
}

impl Pace {
    /// When an event should go out, counted from the start.
    pub(super) fn due(&self, number: u64) -> Option<Duration> {
        self.rate
            .map(|rate| Duration::from_secs_f64(number as f64 / rate))
    }
}

/// How one request ended.
pub(super) enum Outcome {
    Accepted,
    /// The status, the code and the words of the refusal.
    Refused(String, Failure),
    Unanswered(anyhow::Error),
}

/// Sends them all, or until interrupted.
pub(super) async fn run(
    door: &EventDoor,
    content: &Content,
    pace: Pace,
    world: &World,
    interrupts: &mut Interrupts,
    terminal: &mut Terminal,
) -> anyhow::Result<Figures> {
    // What cannot be said at all is wrong at once, not ten thousand times.
    content.message(Some(1))?;
    let clock = &world.clock;
    let started = clock.monotonic();
    let sends = stream::iter(0..pace.count).map(|number| async move {
        if let Some(due) = pace.due(number) {
            let elapsed = clock.monotonic().saturating_sub(started);
            if due > elapsed {
                clock.sleep(due - elapsed).await;
            }
        }
        let now = clock.monotonic();
        let outcome = send(door, content, number + 1).await;
        let since = pace.due(number).map_or(now, |due| started + due);
        (outcome, clock.monotonic().saturating_sub(since))
    });
    let mut answers = pin!(sends.buffer_unordered(pace.concurrency.into()));
    let mut figures = Figures::default();
    let mut progress = clock.interval(PROGRESS_EVERY);
    loop {
        tokio::select! {
            answer = answers.next() => match answer {
                None => break,
                Some((Outcome::Unanswered(error), _)) if figures.answered() == 0 => return Err(error),
                Some((outcome, latency)) => figures.add(outcome, latency),
            },
            _ = progress.tick() => {
                let elapsed = clock.monotonic().saturating_sub(started);
                terminal.note(&figures.progress(pace.count, elapsed));
            }
            () = interrupts.next() => {
                terminal.note(&format!("interrupted after {}", count(figures.sent(), "request")));
                break;
            }
        }
    }
    figures.took = clock.monotonic().saturating_sub(started);
    Ok(figures)
}

async fn send(door: &EventDoor, content: &Content, number: u64) -> Outcome {
    let posted = async {
        let message = content.message(Some(number))?;
        Ok((door.post(&message).await?, message))
    };
    match posted.await {
        Ok((answer, _)) if answer.code.is_success() => Outcome::Accepted,
        Ok((answer, message)) => {
            let code = ledger::refusal(&answer).map_or_else(String::new, |refusal| refusal.code);
            let key = format!("{} {code}", answer.code.as_u16())
                .trim_end()
                .to_owned();
            Outcome::Refused(key, ledger::refused(&message.shown(), &answer))
        }
        // Nobody there, or an answer that broke off: nobody knows whether the event was accepted.
        Err(error) => Outcome::Unanswered(error),
    }
}
