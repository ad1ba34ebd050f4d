//! How long is an event on its way when nothing is overloaded?

use super::super::lab::{Lab, Side};
use super::super::load;
use super::super::processes::Helper;
use super::super::report::{Goal, Row, Unit};
use super::super::server::{Server, Wants};

const RATE: f64 = 2000.0;
const CONNECTIONS: u16 = 16;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let sink = Helper::start("sink")?;
    let server = Server::start(lab.world, lab.dir.join("latency")).await?;
    let path = server.broker("steady").await?;
    server
        .triggers("steady", Wants::Everything, 1, sink.address)
        .await?;
    let load = load::Args {
        rate: Some(RATE),
        connections: CONNECTIONS,
        ..lab.load(server.events, &path)
    };
    let side = Side::ingest("full path at 2000 events/s", server.pid(), &load);
    let [sample] = lab.compare([&side.delivering(sink.address, 1)]).await?;
    let (p50, p99) = sample.arrival.unwrap_or_default();
    for (name, value, most) in [("p50", p50, 1.5), ("p99", p99, 5.0)] {
        let name = format!("end to end at 2000 events/s, {name}");
        let row = Row::figure(name, value.as_secs_f64() * 1e3, Unit::Millis);
        lab.row(
            row.disturbed_by(sample.foreign_cores)
                .goal(Goal::AtMost(most)),
        );
    }
    Ok(())
}
