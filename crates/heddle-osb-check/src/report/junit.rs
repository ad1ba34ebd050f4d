//! The report for test reporters: `testsuites`, with a `testsuite` for each group and a `testcase` for each rule.
//!
//! There are several schemas about. What is written here is what all of them allow: the attributes and elements that the
//! strictest asks for, in its order, and none that another does not know. A text of a stranger cannot become markup, and
//! characters that XML cannot hold at all, not even escaped, are replaced by U+FFFD.

use std::fmt::Write as _;
use std::time::Duration;

use super::{CheckResult, Outcome, OutcomeCounts, Report};
use crate::SPECIFICATION;

pub(super) fn render(report: &Report) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let groups = report
        .results
        .chunk_by(|one, next| one.rule.group == next.rule.group);
    for (id, results) in groups.enumerate() {
        suite(&mut xml, report, id, results);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, report: &Report, id: usize, results: &[CheckResult]) {
    let counts = OutcomeCounts::of(results);
    let group = results.first().map_or("", |result| result.rule.group);
    let numbers = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        results.len(),
        counts.broken,
        counts.skipped()
    );
    line(
        xml,
        1,
        &format!(
            "<testsuite id=\"{id}\" package=\"osb\" name=\"{}\" timestamp=\"{}\" hostname=\"{}\" {numbers} time=\"{}\">",
            escaped(group),
            report.started.strftime("%Y-%m-%dT%H:%M:%S"),
            escaped(&report.address),
            seconds(results.iter().map(|result| result.elapsed).sum()),
        ),
    );
    line(xml, 2, "<properties>");
    for (name, value) in [
        ("broker", report.address.as_str()),
        ("specification", SPECIFICATION),
    ] {
        let value = escaped(value);
        line(
            xml,
            3,
            &format!("<property name=\"{name}\" value=\"{value}\"/>"),
        );
    }
    line(xml, 2, "</properties>");
    for result in results {
        case(xml, result);
    }
    line(xml, 2, "<system-out></system-out>");
    // Said once: readers show it beside the first group.
    let complaints = if id == 0 {
        complaints(report)
    } else {
        String::new()
    };
    line(
        xml,
        2,
        &format!("<system-err>{}</system-err>", escaped(&complaints)),
    );
    line(xml, 1, "</testsuite>");
}

fn case(xml: &mut String, result: &CheckResult) {
    let rule = &result.rule;
    let opening = format!(
        "<testcase name=\"{}\" classname=\"osb.{}.{}\" time=\"{}\"",
        escaped(rule.promise),
        escaped(rule.group),
        escaped(rule.name),
        seconds(result.elapsed),
    );
    let message = escaped(&result.outcome.message().unwrap_or_default());
    let inner = match &result.outcome {
        Outcome::Kept => return line(xml, 2, &format!("{opening}/>")),
        Outcome::Broken(_) => {
            let section = rule
                .section
                .map(|section| format!("{SPECIFICATION}, {section}"));
            let text = escaped(&section.unwrap_or_default());
            format!("<failure message=\"{message}\" type=\"broken\">{text}</failure>")
        }
        Outcome::NotApplicable(_) | Outcome::NotAsked(_) => {
            format!("<skipped message=\"{message}\"/>")
        }
    };
    line(xml, 2, &format!("{opening}>"));
    line(xml, 3, &inner);
    line(xml, 2, "</testcase>");
}

/// What is no rule's fault and yet worth reading.
fn complaints(report: &Report) -> String {
    let interruption = report.interruption.iter().cloned();
    let leftovers = report.leftovers.iter();
    let leftovers = leftovers.map(|leftover| format!("could not be removed: {leftover}"));
    interruption.chain(leftovers).collect::<Vec<_>>().join("\n")
}

fn line(xml: &mut String, depth: usize, text: &str) {
    let indented = writeln!(xml, "{:1$}{text}", "", depth * 2);
    indented.expect("a string takes everything");
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// `text` inside of an element or a quoted attribute, the same for both. Line ends are written as references, since an
/// attribute would lose them.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => {
                out.push_str(&format!("&#{};", u32::from(character)));
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
