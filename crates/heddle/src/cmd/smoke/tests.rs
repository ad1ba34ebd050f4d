use std::time::Duration;

use serde_json::json;

use super::*;

fn step(passed: bool) -> SmokeStep {
    SmokeStep {
        step: "an event arrives".to_owned(),
        passed,
        took_seconds: Duration::from_millis(1500).as_secs_f64(),
        error: (!passed).then(|| "not done within 10 s".to_owned()),
        remedy: (!passed).then(|| "look at `heddle health`".to_owned()),
    }
}

#[test]
fn a_step_that_failed_says_why_and_what_to_do() {
    assert_eq!(shown(&step(true)), "ok     an event arrives (1.5 s)\n");
    assert_eq!(
        shown(&step(false)),
        "FAILED an event arrives (1.5 s)\n       not done within 10 s\n       look at `heddle health`\n"
    );
}

#[test]
fn lines_are_read_however_they_come_and_the_last_is_the_report() {
    let report = SmokeReport {
        passed: false,
        steps: vec![step(false)],
        ..SmokeReport::default()
    };
    let text = format!("{}\n{}\n", json!(step(false)), json!(report));
    let mut lines = SmokeLines::default();
    let mut read = Vec::new();
    for piece in text.as_bytes().chunks(7) {
        lines.add(&Bytes::copy_from_slice(piece)).unwrap();
        while let Some(line) = lines.next().unwrap() {
            read.push(match line {
                SmokeLine::Step(step) => step.step,
                SmokeLine::Report(report) => format!("{} step", report.steps.len()),
            });
        }
    }
    assert_eq!(read, ["an event arrives", "1 step"]);
    let garbage = Bytes::from_static(b"<html>\n");
    lines.add(&garbage).unwrap();
    assert!(lines.next().is_err());
    let endless = Bytes::from(vec![b'x'; LINE_BYTES_MAX + 1]);
    assert!(SmokeLines::default().add(&endless).is_err());
}
