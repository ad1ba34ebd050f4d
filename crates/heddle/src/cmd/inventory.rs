//! `heddle inventory`: every instance and binding, whose it is, and which of them nobody may know of any more.
//!
//! The Open Service Broker API has no list, so a platform that lost an answer, a restore or a whole cluster leaves things
//! behind that it will never remove. Suspicion is a reason to look, not to delete: what raises it stands beside it.

mod by_version;

use heddle_api::operation::OperationState;
use heddle_api::well_known::LAST_CONTACT_ANNOTATION;
use heddle_api::{ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::NamespaceArgs;
use crate::client::{ClientArgs, Remote, objects};
use crate::cmd::CommandContext;
use crate::output::{ReportFormat, Table, age, harmless, span};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle inventory -A                     everything that platforms have asked for
  heddle inventory -A --suspects          only what may have been forgotten
  heddle inventory -A --by-version        which versions of bundles are in use, and which are behind
  heddle inventory -A -o json | jq -r '.[] | select(.suspicions != []) | .id'

Compare it with what the platform believes to have. `heddle deprovision ID` removes an instance
with everything it consists of.";

/// List all instances and bindings, and suspect the forgotten
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Only what may have been forgotten
    #[arg(long)]
    suspects: bool,

    /// Instances of bundles by registry, bundle and version, and which are behind the catalog
    #[arg(long, conflicts_with_all = ["suspects", "silent_days"])]
    by_version: bool,

    /// Nobody asking for so many days is suspicious
    #[arg(long, default_value_t = 30, value_name = "DAYS")]
    silent_days: u32,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

/// One instance or binding.
#[derive(Debug, PartialEq)]
struct Entry {
    kind: &'static str,
    namespace: String,
    id: String,
    of: String,
    /// On whose behalf it was asked for, as far as the platform said.
    owner: String,
    created: Option<Timestamp>,
    last_contact: Option<Timestamp>,
    suspicions: Vec<String>,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    show(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn show(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let namespace = args.namespace.chosen(&ctx.remote.namespace)?;
    let instances: Vec<ServiceInstance> = objects::all(ctx.remote, namespace).await?;
    if args.by_version {
        return by_version::show(&instances, args.output, ctx.remote, ctx.terminal).await;
    }
    let bindings: Vec<ServiceBinding> = objects::all(ctx.remote, namespace).await?;
    let now = ctx.world.clock.now();
    let mut entries = entries(&instances, &bindings, now, args.silent_days);
    if args.suspects {
        entries.retain(|entry| !entry.suspicions.is_empty());
    }
    let report: Vec<Value> = entries.iter().map(Entry::to_json).collect();
    let colour = ctx.terminal.colour_out;
    let text = args
        .output
        .render(&report, |_| table(&entries, now, colour));
    Ok(ctx.terminal.print(&text)?)
}

fn entries(
    instances: &[ServiceInstance],
    bindings: &[ServiceBinding],
    now: Timestamp,
    silent_days: u32,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for instance in instances {
        let spec = &instance.spec;
        let of = spec.application.as_ref();
        let of = of.map_or(&spec.service_id, |service| &service.name).clone();
        let owner = owner(spec.originating_identity.as_ref(), &spec.context);
        let mut entry = Entry::new("instance", instance, &spec.instance_id, of, owner);
        entry.suspect_silence(now, silent_days);
        let failed = (instance.status.as_ref())
            .and_then(|status| status.operation.as_ref())
            .is_some_and(|operation| operation.state == OperationState::Failed);
        if failed {
            let text = "its last operation failed; platforms remove what failed";
            entry.suspicions.push(text.to_owned());
        }
        entries.push(entry);
    }
    for binding in bindings {
        let spec = &binding.spec;
        let owner = owner(spec.originating_identity.as_ref(), &spec.context);
        let of = spec.instance_ref.name.clone();
        let mut entry = Entry::new("binding", binding, &spec.binding_id, of, owner);
        let home = binding.namespace();
        let is_its = |instance: &&ServiceInstance| {
            instance.namespace() == home && instance.name_any() == spec.instance_ref.name
        };
        if !instances.iter().any(|instance| is_its(&instance)) {
            entry
                .suspicions
                .push("its instance does not exist".to_owned());
        }
        entries.push(entry);
    }
    entries
}

/// Who asked, in the words of the platform.
fn owner(
    identity: Option<&heddle_api::operation::OriginatingIdentity>,
    context: &serde_json::Map<String, Value>,
) -> String {
    let named = |map: &serde_json::Map<String, Value>, keys: &[&str]| {
        let found = keys.iter().find_map(|key| map.get(*key)?.as_str());
        found.map(str::to_owned)
    };
    let user = identity.and_then(|identity| {
        let user = named(&identity.value, &["username", "user_id", "uid"])?;
        Some(format!("{user} ({})", identity.platform))
    });
    let place = || named(context, &["space_name", "space_guid", "namespace"]);
    user.or_else(place).unwrap_or_default()
}

impl Entry {
    fn new(
        kind: &'static str,
        object: &impl kube::Resource,
        id: &str,
        of: String,
        owner: String,
    ) -> Self {
        let contact = object.annotations().get(LAST_CONTACT_ANNOTATION);
        Self {
            kind,
            namespace: object.namespace().unwrap_or_default(),
            id: id.to_owned(),
            of,
            owner,
            created: object.creation_timestamp().map(|time| time.0),
            last_contact: contact.and_then(|text| text.parse().ok()),
            suspicions: Vec::new(),
        }
    }

    fn suspect_silence(&mut self, now: Timestamp, silent_days: u32) {
        let Some(heard) = self.last_contact.or(self.created) else {
            return;
        };
        let silent = age(heard, now);
        if silent.as_secs() / 86_400 >= u64::from(silent_days) {
            let text = format!("no platform has asked about it for {}", span(silent));
            self.suspicions.push(text);
        }
    }

    fn to_json(&self) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "kind": self.kind, "namespace": self.namespace, "id": self.id, "of": self.of, "owner": self.owner,
            "created": time(self.created), "lastContact": time(self.last_contact), "suspicions": self.suspicions,
        })
    }
}

