//! What do triggers cost that do not want an event?
//!
//! One server per number of triggers, so that memory and caches are those of a server that has so many; the one with a
//! single trigger runs beside each of the others and takes turns with it.

use super::super::lab::{Lab, Side};
use super::super::programs;
use super::super::report::{Goal, Row, Sample, Unit};
use super::super::server::{Server, Wants};

const BROKER: &str = "idle";
/// How many, and how much dearer an event may get.
const COUNTS: [(u32, Option<f64>); 3] = [(100, None), (10_000, Some(1.05)), (100_000, Some(1.15))];
/// Declaring more takes minutes.
const QUICK_COUNT_MAX: u32 = 10_000;
const SQL_COUNT: u32 = 1000;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let single = server(lab, Wants::Nothing, 1).await?;
    for (count, goal) in COUNTS {
        if lab.quick && count > QUICK_COUNT_MAX {
            continue;
        }
        let [base, many] = compare(lab, &single, Wants::Nothing, count).await?;
        let name = format!("CPU per event, {count} triggers that do not match ÷ 1");
        let row = Row::ratio(name, |sample| sample.cpu_micros, &many, &base);
        lab.row(match goal {
            Some(most) => row.goal(Goal::AtMost(most)),
            None => row,
        });
    }
    let [base, many] = compare(lab, &single, Wants::NothingInSql, SQL_COUNT).await?;
    let name = format!("CPU added per event by {SQL_COUNT} CESQL triggers that do not match");
    let row = Row::figure(name, many.cpu_micros - base.cpu_micros, Unit::Micros);
    let row = row.disturbed_by(base.foreign_cores.max(many.foreign_cores));
    lab.row(row.goal(Goal::AtMost(2.0)));
    Ok(())
}

/// Measures a server with `count` triggers beside the one with a single trigger.
async fn compare(
    lab: &mut Lab<'_>,
    single: &(Server<'_>, String),
    wants: Wants,
    count: u32,
) -> anyhow::Result<[Sample; 2]> {
    let language = if wants == Wants::NothingInSql {
        " in CESQL"
    } else {
        ""
    };
    lab.terminal
        .note(&format!("declaring {count} triggers{language}"));
    let many = server(lab, wants, count).await?;
    let side = |name: String, (server, path): &(Server<'_>, String)| {
        Side::ingest(name, server.pid(), &lab.load(server.events, path))
    };
    let base = side(
        format!("1 trigger that does not match, beside {count}{language}"),
        single,
    );
    let many_side = side(
        format!("{count} triggers{language} that do not match"),
        &many,
    );
    lab.compare([&base, &many_side]).await
}

/// A server with that many triggers on one broker, and the path of the broker.
async fn server<'a>(
    lab: &mut Lab<'a>,
    wants: Wants,
    count: u32,
) -> anyhow::Result<(Server<'a>, String)> {
    let dir = lab
        .dir
        .join(format!("triggers-{wants:?}-{count}").to_lowercase());
    let server = Server::start(lab.world, dir).await?;
    let path = server.broker(BROKER).await?;
    let subscriber = programs::unused_address().await?;
    server.triggers(BROKER, wants, count, subscriber).await?;
    Ok((server, path))
}
