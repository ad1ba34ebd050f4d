//! `heddle explain instance`: what an instance waits for, which object must change, since when.
//!
//! What is said follows from `heddle_api::service_instance::waits`; the page of an instance says the same.

use heddle_api::operation::{OperationKind, OperationRequest, OperationState};
use heddle_api::service_instance::waits::{InstanceWait, fails_at, waits, who_acts};
use heddle_api::{
    Application, BundleRevision, EventFlow, ServiceInstance, names, service_instance,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource as _;
use kube::core::params::GetParams;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::client::Remote;
use crate::cmd::CommandContext;
use crate::cmd::osb::{InstanceArgs, fetch};
use crate::output::{ReportFormat, age, harmless, moment, span};
use crate::terminal::{Tone, paint};

const EXAMPLES: &str = "\
Examples:
  heddle explain instance shop-events-x7k2p -n team-a
  heddle explain instance shop-events-x7k2p -n team-a -o json | jq .waitsFor";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct Args {
    /// Id of the instance
    id: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) instance: InstanceArgs,
}

pub(super) async fn explain(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let namespace = args.instance.namespace(ctx.remote)?;
    let instance = ServiceInstance::deserialize(fetch(&args.id, &namespace, ctx.remote).await?)?;
    let flow = flow_of(&args.id, &namespace, ctx.remote).await?;
    let waits = waits(&instance, flow.as_ref());
    let offering = offering_of(&instance, ctx.remote).await?;
    let status = instance.status.clone().unwrap_or_default();
    let report = json!({
        "instance": args.id,
        "namespace": namespace,
        "offering": offering,
        "phase": status.phase,
        "operation": status.operation,
        "accepted": instance.spec.operation,
        "failsAt": fails_at(&instance).map(|at| at.to_string()),
        "waitsFor": waits.iter().map(to_json).collect::<Vec<_>>(),
    });
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    let text = (args.output).render(&report, |_| text(&instance, &offering, &waits, now, colour));
    Ok(ctx.terminal.print(&text)?)
}

/// The flow of an instance, which has its name; an instance without events has none.
async fn flow_of(id: &str, namespace: &str, remote: &Remote) -> anyhow::Result<Option<EventFlow>> {
    let path = EventFlow::url_path(&(), Some(namespace));
    let request =
        kube::core::Request::new(path).get(&names::instance(id), &GetParams::default())?;
    let answer = remote.send(request).await?;
    if answer.code == http::StatusCode::NOT_FOUND {
        return Ok(None);
    }
    Ok(Some(EventFlow::deserialize(answer.ok("event flow")?)?))
}

/// What the instance is one of, as the catalog calls it; its id where nobody knows the name any more.
async fn offering_of(instance: &ServiceInstance, remote: &Remote) -> anyhow::Result<String> {
    let spec = &instance.spec;
    if let Some(pin) = &spec.application {
        let path = Application::url_path(&(), None);
        let application = lookup(remote, path, &pin.name, "application").await?;
        let services = application["spec"]["services"].as_array();
        let mut services = services.into_iter().flatten();
        let service = services.find(|service| service["id"] == json!(pin.service_id));
        let name = service.and_then(|service| service["name"].as_str());
        let name = name.unwrap_or(&pin.service_id);
        return Ok(format!("{name} of application {}", pin.name));
    }
    let Some(pin) = &spec.revision_ref else {
        return Ok(spec.service_id.clone());
    };
    let path = BundleRevision::url_path(&(), None);
    let revision = lookup(remote, path, &pin.name, "bundle revision").await?;
    let name = revision["spec"]["description"]["name"].as_str();
    let registry = revision["spec"]["registry"].as_str();
    Ok(match (name, registry) {
        (Some(name), Some(registry)) => format!("{name} of registry {registry}"),
        _ => spec.service_id.clone(),
    })
}

/// An object of the server's, or `null`.
async fn lookup(remote: &Remote, path: String, name: &str, what: &str) -> anyhow::Result<Value> {
    let request = kube::core::Request::new(path).get(name, &GetParams::default())?;
    let answer = remote.send(request).await?;
    if answer.code == http::StatusCode::NOT_FOUND {
        return Ok(Value::Null);
    }
    answer.ok(what)
}

fn to_json(wait: &InstanceWait) -> Value {
    json!({
        "object": wait.object, "condition": wait.condition, "since": wait.since.map(|at| at.to_string()),
        "reason": wait.reason, "message": wait.message, "meaning": wait.meaning, "culprit": wait.culprit,
    })
}

fn text(
    instance: &ServiceInstance,
    offering: &str,
    waits: &[InstanceWait],
    now: Timestamp,
    colour: bool,
) -> String {
    let (spec, status) = (&instance.spec, instance.status.clone().unwrap_or_default());
    let id = harmless(&spec.instance_id);
    let phase = (status.phase).map_or_else(
        || "not looked at yet".to_owned(),
        |phase| format!("{phase:?}"),
    );
    let mut text = format!("{}  {phase}\n", paint(colour, Tone::Strong, &id));
    let mut line = |name: &str, value: &str| {
        text.push_str(&format!("  {name:10} {}\n", harmless(value)));
    };
    line("service", offering);
    if let Some(request) = &spec.operation {
        let fails_at = fails_at(instance);
        line(
            "operation",
            &operation_text(request, &status, waits, fails_at, now),
        );
    }
    for wait in waits {
        let since = wait
            .since
            .map_or_else(String::new, |at| format!(" for {}", span(age(at, now))));
        line(
            "waits for",
            &format!("{} of {}{since}", wait.condition, wait.object),
        );
        line("", &format!("{}: {}", wait.reason, wait.said()));
    }
    match who_acts(waits) {
        None => line("waits for", "nothing"),
        Some(who) => line("", &who),
    }
    text
}

fn operation_text(
    request: &OperationRequest,
    status: &service_instance::ServiceInstanceStatus,
    waits: &[InstanceWait],
    fails_at: Option<Timestamp>,
    now: Timestamp,
) -> String {
    let kind = match request.kind {
        OperationKind::Provision => "provision",
        OperationKind::Update => "update",
        OperationKind::Deprovision => "deprovision",
        OperationKind::Bind => "bind",
        OperationKind::Unbind => "unbind",
    };
    let progress = status
        .operation
        .as_ref()
        .filter(|found| found.id == request.id);
    let state = match progress.map(|progress| progress.state) {
        Some(OperationState::Succeeded) => "succeeded",
        Some(OperationState::Failed) => "failed",
        Some(OperationState::InProgress) => "in progress",
        Some(OperationState::Queued) | None => "accepted, not begun",
    };
    let Time(accepted) = &request.accepted_at;
    let mut text = format!(
        "{kind} {state}, asked for {} ago",
        span(age(*accepted, now))
    );
    let said = progress.and_then(|progress| progress.description.as_deref());
    // What is waited for is told below, once.
    let is_below = |said: &&str| {
        let mut waits = waits.iter();
        waits.any(|wait| !wait.message.is_empty() && said.contains(&wait.message))
    };
    if let Some(said) = said.filter(|said| !is_below(said)) {
        text.push_str(&format!(": {said}"));
    }
    let running = !matches!(state, "succeeded" | "failed");
    if let Some(at) = fails_at.filter(|_| running) {
        text.push_str(&format!(
            "; the platform is told it failed at {}",
            moment(at)
        ));
    }
    text
}

#[cfg(test)]
mod tests;
