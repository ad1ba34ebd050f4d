//! What does it cost to keep an event? Durable ingest against a server that keeps nothing, and batches against singles.

use super::super::lab::{Lab, Side};
use super::super::load;
use super::super::processes::Helper;
use super::super::report::{Goal, Row};
use super::super::server::Server;

/// At one and sixteen connections the disk's sync time decides, not heddle; the figures are shown without a goal.
const CONNECTIONS: [(u16, Option<f64>); 4] =
    [(1, None), (16, None), (64, Some(0.65)), (256, Some(0.7))];
const BATCH_EVENTS: u16 = 100;
/// Requests are a hundred times larger, so fewer are needed to keep a server busy.
const BATCH_CONNECTIONS: u16 = 16;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let floor = Helper::start("noop")?;
    let server = Server::start(lab.world, lab.dir.join("ingest")).await?;
    let path = server.broker("ingest").await?;
    server.rest().await?;
    for (connections, goal) in CONNECTIONS {
        let side = |name: &str, pid, load| {
            let load = load::Args {
                connections,
                ..load
            };
            Side::ingest(format!("{name}, {}", count(connections)), pid, &load)
        };
        let base = side("no-op server", floor.pid(), lab.load(floor.address, "/"));
        let ours = side(
            "durable ingest",
            server.pid(),
            lab.load(server.events, &path),
        );
        let [base, ours] = lab.compare([&base, &ours]).await?;
        let name = format!("durable ingest ÷ no-op server, {}", count(connections));
        let row = Row::ratio(name, |sample| sample.rate, &ours, &base);
        lab.row(match goal {
            Some(least) => row.goal(Goal::AtLeast(least)),
            None => row,
        });
    }
    batches(lab, &server, &path).await
}

async fn batches(lab: &mut Lab<'_>, server: &Server<'_>, path: &str) -> anyhow::Result<()> {
    let single = lab.load(server.events, path);
    let batch = load::Args {
        batch: BATCH_EVENTS,
        connections: BATCH_CONNECTIONS,
        ..single.clone()
    };
    let single = Side::ingest("durable ingest, single events", server.pid(), &single);
    let batch = Side::ingest("durable ingest, batches of 100", server.pid(), &batch);
    let [single, batch] = lab.compare([&single, &batch]).await?;
    let name = "CPU per event, batch of 100 ÷ single";
    let row = Row::ratio(name, |sample| sample.cpu_micros, &batch, &single);
    lab.row(row.goal(Goal::AtMost(0.25)));
    Ok(())
}

fn count(connections: u16) -> String {
    let ending = if connections == 1 { "" } else { "s" };
    format!("{connections} connection{ending}")
}
