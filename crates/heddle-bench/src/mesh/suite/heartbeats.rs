//! What do heartbeats take away from events? The full path, on a heddle that sends them and on one that does not, by turns.

use super::super::applications;
use super::super::lab::{Lab, Side};
use super::super::processes::Helper;
use super::super::report::{Goal, Row};
use super::super::server::{Server, Wants};

/// So many send heartbeats: as many as may be sent in a second, at the usual interval.
const APPLICATIONS: u32 = 500;
const APPLICATIONS_QUICK: u32 = 50;
const RATIO_MIN: f64 = 0.98;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let with = Path::start(lab, "heartbeats-with", &[]).await?;
    let without = Path::start(lab, "heartbeats-without", &["--no-heartbeats"]).await?;
    let sides = [
        with.side(lab, "full path with heartbeats"),
        without.side(lab, "full path without heartbeats"),
    ];
    let [with, without] = lab.compare([&sides[0], &sides[1]]).await?;
    let name = "events/s, with heartbeats ÷ without";
    let row = Row::ratio(name, |sample| sample.rate, &with, &without);
    lab.row(row.goal(Goal::AtLeast(RATIO_MIN)));
    let name = "processor time of an event, with heartbeats ÷ without";
    lab.row(Row::ratio(
        name,
        |sample| sample.cpu_micros,
        &with,
        &without,
    ));
    Ok(())
}

/// A heddle with Applications that do nothing, and a Broker with a Trigger that does.
struct Path<'a> {
    server: Server<'a>,
    sink: Helper,
    path: String,
}

impl<'a> Path<'a> {
    async fn start(
        lab: &Lab<'a>,
        name: &str,
        options: &'static [&'static str],
    ) -> anyhow::Result<Self> {
        let sink = Helper::start("sink")?;
        let server = Server::start_with(lab.world, lab.dir.join(name), options).await?;
        let count = match lab.quick {
            true => APPLICATIONS_QUICK,
            false => APPLICATIONS,
        };
        applications::declare(&server.client().await?, count).await?;
        let path = server.broker("busy").await?;
        server
            .triggers("busy", Wants::Everything, 1, sink.address)
            .await?;
        Ok(Self { server, sink, path })
    }

    fn side(&self, lab: &Lab<'_>, name: &str) -> Side {
        let load = lab.load(self.server.events, &self.path);
        Side::ingest(name, self.server.pid(), &load).delivering(self.sink.address, 1)
    }
}
