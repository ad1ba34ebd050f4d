//! `heddle explain instance`: what an instance waits for, which object must change, since when.
//!
//! Everything said here stands in the conditions of the ServiceInstance and its EventFlow; this only puts it into the
//! order in which a person asks.

use heddle_api::conditions::{Condition, Conditions, READY, Reason, Status};
use heddle_api::operation::{OperationKind, OperationRequest, OperationState};
use heddle_api::{EventFlow, ServiceInstance, event_flow, names, service_instance};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource as _;
use kube::core::params::GetParams;
use serde::Deserialize as _;
use serde_json::json;

use crate::client::Remote;
use crate::cmd::osb::{InstanceArgs, fetch};
use crate::output::{ReportFormat, age, harmless, moment, span};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle explain instance shop-events-x7k2p -n team-a
  heddle explain instance shop-events-x7k2p -n team-a -o json | jq .waitsFor";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    id: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) instance: InstanceArgs,
}

/// One condition that does not hold.
#[derive(Debug, PartialEq)]
struct Wait {
    object: String,
    condition: String,
    since: Option<Timestamp>,
    reason: String,
    message: String,
    /// What the reason means, wherever it is met.
    meaning: &'static str,
}

pub(super) async fn explain(
    args: &Args,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let namespace = args.instance.namespace(remote)?;
    let instance = ServiceInstance::deserialize(fetch(&args.id, &namespace, remote).await?)?;
    let flow = flow_of(&args.id, &namespace, remote).await?;
    let waits = waits(&instance, flow.as_ref());
    let status = instance.status.clone().unwrap_or_default();
    let report = json!({
        "instance": args.id,
        "namespace": namespace,
        "phase": status.phase,
        "operation": status.operation,
        "accepted": instance.spec.operation,
        "waitsFor": waits.iter().map(Wait::to_json).collect::<Vec<_>>(),
    });
    let (now, colour) = (world.clock.now(), terminal.colour_out);
    let text = (args.output).render(&report, |_| text(&instance, &waits, now, colour));
    terminal.out.write_all(text.as_bytes())?;
    Ok(terminal.out.flush()?)
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

/// What does not hold: of the flow first, since the instance only repeats it.
fn waits(instance: &ServiceInstance, flow: Option<&EventFlow>) -> Vec<Wait> {
    let mut waits = Vec::new();
    if let Some(flow) = flow {
        let name = flow.metadata.name.as_deref().unwrap_or_default();
        let conditions = flow.status.as_ref().map(|status| &status.conditions);
        let reasons = event_flow::CONDITIONS;
        open(
            &mut waits,
            &format!("eventflow/{name}"),
            conditions,
            |word| {
                reasons
                    .iter()
                    .flat_map(|c| c.reasons)
                    .find(|reason| reason.name == word)
            },
        );
    }
    if waits.is_empty() {
        let name = instance.metadata.name.as_deref().unwrap_or_default();
        let conditions = instance.status.as_ref().map(|status| &status.conditions);
        let reasons = service_instance::CONDITIONS;
        open(
            &mut waits,
            &format!("serviceinstance/{name}"),
            conditions,
            |word| {
                reasons
                    .iter()
                    .flat_map(|c| c.reasons)
                    .find(|reason| reason.name == word)
            },
        );
    }
    waits
}

fn open(
    waits: &mut Vec<Wait>,
    object: &str,
    conditions: Option<&Conditions>,
    meaning: impl Fn(&str) -> Option<&'static Reason>,
) {
    let failing = |condition: &&Condition| {
        condition.type_ != READY && condition.status != Status::True && condition.severity.is_none()
    };
    for condition in conditions.into_iter().flatten().filter(failing) {
        let reason = condition.reason.clone().unwrap_or_default();
        waits.push(Wait {
            object: object.to_owned(),
            condition: condition.type_.clone(),
            since: condition.last_transition_time.as_ref().map(|time| time.0),
            meaning: meaning(&reason).map_or("", |reason| reason.meaning),
            reason,
            message: condition.message.clone().unwrap_or_default(),
        });
    }
}

impl Wait {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "object": self.object, "condition": self.condition, "since": self.since.map(|at| at.to_string()),
            "reason": self.reason, "message": self.message, "meaning": self.meaning,
        })
    }
}

fn text(instance: &ServiceInstance, waits: &[Wait], now: Timestamp, colour: bool) -> String {
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
    match &spec.application {
        Some(service) => line(
            "service",
            &format!("{} of application {}", service.service_id, service.name),
        ),
        None => line("service", &spec.service_id),
    }
    if let Some(request) = &spec.operation {
        line("operation", &operation_text(request, &status, now));
    }
    for wait in waits {
        let since = wait
            .since
            .map_or_else(String::new, |at| format!(" for {}", span(age(at, now))));
        line(
            "waits for",
            &format!("{} of {}{since}", wait.condition, wait.object),
        );
        line("", &format!("{}: {}", wait.reason, wait.message));
        if !wait.meaning.is_empty() && wait.meaning != wait.message {
            line("", wait.meaning);
        }
    }
    if waits.is_empty() {
        line("waits for", "nothing");
    } else {
        line("", "it goes on by itself as soon as that changes");
    }
    text
}

fn operation_text(
    request: &OperationRequest,
    status: &service_instance::ServiceInstanceStatus,
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
    if let Some(said) = progress.and_then(|progress| progress.description.as_deref()) {
        text.push_str(&format!(": {said}"));
    }
    let running = !matches!(state, "succeeded" | "failed");
    if let Some(Time(deadline)) = request.deadline.as_ref().filter(|_| running) {
        text.push_str(&format!(
            "; the platform is told it failed at {}",
            moment(*deadline)
        ));
    }
    text
}

#[cfg(test)]
mod tests;
