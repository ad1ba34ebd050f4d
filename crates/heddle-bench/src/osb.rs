//! `heddle-bench osb`: how the broker answers while it has much to do, and how soon the work is done.
//!
//! Three questions, each to a heddle of its own. *Requests*: PUT and `last_operation` while no controller works, so that
//! only recording a wish and reading it back is measured; beside them `/livez`, which does nothing. *Flows*: Applications,
//! mappings and instances are declared first; then heddle is started on them, and the clock stops when every EventFlow
//! is Ready. *Stuck*: instances that cannot become ready, and what they cost while they wait.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use heddle_api::{Application, ApplicationMapping, EventFlow};
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::front::Front;
use super::mesh::server::{STALL_MAX, Server};
use super::report::{Goal, Report, Row, Unit};
use super::session::{Measuring, Session};
use heddle::wire::World;

/// How often the server that does nothing is asked.
const LIVEZ_REQUESTS: u32 = 5_000;

const EXAMPLES: &str = "\
Examples:
  heddle-bench osb                                   all of it, a few minutes
  heddle-bench osb --instances 200 --flows 400 --stuck 500

Say `nice`, and run nothing else beside it: the figures are of this machine.";

/// Measure the service broker
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Instances that are asked for while nobody works on them
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,

    /// Flows that must become ready; each Application of 200 in each namespace of flows/200
    #[arg(long, default_value_t = 4_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    flows: u32,

    /// Instances that cannot become ready
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    stuck: u32,

    #[command(flatten)]
    pub(super) session: Session,
}

pub(super) async fn measure(args: Args, bench: Measuring<'_>) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let Measuring {
        dir,
        world,
        terminal,
    } = bench;
    terminal.note("measuring requests");
    requests(&args, dir.join("requests"), world, &mut report).await?;
    terminal.note("measuring flows");
    flows(&args, dir.join("flows"), world, &mut report).await?;
    terminal.note("measuring stuck instances");
    stuck(&args, dir.join("stuck"), world, &mut report).await?;
    Ok(report)
}

async fn requests(
    args: &Args,
    dir: PathBuf,
    world: &World,
    report: &mut Report,
) -> anyhow::Result<()> {
    let server = Server::start_with(world, dir.clone(), &["--no-controllers"]).await?;
    let client = server.client().await?;
    declare(&client, 1, &["bench-000".to_owned()]).await?;
    let broker = Front::of(&server, world, &dir)?;
    broker.offered(1).await?;
    let idle = broker
        .timed(&server, LIVEZ_REQUESTS, |_| {
            Request::get("/livez").body(Vec::new())
        })
        .await?;
    let put = broker
        .timed(&server, args.instances, |number| {
            put(&broker, number, 0, "bench-000")
        })
        .await?;
    let polled = broker
        .timed(&server, args.instances * 5, |number| {
            poll(&broker, number % args.instances)
        })
        .await?;
    let millis = |value: Duration| value.as_secs_f64() * 1000.0;
    report.rows.extend([
        Row::figure(
            format!("PUT of {} instances, p50", args.instances),
            millis(put.p50),
            Unit::Millis,
        ),
        Row::figure(
            "the same, p99, nobody works on them",
            millis(put.p99),
            Unit::Millis,
        )
        .goal(Goal::AtMost(20.0)),
        Row::figure(
            "the same, CPU per request against /livez",
            put.cpu_micros / idle.cpu_micros,
            Unit::Ratio,
        ),
        Row::figure("last_operation, p50", millis(polled.p50), Unit::Millis),
        Row::figure("last_operation, p99", millis(polled.p99), Unit::Millis),
        Row::figure(
            "the same, CPU per request against /livez",
            polled.cpu_micros / idle.cpu_micros,
            Unit::Ratio,
        ),
    ]);
    Ok(())
}

async fn flows(
    args: &Args,
    dir: PathBuf,
    world: &World,
    report: &mut Report,
) -> anyhow::Result<()> {
    let applications = args.flows.min(200);
    let namespaces = args.flows.div_ceil(applications);
    let names: Vec<String> = (0..namespaces)
        .map(|number| format!("bench-{number:03}"))
        .collect();
    {
        let server = Server::start_with(world, dir.clone(), &["--no-controllers"]).await?;
        declare(&server.client().await?, applications, &names).await?;
        let broker = Front::of(&server, world, &dir)?;
        broker.offered(applications as usize).await?;
        let put = |number: u32| {
            let namespace = &names[(number / applications) as usize];
            put(&broker, number, number % applications, namespace)
        };
        broker.timed(&server, args.flows, put).await?;
    }
    let started = world.clock.monotonic();
    let server = Server::start(world, dir).await?;
    let client = server.client().await?;
    let ready = ready_flows(&client, args.flows, world).await?;
    let took = world.clock.monotonic().saturating_sub(started);
    ready.context("flows do not become ready")?;
    let cpu = server.usage()?.cpu;
    server.rest().await?;
    let usage = server.usage()?;
    report.rows.extend([
        Row::figure(
            format!("{} flows ready from a cold start", args.flows),
            took.as_secs_f64(),
            Unit::Seconds,
        )
        .goal(Goal::AtMost(30.0)),
        Row::figure("CPU for it", cpu.as_secs_f64(), Unit::Seconds),
        Row::figure(
            "memory with them",
            usage.rss_bytes as f64 / 1e6,
            Unit::Megabytes,
        ),
    ]);
    Ok(())
}

