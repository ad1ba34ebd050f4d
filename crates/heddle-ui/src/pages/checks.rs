//! What the server finds when it looks at itself: the answer of `heddle doctor`, the worst first.

use heddle_api::checks::{CheckFinding, CheckReport, FindingLevel};
use maud::{Markup, html};

use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::parts::verdict;

const CHECKS: &str = "/heddle/v1/checks";

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let report: CheckReport = look.ask.get(CHECKS).await?;
    let found = |level| {
        let all = report.findings.iter();
        all.filter(|finding| finding.level == level).count() as u64
    };
    let (bad, warnings) = (found(FindingLevel::Bad), found(FindingLevel::Warn));
    let worst = report.findings.iter().map(|finding| finding.level).min();
    let word = worst.map_or("unknown", word);
    let body = html! {
        section #verdict.headline data-verdict=(word) {
            h1 { (verdict::mark(word)) " Checks" }
            p.lead { (in_words(bad, warnings)) }
        }
        section.card { div.table { table {
            thead { tr { th scope="col" { "Check" } th scope="col" { "About" } th scope="col" { "Found" } th scope="col" { "What helps" } } }
            tbody { @for finding in &report.findings { (row(finding, look)) } }
        } } }
    };
    Ok(RenderedPage::new("checks", "", "Checks", body).behind("heddle doctor", CHECKS))
}

/// The verdict that a finding would be.
fn word(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Bad => "unhealthy",
        FindingLevel::Warn => "degraded",
        FindingLevel::Ok => "healthy",
    }
}

fn in_words(bad: u64, warnings: u64) -> String {
    let (faults, concerns) = (
        heddle_api::counted(bad, "fault"),
        heddle_api::counted(warnings, "warning"),
    );
    match (bad, warnings) {
        (0, 0) => "Everything holds.".to_owned(),
        (0, _) => format!("{concerns}; nothing is broken."),
        (_, 0) => format!("{faults}."),
        _ => format!("{faults} and {concerns}."),
    }
}

fn row(finding: &CheckFinding, look: &PageLook) -> Markup {
    let word = word(finding.level);
    html! {
        tr data-row data-check=(format!("{} {}", finding.id, finding.about)) data-verdict=(word) {
            th scope="row" { (verdict::mark(word)) " " a href=(look.links.help(&finding.id)) { (finding.id) } }
            td data-label="About" { (verdict::object(&finding.about, &look.links)) }
            td data-label="Found" { (finding.what) }
            td data-label="What helps" { @if finding.remedy.is_empty() { "–" } @else { (finding.remedy) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_told_in_words() {
        for (bad, warnings, told) in [
            (0, 0, "Everything holds."),
            (0, 1, "1 warning; nothing is broken."),
            (2, 0, "2 faults."),
            (1, 3, "1 fault and 3 warnings."),
        ] {
            assert_eq!(in_words(bad, warnings), told);
        }
        assert_eq!(word(FindingLevel::Bad), "unhealthy");
    }
}
