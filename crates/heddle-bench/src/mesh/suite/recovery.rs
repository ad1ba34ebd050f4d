//! How long is heddle away after a crash? A log of one gibibyte, the process killed, and the time until it accepts again.

use super::super::lab::{self, Lab};
use super::super::load;
use super::super::processes;
use super::super::report::{Goal, Row, Unit};
use super::super::server::Server;

/// With a kibibyte of data each, a gibibyte.
const EVENTS: u64 = 1 << 20;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let mut server = Server::start(lab.world, lab.dir.join("recovery")).await?;
    let path = server.broker("filled").await?;
    lab.terminal.note("filling the log with 1 GiB of data");
    processes::load(&load::Args {
        count: Some(EVENTS),
        batch: 100,
        connections: 16,
        ..load::Args::to(server.events, &path)
    })?;
    let mut times = Vec::new();
    for _ in 0..lab.repeats {
        let time = server.recover(&path).await?;
        lab.terminal
            .note(&format!("accepting again after {time:.2?}"));
        times.push(time.as_secs_f64());
    }
    let name = "from kill to accepting again, 1 GiB in the log";
    let row = Row::figure(name, lab::middle(times.into_iter()), Unit::Seconds);
    lab.row(row.goal(Goal::AtMost(1.0)));
    Ok(())
}
