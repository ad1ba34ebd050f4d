//! `heddle catalog explain`: why a bundle's offering is as it is, and what would change it.
//!
//! Everything said here stands in resources: the Bundle, its revision, its Registry, the last SyncRuns, and the instances and
//! bindings that refer to it. What follows from them is `fate.rs`, how it looks is `render.rs`.

mod fate;
mod render;

use heddle_api::bundle::condition::STALE;
use heddle_api::conditions::Status;
use heddle_api::sync_run::{FindingVerdict, condition::COMPLETED};
use heddle_api::tombstone::{self, Tombstone};
use heddle_api::well_known::{RECORD_LABEL, SYSTEM_NAMESPACE};
use heddle_api::{Bundle, BundleRevision, Registry, SyncRun};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use self::fate::Fate;
use super::parameters;
use crate::client::osb::Osb;
use crate::client::{ClientArgs, Remote, objects};
use crate::cmd::CommandContext;
use crate::cmd::bundle::listing::{self, BundleList, Reference};
use crate::failure;
use crate::output::{ReportFormat, harmless};

/// So many readings are told.
const RUNS_MAX: usize = 5;
/// A record with as much news as this may have left some out.
const FINDINGS_MAX: usize = 200;
const ERRORS_MAX: usize = 100;

const EXAMPLES: &str = "\
Examples:
  heddle catalog explain hello-apb                   by the name of the offering
  heddle catalog explain org/hello-apb:v1.0          by its image
  heddle catalog explain 1dda1477 -o json | jq .evidence

Ids may be cut short, and the name of a Bundle will do. A bundle that was swept is remembered for a month.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Name or id of the offering, its image, or the name of its Bundle
    #[arg(value_name = "SERVICE")]
    word: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// All that is known.
#[derive(Debug)]
struct Facts {
    name: String,
    bundle: Bundle,
    revision: Option<BundleRevision>,
    registry: Option<Registry>,
    /// Of the registry, newest first.
    runs: Vec<SyncRun>,
    references: Vec<Reference>,
    /// Why the catalog leaves it out, if it does.
    left_out: Option<String>,
}

/// What one reading says about the bundle.
#[derive(Debug, PartialEq)]
struct Evidence {
    run: String,
    at: Option<Timestamp>,
    /// `present`, `rejected`, `absent`, `unknown`, or `unchanged` when it found nothing new.
    verdict: &'static str,
    message: String,
}

pub(super) async fn explain(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let bundle_list = BundleList::fetch(ctx.remote).await?;
    let now = ctx.world.clock.now();
    let colour = ctx.terminal.colour_out;
    // Why something is not offered can be told without it.
    let services = Osb::of_server(ctx.remote)
        .catalog()
        .await
        .unwrap_or_default();
    let text = match bundle_list.pick(&args.word, ctx.remote).await {
        Ok(bundle) => {
            let facts = Facts::fetch(bundle, &bundle_list, ctx.remote).await?;
            let id = bundle.spec.service_id.as_str();
            let service = services.iter().find(|service| service["id"] == id);
            let mut report = facts.to_json(now);
            report["plans"] = service.map_or(Value::Null, |service| service["plans"].clone());
            (args.output).render(&report, |_| {
                let text = render::text(&facts, now, colour);
                format!("{text}{}", service.map_or_else(String::new, plans))
            })
        }
        // Not found, but perhaps an Application's, or remembered.
        Err(error) if failure::exit_code(&error) == 3 => {
            let word = args.word.as_str();
            let called = |service: &&Value| service["name"] == word || service["id"] == word;
            if let Some(service) = services.iter().find(called) {
                let text = (args.output).render(service, offering);
                return Ok(ctx.terminal.print(&text)?);
            }
            let Some(tombstone) = tombstone_of(&args.word, ctx.remote).await? else {
                return Err(error);
            };
            let mut report = json!(tombstone);
            report["phase"] = json!("Gone");
            (args.output).render(&report, |_| render::epitaph(&tombstone, now, colour))
        }
        Err(error) => return Err(error),
    };
    Ok(ctx.terminal.print(&text)?)
}

/// An offering that comes from an Application and not from a bundle.
fn offering(service: &Value) -> String {
    let text = |key: &str| harmless(service[key].as_str().unwrap_or_default());
    let (name, id, about) = (text("name"), text("id"), text("description"));
    format!(
        "{name}  offered by an Application\n  service    {id}\n  about      {about}\n{}",
        plans(service)
    )
}

/// What can be chosen and said.
fn plans(service: &Value) -> String {
    let lines = parameters::in_full(service).into_iter();
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("\nPLANS\n{lines}")
}

/// The newest tombstone of that name or id.
async fn tombstone_of(word: &str, remote: &Remote) -> anyhow::Result<Option<Tombstone>> {
    let objects: Vec<ConfigMap> = objects::all(remote, Some(SYSTEM_NAMESPACE)).await?;
    let is_tombstone = |object: &&ConfigMap| {
        object
            .labels()
            .get(RECORD_LABEL)
            .is_some_and(|value| value == tombstone::LABEL)
    };
    let tombstones = objects
        .iter()
        .filter(is_tombstone)
        .filter_map(Tombstone::from_config_map);
    let called =
        |stone: &Tombstone| stone.service_id == word || stone.name == word || stone.image == word;
    Ok(tombstones
        .filter(called)
        .max_by_key(|stone| stone.gone_at.0))
}

