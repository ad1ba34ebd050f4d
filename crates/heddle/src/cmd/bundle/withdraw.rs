//! `heddle bundle withdraw` and `offer`: an annotation says what somebody wants, whatever the registry says.

use heddle_api::Bundle;
use heddle_api::bundle::{BundlePhase, MarkReason};
use heddle_api::well_known::WITHDRAWN_ANNOTATION;
use kube::ResourceExt as _;
use serde_json::json;

use super::listing::{BundleList, counted, image, phase, references};
use crate::client::{ClientArgs, Remote, objects};
use crate::cmd::CommandContext;
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct Args {
    /// The bundle: name or id of its offering, image, or name of its object
    #[arg(value_name = "BUNDLE")]
    word: String,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

pub(super) async fn withdraw(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let bundle_list = BundleList::fetch(ctx.remote).await?;
    let bundle = bundle_list.pick(&args.word, ctx.remote).await?;
    if !is_withdrawn(bundle) {
        mark(bundle, Some("true"), ctx.remote).await?;
    }
    let used = references(&bundle.spec.service_id, ctx.remote).await?;
    let text = match used.as_slice() {
        [] => "nothing uses it, so it is swept after a while".to_owned(),
        used => format!(
            "it stays for {}, which can be operated as before",
            counted(used)
        ),
    };
    let text = format!("{} is withdrawn; {text}", shown(bundle, &bundle_list));
    report(args, bundle, "withdrawn", &text, ctx.terminal)
}

pub(super) async fn offer(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let bundle_list = BundleList::fetch(ctx.remote).await?;
    let bundle = bundle_list.pick(&args.word, ctx.remote).await?;
    let name = shown(bundle, &bundle_list);
    let mark_reason = bundle
        .status
        .as_ref()
        .and_then(|status| status.mark.as_ref());
    let other = mark_reason
        .map(|mark| mark.reason)
        .filter(|reason| *reason != MarkReason::Admin);
    let by_hand = is_withdrawn(bundle);
    if by_hand {
        mark(bundle, None, ctx.remote).await?;
    }
    if let Some(reason) = other {
        let what = match by_hand {
            true => "is no longer withdrawn by hand, but stays withdrawn",
            false => "was not withdrawn by hand",
        };
        let text = format!(
            "{name} {what}: {reason:?}; `heddle catalog explain {}` says what would bring it back",
            bundle.name_any()
        );
        return Err(Failure::Rejected(text).into());
    }
    let text = match (by_hand, phase(bundle)) {
        (false, BundlePhase::Live) => format!("{name} is offered already"),
        _ => format!("{name} is offered again if its registry still has it"),
    };
    report(args, bundle, "offered", &text, ctx.terminal)
}

fn is_withdrawn(bundle: &Bundle) -> bool {
    bundle
        .annotations()
        .get(WITHDRAWN_ANNOTATION)
        .is_some_and(|value| value == "true")
}

async fn mark(bundle: &Bundle, value: Option<&str>, remote: &Remote) -> anyhow::Result<()> {
    let name = bundle.name_any();
    let _: Bundle = objects::annotate(remote, &name, WITHDRAWN_ANNOTATION, value).await?;
    Ok(())
}

fn shown(bundle: &Bundle, bundle_list: &BundleList) -> String {
    harmless(&format!("{} ({})", bundle_list.name(bundle), image(bundle)))
}

fn report(
    args: &Args,
    bundle: &Bundle,
    state: &str,
    text: &str,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let report = json!({
        "bundle": bundle.name_any(), "serviceID": bundle.spec.service_id, "image": image(bundle), "state": state,
    });
    let text = args.output.render(&report, |_| format!("{text}\n"));
    Ok(terminal.print(&text)?)
}
