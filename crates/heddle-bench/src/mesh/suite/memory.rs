//! How much memory does it take: at rest, after a storm, and with millions of events that wait for a subscriber?

use super::super::lab::{Lab, Side};
use super::super::load;
use super::super::processes::{self, Helper};
use super::super::programs;
use super::super::report::{Goal, Row, Unit};
use super::super::server::{Server, Wants};

/// Waiting events should cost memory by their number, not by their size; small ones spare the disk.
const QUEUED_DATA_BYTES: usize = 128;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    after_load(lab).await?;
    queued(lab).await
}

async fn after_load(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let sink = Helper::start("sink")?;
    let server = Server::start(lab.world, lab.dir.join("memory")).await?;
    server.rest().await?;
    let idle = server.usage()?.rss_bytes;
    lab.row(megabytes("memory at rest", idle).goal(Goal::AtMost(30.0)));
    let path = server.broker("busy").await?;
    server
        .triggers("busy", Wants::Everything, 1, sink.address)
        .await?;
    let load = load::Args {
        connections: 256,
        ..lab.load(server.events, &path)
    };
    let side = Side::ingest("full path, 256 connections", server.pid(), &load);
    lab.compare([&side.delivering(sink.address, 1)]).await?;
    let loaded = server.usage()?.rss_bytes;
    lab.row(megabytes("memory after load on 256 connections", loaded).goal(Goal::AtMost(120.0)));
    Ok(())
}

async fn queued(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let server = Server::start(lab.world, lab.dir.join("queued")).await?;
    let path = server.broker("waiting").await?;
    let nobody = programs::unused_address().await?;
    server
        .triggers("waiting", Wants::Everything, 1, nobody)
        .await?;
    let before = server.usage()?.rss_bytes;
    lab.terminal
        .note(&format!("queueing {} events", lab.queued));
    let outcome = processes::load(&load::Args {
        count: Some(lab.queued),
        batch: 100,
        connections: 16,
        data_bytes: QUEUED_DATA_BYTES,
        ..load::Args::to(server.events, &path)
    })?;
    server.rest().await?;
    let added = server.usage()?.rss_bytes.saturating_sub(before);
    let name = format!("memory added by {} events that wait", outcome.accepted);
    lab.row(megabytes(&name, added).goal(Goal::AtMost(100.0)));
    Ok(())
}

fn megabytes(name: &str, bytes: u64) -> Row {
    let value = bytes as f64 / 1e6;
    Row::figure(name, value, Unit::Megabytes)
}
