//! How long does it take to be told the health of all Applications?

use heddle_api::health::ApplicationHealthList;
use heddle_rt::metrics::Latencies;

use super::super::report::{Goal, Row, Unit};
use super::HealthBench;
use super::stage::Stage;

const REQUESTS: usize = 200;
/// With a thousand Applications.
const MILLIS_MAX: f64 = 50.0;

pub(super) async fn run(health: &mut HealthBench<'_>) -> anyhow::Result<()> {
    let Some(count) = health.applications.last().copied() else {
        return Ok(());
    };
    let stage = Stage::start(health, "list", &[], count).await?;
    let (clock, mut latencies) = (health.world.clock.clone(), Latencies::default());
    let before = stage.server.usage()?.cpu;
    for _ in 0..REQUESTS {
        let started = clock.monotonic();
        let list: ApplicationHealthList = stage.ask("/heddle/v1/health/applications").await?;
        latencies.record(clock.monotonic().saturating_sub(started));
        anyhow::ensure!(list.items.len() == count as usize, "the list is not whole");
    }
    let cpu = stage.server.usage()?.cpu.saturating_sub(before);
    let name = |what: &str| format!("health of {count} applications, {what}");
    let millis = |percentile| latencies.percentile(percentile).as_secs_f64() * 1e3;
    health.row(Row::figure(name("p50"), millis(0.5), Unit::Millis));
    health.row(Row::figure(name("p99"), millis(0.99), Unit::Millis).goal(Goal::AtMost(MILLIS_MAX)));
    let each = cpu.as_secs_f64() * 1e3 / REQUESTS as f64;
    health.row(Row::figure(
        name("processor time of a request"),
        each,
        Unit::Millis,
    ));
    Ok(())
}
