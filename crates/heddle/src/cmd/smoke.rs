//! `heddle smoke`: try everything once, from an Application that did not exist before to an event that arrives.

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use bytes::{Bytes, BytesMut};
use heddle_api::smoke::{SmokeReport, SmokeStep};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote, refusal};
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless, span};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle smoke                        with an Application and a namespace of its own, gone afterwards
  heddle smoke --app shop             with one that exists: nothing is made, one synthetic event is sent
  heddle smoke -o json | jq .steps

Ends with 0 when every step passed, and with 1 when one failed. The server does the same every ten minutes.";

/// No step has more to say than this.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Try everything once: declare, publish, deliver, remove
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Use this Application instead, and make nothing
    #[arg(long, value_name = "NAME")]
    app: Option<String>,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, _world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect_once(&args.client).await?;
    test(&args, &remote, terminal).await
}

async fn test(args: &Args, remote: &Remote, terminal: &mut Terminal) -> anyhow::Result<()> {
    let path = match &args.app {
        Some(name) => {
            check_name(name)?;
            format!("/heddle/v1/smoke?app={name}")
        }
        None => "/heddle/v1/smoke".to_owned(),
    };
    let response = remote.open(Request::post(path).body(Vec::new())?).await?;
    let (parts, mut body) = response.into_parts();
    if !parts.status.is_success() {
        let body = body.collect().await?.to_bytes();
        return Err(refusal("the smoke test", parts.status, &body).into());
    }
    let mut lines = SmokeLines::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.context("the server stopped in the middle of the smoke test")?;
        lines.add(&frame.into_data().unwrap_or_default())?;
        while let Some(line) = lines.next()? {
            match line {
                SmokeLine::Step(step) if args.output == ReportFormat::Table => {
                    terminal.print(&shown(&step))?;
                }
                SmokeLine::Step(_) => {}
                SmokeLine::Report(report) => return conclude(args.output, &report, terminal),
            }
        }
    }
    Err(anyhow::anyhow!(
        "the server stopped in the middle of the smoke test"
    ))
}

fn conclude(
    output: ReportFormat,
    report: &SmokeReport,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    terminal.print(&output.render(report, |report| {
        let took = std::time::Duration::from_secs_f64(report.took_seconds.max(0.0));
        let passed = report.steps.iter().filter(|step| step.passed).count();
        let all = heddle_api::counted(report.steps.len(), "step");
        format!("{passed} of {all} passed in {}\n", span(took))
    }))?;
    let failed = report.steps.iter().find(|step| !step.passed);
    match failed {
        None if report.passed => Ok(()),
        failed => {
            let step = failed.map_or("no step was made", |step| &step.step);
            Err(Failure::Rejected(format!("the smoke test failed: {step}")).into())
        }
    }
}

/// A step as people read it.
fn shown(step: &SmokeStep) -> String {
    let took = std::time::Duration::from_secs_f64(step.took_seconds.max(0.0));
    let mark = if step.passed { "ok    " } else { "FAILED" };
    let mut text = format!("{mark} {} ({})\n", harmless(&step.step), span(took));
    if let Some(error) = &step.error {
        text.push_str(&format!("       {}\n", harmless(error)));
    }
    if let Some(remedy) = &step.remedy {
        text.push_str(&format!("       {}\n", harmless(remedy)));
    }
    text
}

/// What the server says, line by line.
#[derive(Default)]
struct SmokeLines(BytesMut);

enum SmokeLine {
    Step(SmokeStep),
    Report(SmokeReport),
}

impl SmokeLines {
    fn add(&mut self, bytes: &Bytes) -> anyhow::Result<()> {
        self.0.extend_from_slice(bytes);
        anyhow::ensure!(
            self.0.len() <= LINE_BYTES_MAX,
            "the server says more than it should"
        );
        Ok(())
    }

    fn next(&mut self) -> anyhow::Result<Option<SmokeLine>> {
        let Some(end) = self.0.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line = self.0.split_to(end + 1);
        let value: Value =
            serde_json::from_slice(&line).context("the server says what is no step")?;
        Ok(Some(match value.get("steps") {
            Some(_) => SmokeLine::Report(serde_json::from_value(value)?),
            None => SmokeLine::Step(serde_json::from_value(value)?),
        }))
    }
}