async fn stuck(
    args: &Args,
    dir: PathBuf,
    world: &World,
    report: &mut Report,
) -> anyhow::Result<()> {
    let server = Server::start(world, dir.clone()).await?;
    let client = server.client().await?;
    // A namespace that forbids a Broker: no flow in it can ever be ready.
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let forbidding = json!({"metadata": {"name": "bench-000", "labels": {"knative-eventing-injection": "disabled"}}});
    namespaces
        .create(&PostParams::default(), &serde_json::from_value(forbidding)?)
        .await?;
    declare(&client, 1, &["bench-000".to_owned()]).await?;
    let broker = Front::of(&server, world, &dir)?;
    broker.offered(1).await?;
    server.rest().await?;
    let before = server.usage()?.rss_bytes;
    let put = broker
        .timed(&server, args.stuck, |number| {
            put(&broker, number, 0, "bench-000")
        })
        .await?;
    server.rest().await?;
    let grown = server.usage()?.rss_bytes.saturating_sub(before);
    report.rows.extend([
        Row::figure(
            format!("PUT p99 of {} instances that are stuck", args.stuck),
            put.p99.as_secs_f64() * 1000.0,
            Unit::Millis,
        ),
        Row::figure("memory that they add", grown as f64 / 1e6, Unit::Megabytes)
            .goal(Goal::AtMost(50.0)),
    ]);
    Ok(())
}

/// Applications with one service each, and namespaces that may use all of them.
async fn declare(
    client: &kube::Client,
    applications: u32,
    namespaces: &[String],
) -> anyhow::Result<()> {
    let api: Api<Application> = Api::all(client.clone());
    for number in 0..applications {
        let name = application(number);
        let service = json!({
            "id": format!("{name}-events"), "name": format!("{name}-events"), "displayName": name,
            "description": "events of a benchmark", "providerDisplayName": "bench", "entries": [{"type": "Events"}],
        });
        let object = json!({"metadata": {"name": name}, "spec": {"services": [service]}});
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
    }
    let known: Api<Namespace> = Api::all(client.clone());
    for namespace in namespaces {
        if known.get_opt(namespace).await?.is_none() {
            let object = json!({"metadata": {"name": namespace}});
            known
                .create(&PostParams::default(), &serde_json::from_value(object)?)
                .await?;
        }
        let mappings: Api<ApplicationMapping> = Api::namespaced(client.clone(), namespace);
        for number in 0..applications {
            let object = json!({"metadata": {"name": application(number)}, "spec": {}});
            mappings
                .create(&PostParams::default(), &serde_json::from_value(object)?)
                .await?;
        }
    }
    Ok(())
}

fn application(number: u32) -> String {
    format!("bench-{number:04}")
}

/// Waits until so many flows are ready, by one watch: asking again and again would be much of the work that is measured.
/// The inner result says that they do not become so.
async fn ready_flows(
    client: &kube::Client,
    wanted: u32,
    world: &World,
) -> anyhow::Result<anyhow::Result<()>> {
    let flows: Api<EventFlow> = Api::all(client.clone());
    let mut changes = std::pin::pin!(watcher(flows, watcher::Config::default()).applied_objects());
    let mut ready = BTreeSet::new();
    while ready.len() < wanted as usize {
        let flow = tokio::select! {
            change = changes.next() => change.context("the watch has ended")??,
            () = world.clock.sleep(STALL_MAX) => {
                let count = ready.len();
                return Ok(Err(anyhow::anyhow!("{count} of {wanted} are ready, and no more")));
            }
        };
        let key = (flow.namespace(), flow.name_any());
        let status = flow.status.as_ref();
        if status.is_some_and(|status| status.conditions.is_ready()) {
            ready.insert(key);
        } else {
            ready.remove(&key);
        }
    }
    Ok(Ok(()))
}

fn put(broker: &Front, number: u32, of: u32, namespace: &str) -> http::Result<Request<Vec<u8>>> {
    let service = format!("{}-events", application(of));
    let body = json!({
        "service_id": service, "plan_id": format!("{service}-plan"),
        "organization_guid": "bench", "space_guid": namespace,
        "context": {"platform": "bench", "namespace": namespace},
    });
    let path = format!("/v2/service_instances/bench-{number}?accepts_incomplete=true");
    broker
        .request("PUT", &path)
        .header("Content-Type", "application/json")
        .body(body.to_string().into_bytes())
}

fn poll(broker: &Front, number: u32) -> http::Result<Request<Vec<u8>>> {
    let path = format!("/v2/service_instances/bench-{number}/last_operation");
    broker.request("GET", &path).body(Vec::new())
}
