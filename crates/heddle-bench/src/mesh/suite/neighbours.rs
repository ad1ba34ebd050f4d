//! What do healthy triggers notice of neighbours that hang, dawdle, refuse, fail, complain and hang up?
//!
//! Every turn has a server of its own, because bad neighbours are still being tried long after a run has ended. More
//! triggers are more work whoever they belong to, so bad neighbours are compared with as many good ones: what healthy
//! triggers notice when their neighbours break. At a steady rate they are compared with an empty street as well.

use std::net::SocketAddr;

use super::super::lab::{Lab, Side};
use super::super::load;
use super::super::processes::Helper;
use super::super::report::{Goal, Row, Sample};
use super::super::server::{Server, Wants};
use super::super::sink::Manner;

const BROKER: &str = "street";
const HEALTHY: u32 = 2;
const RATE: f64 = 1000.0;
const CONNECTIONS: u16 = 16;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let sink = Helper::start("sink")?;
    // Each neighbour is a process of its own, good or bad: processes are work as well.
    let good = Manner::BAD.map(|_| Helper::start("sink"));
    let bad = Manner::BAD.map(|manner| Helper::start_with("sink", &["--manner", &manner.name()]));
    let good: Vec<Helper> = good.into_iter().collect::<anyhow::Result<_>>()?;
    let bad: Vec<Helper> = bad.into_iter().collect::<anyhow::Result<_>>()?;
    let nobody = Street::new("alone", &[]);
    let good = Street::new("beside 6 good", &good);
    let bad = Street::new("beside 6 bad", &bad);

    let [alone, beside_good, beside] = steady(lab, &sink, [&nobody, &good, &bad]).await?;
    for (against, other) in [("6 good ones", &beside_good), ("alone", &alone)] {
        for (name, of) in [
            ("p50", (|sample| millis(sample).0) as fn(&Sample) -> f64),
            ("p99", |sample| millis(sample).1),
        ] {
            let name = format!("arrival {name} of healthy triggers, 6 bad neighbours ÷ {against}");
            lab.row(Row::ratio(name, of, &beside, other).goal(Goal::AtMost(1.1)));
        }
    }
    let name = "events/s at a steady rate, 6 bad neighbours ÷ alone";
    let row = Row::ratio(name, |sample| sample.rate, &beside, &alone);
    lab.row(row.goal(Goal::AtLeast(0.9)));

    let [alone, good, bad] = saturated(lab, &sink, [&nobody, &good, &bad]).await?;
    let name = "events/s when saturated, 6 bad neighbours ÷ 6 good ones";
    let row = Row::ratio(name, |sample| sample.rate, &bad, &good);
    lab.row(row.goal(Goal::AtLeast(0.9)));
    let name = "events/s when saturated, 6 bad neighbours ÷ alone";
    lab.row(Row::ratio(name, |sample| sample.rate, &bad, &alone));
    Ok(())
}

/// Who lives beside the healthy ones.
struct Street {
    name: &'static str,
    neighbours: Vec<SocketAddr>,
}

impl Street {
    fn new(name: &'static str, neighbours: &[Helper]) -> Self {
        Self {
            name,
            neighbours: neighbours.iter().map(|helper| helper.address).collect(),
        }
    }
}

async fn steady<const N: usize>(
    lab: &mut Lab<'_>,
    sink: &Helper,
    streets: [&Street; N],
) -> anyhow::Result<[Sample; N]> {
    let change = |load: load::Args| load::Args {
        rate: Some(RATE),
        connections: CONNECTIONS,
        ..load
    };
    compare(lab, "at 1000 events/s", sink, streets, change).await
}

async fn saturated<const N: usize>(
    lab: &mut Lab<'_>,
    sink: &Helper,
    streets: [&Street; N],
) -> anyhow::Result<[Sample; N]> {
    compare(lab, "saturated", sink, streets, |load| load).await
}

/// Measures all streets in turn, and again, each time on a server that has seen nothing else.
async fn compare<const N: usize>(
    lab: &mut Lab<'_>,
    how: &str,
    sink: &Helper,
    streets: [&Street; N],
    change: impl Fn(load::Args) -> load::Args,
) -> anyhow::Result<[Sample; N]> {
    let mut runs = streets.map(|_| Vec::new());
    for turn in 1..=lab.repeats {
        for (street, runs) in streets.iter().zip(&mut runs) {
            let dir = lab.dir.join("street");
            let server = Server::start(lab.world, dir.clone()).await?;
            let path = server.broker(BROKER).await?;
            server
                .triggers(BROKER, Wants::Everything, HEALTHY, sink.address)
                .await?;
            server.neighbours(BROKER, &street.neighbours).await?;
            let load = change(lab.load(server.events, &path));
            let name = format!("{HEALTHY} healthy triggers {}, {how}", street.name);
            let side = Side::ingest(name, server.pid(), &load);
            let side = side.delivering(sink.address, HEALTHY.into());
            runs.push(lab.once(&side, turn).await?);
            drop(server);
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(runs.map(|runs| lab.median(&runs)))
}

/// From sending an event to its arrival, half of them and almost all of them.
fn millis(sample: &Sample) -> (f64, f64) {
    let (p50, p99) = sample.arrival.unwrap_or_default();
    (p50.as_secs_f64() * 1e3, p99.as_secs_f64() * 1e3)
}
