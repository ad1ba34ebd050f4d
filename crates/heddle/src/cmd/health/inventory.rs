//! `heddle health inventory`: what health looks at, and the catalogue of what can go wrong.

use heddle_api::health::catalogue::{ALL, HealthFault};
use serde_json::{Value, json};

use super::render;
use crate::output::ReportFormat;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle health inventory                 every code, where it lies and who notices
  heddle health inventory LinkBroken      what one code means and what to do
  heddle health inventory -o json";

/// What can go wrong: every reason code, who notices it, and what to do
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// One reason code
    #[arg(value_name = "CODE")]
    code: Option<String>,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,
}

pub(super) fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let chosen: Vec<&HealthFault> = ALL
        .iter()
        .filter(|fault| args.code.as_ref().is_none_or(|code| fault.code == code))
        .collect();
    if let (Some(code), true) = (&args.code, chosen.is_empty()) {
        let text =
            format!("there is no reason code {code:?}; `heddle health inventory` lists them");
        return Err(crate::failure::Failure::NotFound(text).into());
    }
    let colour = terminal.colour_out;
    let report = json!({"faults": chosen.iter().map(|fault| value(fault)).collect::<Vec<_>>()});
    let text = args
        .output
        .render(&report, |_| match (&args.code, chosen.first()) {
            (Some(_), Some(fault)) => one(fault),
            _ => table(&chosen, colour),
        });
    terminal.print(&text)?;
    Ok(())
}

fn value(fault: &HealthFault) -> Value {
    json!({
        "code": fault.code, "plane": fault.plane.word(), "health": format!("{:?}", fault.health),
        "detector": fault.detector.word(), "hop": fault.hop, "meaning": fault.meaning,
        "impact": fault.impact, "remedy": fault.remedy, "diagnosis": fault.diagnosis,
    })
}

fn table(faults: &[&HealthFault], colour: bool) -> String {
    let rows = faults.iter().map(|fault| {
        vec![
            fault.code.to_owned(),
            fault.plane.word().to_owned(),
            format!("{:?}", fault.health),
            fault.detector.word().to_owned(),
            fault.hop.unwrap_or_default().to_owned(),
        ]
    });
    let headers = ["CODE", "PLANE", "HEALTH", "NOTICED BY", "HOP"];
    render::table(&headers, rows).page(colour)
}

fn one(fault: &HealthFault) -> String {
    let mut text = format!(
        "{}: {}\n  impact     {}\n  remedy     {}\n",
        fault.code, fault.meaning, fault.impact, fault.remedy
    );
    for command in fault.diagnosis {
        text.push_str(&format!("  look       {command}\n"));
    }
    text
}
