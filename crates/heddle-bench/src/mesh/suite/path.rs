//! What does the whole path cost: taken in, kept, matched and delivered, to one subscriber and to ten?

use super::super::lab::{Lab, Side};
use super::super::processes::Helper;
use super::super::report::{Goal, Row, Unit};
use super::super::server::{Server, Wants};

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let sink = Helper::start("sink")?;
    let server = Server::start(lab.world, lab.dir.join("path")).await?;
    let nobody = server.broker("nobody").await?;
    let one = server.broker("one").await?;
    let ten = server.broker("ten").await?;
    server
        .triggers("one", Wants::Everything, 1, sink.address)
        .await?;
    server
        .triggers("ten", Wants::Everything, 10, sink.address)
        .await?;
    let side = |name, path: &str| Side::ingest(name, server.pid(), &lab.load(server.events, path));
    let none = side("ingest alone", &nobody);
    let one = side("full path, 1 trigger", &one).delivering(sink.address, 1);
    let ten = side("full path, 10 triggers", &ten).delivering(sink.address, 10);
    let [none, one, ten] = lab.compare([&none, &one, &ten]).await?;
    let name = "CPU, full path to 1 trigger ÷ ingest alone";
    let row = Row::ratio(name, |sample| sample.cpu_micros, &one, &none);
    lab.row(row.goal(Goal::AtMost(2.0)));
    let added = (ten.cpu_micros - one.cpu_micros) / 9.0;
    let row = Row::figure("CPU per additional delivery", added, Unit::Micros);
    let row = row.disturbed_by(one.foreign_cores.max(ten.foreign_cores));
    lab.row(row.goal(Goal::AtMost(10.0)));
    Ok(())
}
