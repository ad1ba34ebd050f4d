//! What do heartbeats cost: processor time, events, and bytes of the log?

use super::super::machine::Busy;
use super::super::report::{Goal, Row, Unit};
use super::HealthBench;
use super::stage::{Stage, WITHOUT};

/// Of a core, with a thousand Applications.
const SHARE_MAX: f64 = 3.0;
/// In a second, however many Applications there are.
const EVENTS_MAX: f64 = 50.0;
const MANY: u32 = 1000;

pub(super) async fn run(health: &mut HealthBench<'_>) -> anyhow::Result<()> {
    for count in health.applications.clone() {
        let with = Stage::start(health, "cost-with", &[], count).await?;
        let without = Stage::start(health, "cost-without", WITHOUT, count).await?;
        measure(health, &with, &without, count).await?;
    }
    Ok(())
}

async fn measure(
    health: &mut HealthBench<'_>,
    with: &Stage<'_>,
    without: &Stage<'_>,
    count: u32,
) -> anyhow::Result<()> {
    let seconds = health.window.as_secs_f64();
    let (clock, busy) = (health.world.clock.clone(), Busy::now()?);
    let started = clock.monotonic();
    let events = with.metric("heddle_log_events").await?;
    let bytes = with.metric("heddle_log_bytes").await?;
    let before = [with, without].map(|stage| stage.server.usage());
    clock.sleep(health.window).await;
    let after = [with, without].map(|stage| stage.server.usage());
    let mut shares = Vec::new();
    for (before, after) in before.into_iter().zip(after) {
        let used = after?.cpu.saturating_sub(before?.cpu);
        shares.push(used.as_secs_f64() / seconds * 100.0);
    }
    let events = (with.metric("heddle_log_events").await? - events) / seconds;
    let bytes = (with.metric("heddle_log_bytes").await? - bytes) / seconds;
    let elapsed = clock.monotonic().saturating_sub(started);
    let foreign = Busy::now()?.foreign_cores_since(&busy, elapsed);
    let of = |what: &str| format!("{count} applications, {what}");
    let (with, without) = (shares[0], shares[1]);
    let added = Row::figure(
        of("processor added by heartbeats"),
        with - without,
        Unit::Percent,
    );
    let rows = [
        Row::figure(
            of("processor, at rest with heartbeats"),
            with,
            Unit::Percent,
        ),
        match count {
            MANY.. => added.goal(Goal::AtMost(SHARE_MAX)),
            _ => added,
        },
        Row::figure(of("heartbeats in a second"), events, Unit::Count)
            .goal(Goal::AtMost(EVENTS_MAX)),
        Row::figure(of("log, in a second"), bytes / 1e3, Unit::Kilobytes),
    ];
    for row in rows {
        health.row(row.disturbed_by(foreign));
    }
    Ok(())
}
