//! `heddle health inventory`: what health looks at, and the catalogue of what can go wrong.
//!
//! How much there is of each is asked of the server; the catalogue is part of the binary.

use heddle_api::health::catalogue::{ALL, HealthFault};
use heddle_api::health::inventory::{Inventory, InventoryItem};
use serde_json::{Value, json};

use super::render;
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle health inventory                 every kind of object and every component: how many, and how well
  heddle health inventory --codes         every reason code, where it lies and who notices; needs no server
  heddle health inventory LinkBroken      what one code means and what to do; needs no server
  heddle health inventory -o json";

/// What is looked at and what can go wrong: every kind, component and reason code
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// One reason code
    #[arg(value_name = "CODE")]
    code: Option<String>,

    /// Only the reason codes
    #[arg(long, conflicts_with = "code")]
    codes: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    if args.code.is_some() || args.codes {
        return terminal
            .print(&catalogue(&args, terminal.colour_out)?)
            .map_err(Into::into);
    }
    let remote = Remote::connect(&args.client).await?;
    let inventory = Ledger::of(&remote).inventory().await?;
    let colour = terminal.colour_out;
    let mut report = serde_json::to_value(&inventory)?;
    report["faults"] = faults(ALL.iter());
    let text = args.output.render(&report, |_| page(&inventory, colour));
    terminal.print(&text)?;
    Ok(())
}

/// What can go wrong, or one thing of it.
fn catalogue(args: &Args, colour: bool) -> anyhow::Result<String> {
    let chosen: Vec<&HealthFault> = ALL
        .iter()
        .filter(|fault| args.code.as_ref().is_none_or(|code| fault.code == code))
        .collect();
    if let (Some(code), true) = (&args.code, chosen.is_empty()) {
        let text = format!(
            "there is no reason code {code:?}; `heddle health inventory --codes` lists them"
        );
        return Err(Failure::NotFound(text).into());
    }
    let report = json!({"faults": faults(chosen.iter().copied())});
    Ok(args
        .output
        .render(&report, |_| match (&args.code, chosen.first()) {
            (Some(_), Some(fault)) => one(fault),
            _ => table(&chosen, colour),
        }))
}

fn faults<'a>(faults: impl Iterator<Item = &'a HealthFault>) -> Value {
    let value = |fault: &HealthFault| {
        json!({
            "code": fault.code, "plane": fault.plane.word(), "health": format!("{:?}", fault.health),
            "detector": fault.detector.word(), "hop": fault.hop, "meaning": fault.meaning,
            "impact": fault.impact, "remedy": fault.remedy, "diagnosis": fault.diagnosis,
            "runbook": fault.runbook(),
        })
    };
    faults.map(value).collect()
}

fn page(inventory: &Inventory, colour: bool) -> String {
    let mut text = items("KIND", &inventory.objects, colour);
    text.push('\n');
    text.push_str(&items("COMPONENT", &inventory.components, colour));
    let codes = ALL.len();
    text.push_str(&format!(
        "\n{codes} things can go wrong: heddle health inventory --codes\n"
    ));
    text
}

fn items(what: &str, items: &[InventoryItem], colour: bool) -> String {
    let rows = items.iter().map(|item| {
        let count = item.counts.all();
        let unwell = count - item.counts.healthy;
        let health = item.health.map(|health| format!("{health:?}"));
        vec![
            item.name.clone(),
            item.plane.word().to_owned(),
            count.to_string(),
            unwell.to_string(),
            health.unwrap_or_else(|| "<none>".to_owned()),
            item.reason.as_deref().map(harmless).unwrap_or_default(),
        ]
    });
    let headers = [what, "PLANE", "COUNT", "NOT WELL", "HEALTH", "REASON"];
    render::table(&headers, rows).page(colour)
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
    let mut text = format!("{}: {}\n", fault.code, fault.meaning);
    for (label, what) in fault.facts() {
        text.push_str(&format!("  {label:<9}  {what}\n"));
    }
    for command in fault.diagnosis {
        text.push_str(&format!("  {:<9}  {command}\n", "look"));
    }
    text
}

#[cfg(test)]
mod tests {
    use heddle_api::health::{HealthPlane, HealthStatus};

    use super::*;

    #[test]
    fn kinds_and_components_are_listed_with_their_health() {
        let mut triggers = InventoryItem::new("Trigger", HealthPlane::User, "its conditions");
        triggers.add(HealthStatus::Healthy, String::new);
        triggers.add(HealthStatus::Unhealthy, || "team-a/orders: no".to_owned());
        let inventory = Inventory {
            objects: vec![
                triggers,
                InventoryItem::new("SyncRun", HealthPlane::Control, "nothing"),
            ],
            ..Inventory::default()
        };
        let text = page(&inventory, false);
        let line = "Trigger   user      2       1          Degraded   team-a/orders: no\n";
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains("SyncRun   control   0       0          <none>"),
            "{text}"
        );
    }

    #[test]
    fn one_code_is_told_with_how_it_is_noticed_and_what_to_do() {
        let fault = heddle_api::health::catalogue::find("LinkBroken").unwrap();
        let text = one(fault);
        for part in [
            "LinkBroken: ",
            "impact ",
            "noticed ",
            "remedy ",
            "look       heddle topology",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