impl Facts {
    async fn fetch(
        bundle: &Bundle,
        bundle_list: &BundleList,
        remote: &Remote,
    ) -> anyhow::Result<Self> {
        let registry = &bundle.spec.registry;
        let mut runs: Vec<SyncRun> = objects::all(remote, None).await?;
        runs.retain(|run| run.spec.registry == *registry);
        runs.sort_by_key(|run| std::cmp::Reverse((began(run), run.name_any())));
        runs.truncate(RUNS_MAX);
        Ok(Self {
            name: bundle_list.name(bundle),
            revision: bundle_list.current(bundle).cloned(),
            registry: objects::one(remote, None, registry).await?,
            runs,
            references: listing::references(&bundle.spec.service_id, remote).await?,
            left_out: bundle_list.left_out(bundle).map(str::to_owned),
            bundle: bundle.clone(),
        })
    }

    fn evidence(&self) -> Vec<Evidence> {
        let image = listing::image(&self.bundle);
        self.runs
            .iter()
            .map(|run| Evidence::of(run, &image))
            .collect()
    }

    /// Why what is known is old, and since when, if it is.
    fn stale(&self) -> Option<&heddle_api::Condition> {
        let conditions = &self.bundle.status.as_ref()?.conditions;
        let stale = conditions.find(STALE.name)?;
        Some(stale).filter(|stale| stale.status == Status::True)
    }

    fn to_json(&self, now: Timestamp) -> Value {
        let status = self.bundle.status.clone().unwrap_or_default();
        let (reason, since) = listing::reason(&self.bundle);
        let spec = self.revision.as_ref().map(|revision| &revision.spec);
        let registry = self
            .registry
            .as_ref()
            .and_then(|registry| registry.status.as_ref());
        let fate = Fate::of(self, now);
        json!({
            "name": self.name,
            "serviceID": self.bundle.spec.service_id,
            "bundle": self.bundle.name_any(),
            "registry": self.bundle.spec.registry,
            "image": listing::image(&self.bundle),
            "phase": status.phase,
            "reason": reason,
            "since": since.map(|at| at.to_string()),
            "mark": status.mark,
            "seen": status.seen,
            "conditions": status.conditions,
            "revision": spec.map(|spec| json!({
                "name": status.current_revision, "version": spec.bundle_version, "versionSource": spec.version_source,
                "manifestDigest": spec.manifest_digest, "image": spec.image,
            })),
            "evidence": self.evidence().iter().map(Evidence::to_json).collect::<Vec<_>>(),
            "references": self.references.iter().map(Reference::to_json).collect::<Vec<_>>(),
            "leftOut": self.left_out,
            "stale": self.stale().is_some(),
            "suspicion": registry.and_then(|status| status.suspicion.as_ref()),
            "keptBy": fate.kept_by,
            "deleted": fate.deleted,
        })
    }
}

fn began(run: &SyncRun) -> Option<Timestamp> {
    let started = run
        .status
        .as_ref()
        .and_then(|status| status.started_at.as_ref());
    started
        .or(run.metadata.creation_timestamp.as_ref())
        .map(|time| time.0)
}

impl Evidence {
    fn of(run: &SyncRun, image: &str) -> Self {
        let (verdict, message) = verdict(run, image);
        Self {
            run: run.name_any(),
            at: began(run),
            verdict,
            message,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "syncRun": self.run, "at": self.at.map(|at| at.to_string()), "verdict": self.verdict, "message": self.message,
        })
    }
}

/// What a record says about an image. Only news is recorded, so silence means different things.
fn verdict(run: &SyncRun, image: &str) -> (&'static str, String) {
    let status = run.status.clone().unwrap_or_default();
    if let Some(finding) = status
        .findings
        .iter()
        .find(|finding| finding.image == image)
    {
        let word = match finding.verdict {
            FindingVerdict::Present => "present",
            FindingVerdict::Rejected => "rejected",
            FindingVerdict::Absent => "absent",
        };
        return (word, harmless(&finding.message));
    }
    if let Some(error) = status.errors.iter().find(|error| error.image == image) {
        return ("unknown", harmless(&error.message));
    }
    let completed = status.conditions.find(COMPLETED.name);
    match completed {
        Some(condition) if condition.status == Status::True => {
            if status.findings.len() >= FINDINGS_MAX || status.errors.len() >= ERRORS_MAX {
                let text = "there was more news than the record holds".to_owned();
                return ("unknown", text);
            }
            ("unchanged", String::new())
        }
        Some(condition) => {
            let reason = condition.reason.as_deref().unwrap_or_default();
            let message = condition.message.as_deref().unwrap_or_default();
            ("unknown", harmless(&format!("{reason}: {message}")))
        }
        None => ("unknown", "the reading has not ended".to_owned()),
    }
}

#[cfg(test)]
mod tests;
