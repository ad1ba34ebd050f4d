//! What is written from the tables of health: the runbooks, and the schema of the bodies.

use std::fmt::Write as _;

use anyhow::Result;
use heddle_api::health::alerts::ALERTS;
use heddle_api::health::catalogue::{ALL, HealthFault};
use heddle_api::health::{HealthPlane, schema};

const CODES: &str = "\
# What can go wrong

Every verdict that is not Healthy has one of these codes as its `reason`; `heddle health inventory CODE` shows the same without
this page. Codes retire; none is given to something else. How verdicts come about: [health](../operating/health.md).

In commands, `APP`, `NS` and `NAME` stand for what the verdict names.
";

/// The page that alerts and verdicts lead to: a heading for each code.
pub(super) fn codes() -> Result<String> {
    let mut page = CODES.to_owned();
    for plane in HealthPlane::ALL {
        let of_plane: Vec<&HealthFault> = ALL.iter().filter(|fault| fault.plane == plane).collect();
        let links: Vec<String> = (of_plane.iter())
            .map(|fault| format!("[{}](#{})", fault.code, fault.code.to_lowercase()))
            .collect();
        writeln!(page, "\n- {}: {}", plane.word(), links.join(", "))?;
    }
    for fault in ALL {
        writeln!(page, "\n## {}\n\n{}\n", fault.code, fault.meaning)?;
        for (label, what) in fault.facts() {
            writeln!(page, "- **{label}** {what}")?;
        }
        let alerts: Vec<&str> = (ALERTS.iter())
            .filter(|alert| alert.codes.contains(&fault.code))
            .map(|alert| alert.name)
            .collect();
        if !alerts.is_empty() {
            writeln!(page, "- **alerts** {}", alerts.join(", "))?;
        }
        let commands: Vec<String> = (fault.diagnosis.iter())
            .map(|command| format!("`{command}`"))
            .collect();
        writeln!(page, "- **look** {}", commands.join(", "))?;
    }
    Ok(page)
}

/// The schema, as the server hands it out.
pub(super) fn bodies() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}
