//! What is written from the tables of health: the runbooks, the checks of the doctor, and the schema of the bodies.

use std::fmt::Write as _;

use anyhow::Result;
use heddle_api::checks::{self, CheckCategory};
use heddle_api::health::alerts::ALERTS;
use heddle_api::health::catalogue::{ALL, HealthFault};
use heddle_api::health::{HealthPlane, schema};

const CODES: &str = "\
# What can go wrong

Every verdict that is not Healthy has one of these codes as its `reason`; `heddle health inventory CODE` shows the same without
this page. Codes retire; none is given to something else. How verdicts come about: [health](../operating/health.md).

In commands, `APP`, `NS` and `NAME` stand for what the verdict names.
";

const CHECKS: &str = "\
# What the doctor checks

`heddle doctor` shows the id of the check beside each finding, and `-o json` the category too. Ids are never given to another check.
What it ends with: [commands](../cli.md).
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

/// A heading for each check.
pub(super) fn checks() -> Result<String> {
    let mut page = CHECKS.to_owned();
    for category in CheckCategory::ALL {
        let of_category = checks::ALL
            .iter()
            .filter(|check| check.category == category);
        for check in of_category {
            writeln!(
                page,
                "\n## {}\n\n*{}*: {}\n\nOtherwise: {}",
                check.id,
                category.word(),
                check.holds,
                check.otherwise
            )?;
        }
    }
    Ok(page)
}

/// The schema, as the server hands it out.
pub(super) fn bodies() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}
