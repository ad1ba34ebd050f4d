//! `heddle bundle ls`.

use heddle_api::Bundle;
use heddle_api::bundle::BundlePhase;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::listing::{BundleList, image, phase, reason, short};
use crate::client::ClientArgs;
use crate::cmd::CommandContext;
use crate::output::{ReportFormat, Table, age, harmless, span};

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct Args {
    /// Only bundles of this registry
    #[arg(long, value_name = "NAME")]
    registry: Option<String>,

    /// Only bundles that are withdrawn
    #[arg(long)]
    marked: bool,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// Nothing is wrong with the bundle by itself, and still the catalog cannot have it.
const LEFT_OUT: &str = "LeftOut";

/// One bundle.
#[derive(Debug, PartialEq)]
struct Entry {
    object: String,
    name: String,
    service: String,
    registry: String,
    image: String,
    phase: BundlePhase,
    version: Option<String>,
    reason: Option<String>,
    since: Option<Timestamp>,
    /// Why the catalog leaves it out.
    left_out: Option<String>,
}

pub(super) async fn list(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let bundle_list = BundleList::fetch(ctx.remote).await?;
    let mut entries: Vec<Entry> = bundle_list
        .bundles
        .iter()
        .map(|bundle| Entry::of(bundle, &bundle_list))
        .collect();
    entries.retain(|entry| {
        let asked = args
            .registry
            .as_ref()
            .is_none_or(|name| *name == entry.registry);
        asked && !(args.marked && entry.phase == BundlePhase::Live)
    });
    entries.sort_by(|a, b| (&a.registry, &a.name, &a.image).cmp(&(&b.registry, &b.name, &b.image)));
    if entries.is_empty() && args.output == ReportFormat::Table {
        ctx.terminal
            .note("no bundles; `heddle registry ls` says which registries are read");
        return Ok(());
    }
    let report: Vec<Value> = entries.iter().map(Entry::to_json).collect();
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    let text = (args.output).render(&report, |_| table(&entries, now, colour));
    Ok(ctx.terminal.print(&text)?)
}

impl Entry {
    fn of(bundle: &Bundle, bundle_list: &BundleList) -> Self {
        let (mut reason, since) = reason(bundle);
        let left_out = bundle_list.left_out(bundle).map(str::to_owned);
        if reason.is_none() && left_out.is_some() {
            reason = Some(LEFT_OUT.to_owned());
        }
        Self {
            object: bundle.name_any(),
            name: bundle_list.name(bundle),
            service: bundle.spec.service_id.clone(),
            registry: bundle.spec.registry.clone(),
            image: image(bundle),
            phase: phase(bundle),
            version: bundle
                .status
                .as_ref()
                .and_then(|s| s.bundle_version.clone()),
            reason,
            since,
            left_out,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "bundle": self.object, "name": self.name, "serviceID": self.service, "registry": self.registry,
            "image": self.image, "phase": self.phase, "version": self.version, "reason": self.reason,
            "since": self.since.map(|at| at.to_string()), "leftOut": self.left_out,
        })
    }
}

fn table(entries: &[Entry], now: Timestamp, colour: bool) -> String {
    let headers = [
        "NAME", "SERVICE", "REGISTRY", "IMAGE", "PHASE", "VERSION", "REASON", "SINCE",
    ];
    let or_none =
        |text: Option<&String>| text.map_or_else(|| "<none>".to_owned(), |text| harmless(text));
    let row = |entry: &Entry| {
        vec![
            harmless(&entry.name),
            harmless(&short(&entry.service)),
            harmless(&entry.registry),
            harmless(&entry.image),
            format!("{:?}", entry.phase),
            or_none(entry.version.as_ref()),
            or_none(entry.reason.as_ref()),
            or_none(entry.since.map(|at| span(age(at, now))).as_ref()),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: entries.iter().map(row).collect(),
    };
    table.page(colour)
}