fn table(entries: &[Entry], now: Timestamp, colour: bool) -> String {
    let headers = [
        "NAMESPACE",
        "KIND",
        "ID",
        "OF",
        "OWNER",
        "AGE",
        "LAST CONTACT",
        "SUSPICION",
    ];
    let since =
        |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), |at| span(age(at, now)));
    let or_none = |text: &str| match text {
        "" => "<none>".to_owned(),
        text => harmless(text),
    };
    let row = |entry: &Entry| {
        vec![
            harmless(&entry.namespace),
            entry.kind.to_owned(),
            harmless(&entry.id),
            harmless(&entry.of),
            or_none(&entry.owner),
            since(entry.created),
            since(entry.last_contact),
            or_none(&entry.suspicions.join("; ")),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: entries.iter().map(row).collect(),
    };
    table.page(colour)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(id: &str, contact: Option<&str>, state: &str) -> ServiceInstance {
        let mut object = json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
            "metadata": {"name": id, "namespace": "team-a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "instanceID": id, "serviceID": "s", "planID": "p", "application": {"name": "shop", "serviceID": "s"},
                "originatingIdentity": {"platform": "kubernetes", "value": {"username": "ann"}},
            },
            "status": {"operation": {"id": "o", "kind": "provision", "state": state}},
        });
        if let Some(contact) = contact {
            object["metadata"]["annotations"] = json!({LAST_CONTACT_ANNOTATION: contact});
        }
        serde_json::from_value(object).unwrap()
    }

    fn binding(id: &str, of: &str) -> ServiceBinding {
        serde_json::from_value(json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceBinding",
            "metadata": {"name": id, "namespace": "team-a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"bindingID": id, "instanceRef": {"name": of}, "serviceID": "s", "planID": "p"},
        }))
        .unwrap()
    }

    #[test]
    fn silence_failure_and_a_lost_instance_are_suspicious() {
        let instances = [
            instance("fresh", Some("2026-03-01T00:00:00Z"), "succeeded"),
            instance("silent", Some("2026-01-02T00:00:00Z"), "succeeded"),
            instance("failed", Some("2026-03-01T00:00:00Z"), "failed"),
        ];
        let bindings = [binding("web", "fresh"), binding("lost", "gone")];
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let entries = entries(&instances, &bindings, now, 30);
        insta::assert_snapshot!(table(&entries, now, false), @r"
        NAMESPACE   KIND       ID       OF      OWNER              AGE    LAST CONTACT   SUSPICION
        team-a      instance   fresh    shop    ann (kubernetes)   59 d   12 h           <none>
        team-a      instance   silent   shop    ann (kubernetes)   59 d   58 d           no platform has asked about it for 58 d
        team-a      instance   failed   shop    ann (kubernetes)   59 d   12 h           its last operation failed; platforms
                                                                                         remove what failed
        team-a      binding    web      fresh   <none>             59 d   never          <none>
        team-a      binding    lost     gone    <none>             59 d   never          its instance does not exist
        ");
    }
}
