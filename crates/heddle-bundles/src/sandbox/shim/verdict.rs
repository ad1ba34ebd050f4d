//! From what was seen of a run to how it ended: no clock, no files.

use heddle_api::action::{Limits, Outcome, RunEnd};
use nix::sys::signal::Signal;
use serde_json::{Map, Value};

use super::super::cgroup::LimitedBy;
use super::super::log::{end_of, last_line};
use super::super::mask::{Masker, secrets_of_credentials};
use super::report::{Outputs, Report};

/// What of the log is told with the end.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// What people are told about a failure.
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// What was seen of a run.
#[derive(Debug, Default, Clone)]
pub(super) struct Course {
    /// The sandbox could not be made.
    pub(super) failed: Option<String>,
    pub(super) exited: Option<i32>,
    pub(super) signalled: Option<i32>,
    /// Why it was ended from outside, if it was.
    pub(super) stopped: Option<Outcome>,
    pub(super) outputs: Outputs,
    /// What it printed, masked.
    pub(super) log: String,
}

impl Course {
    pub(super) fn hear(&mut self, report: Report) {
        match report {
            Report::Failed(why) => {
                self.failed.get_or_insert(why);
            }
            Report::Exited(code) => self.exited = Some(code),
            Report::Signalled(signal) => self.signalled = Some(signal),
            Report::Outputs(outputs) => self.outputs = outputs,
            Report::Progress(_) => {}
        }
    }
}

/// What else is known when it is over.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) oom_kills: u64,
    pub(super) refused_processes: u64,
    pub(super) limited_by: LimitedBy,
    pub(super) limits: Limits,
    pub(super) secrets: Vec<String>,
}

/// How it ended, and what is kept of it.
#[derive(Debug)]
pub(super) struct RunReport {
    pub(super) end: RunEnd,
    /// When it did well and handed some out.
    pub(super) credentials: Option<Map<String, Value>>,
    pub(super) log: String,
}

pub(super) fn verdict(course: Course, ending: &Ending) -> RunReport {
    let credentials = course.outputs.credentials.as_deref().map(object);
    let mut secrets = ending.secrets.clone();
    if let Some(Ok(credentials)) = &credentials {
        secrets.extend(secrets_of_credentials(credentials));
    }
    let masker = Masker::new(secrets);
    let printed = masker.text(&course.log);
    let outcome = outcome(&course, ending, credentials.as_ref(), &masker, &printed);
    let log = with_notes(&course, ending, &printed);
    let did_well = matches!(outcome, Outcome::Succeeded);
    RunReport {
        end: RunEnd {
            dashboard_url: course.outputs.dashboard_url.as_deref().and_then(address),
            log_tail: end_of(&log, TAIL_BYTES_MAX).to_owned(),
            outcome,
        },
        credentials: credentials.and_then(Result::ok).filter(|_| did_well),
        log,
    }
}

/// A program that ended by itself ended so, also when it was called off in the same moment.
fn outcome(
    course: &Course,
    ending: &Ending,
    credentials: Option<&Result<Map<String, Value>, String>>,
    masker: &Masker,
    printed: &str,
) -> Outcome {
    if let Some(why) = &course.failed {
        return Outcome::NotStarted {
            why: masker.text(why),
        };
    }
    let refused = course.outputs.refused.iter();
    let unusable = refused
        .clone()
        .find(|why| why.starts_with("/out/credentials.json"))
        .cloned()
        .or_else(|| match credentials {
            Some(Err(why)) => Some(format!("/out/credentials.json {why}")),
            _ => None,
        });
    match (course.exited, course.signalled) {
        (Some(0), _) => unusable.map_or(Outcome::Succeeded, |why| Outcome::Failed {
            code: 0,
            message: Some(why),
        }),
        (Some(8), _) => Outcome::NothingToDo,
        (Some(code), _) => Outcome::Failed {
            code,
            message: message(course, ending, masker, printed),
        },
        (None, Some(signal)) => match &course.stopped {
            Some(stopped) => stopped.clone(),
            None => Outcome::Killed {
                why: killed_by(signal, ending),
            },
        },
        (None, None) => course.stopped.clone().unwrap_or_else(|| Outcome::Killed {
            why: "the sandbox was killed from outside".to_owned(),
        }),
    }
}

fn killed_by(signal: i32, ending: &Ending) -> String {
    if ending.oom_kills > 0 {
        return format!(
            "it used more memory than the {} that it may ({})",
            mebibytes(ending.limits.memory_bytes),
            ending.limited_by
        );
    }
    match Signal::try_from(signal) {
        Ok(Signal::SIGXFSZ) => "it wrote a file that is larger than an instance may keep; \
             spec.actions.diskMegabytes of its Registry changes that"
            .to_owned(),
        Ok(signal) => format!("signal {signal}"),
        Err(_) => format!("signal {signal}"),
    }
}

/// What the program says about its failure, or the last thing it said at all; and what it may not know itself.
fn message(course: &Course, ending: &Ending, masker: &Masker, printed: &str) -> Option<String> {
    let said = course.outputs.message.as_deref().map(str::trim);
    let said = said
        .filter(|text| !text.is_empty())
        .map(|text| masker.text(text))
        .or_else(|| last_line(printed).map(str::to_owned));
    let mut parts: Vec<String> = said.into_iter().map(|text| cut(&text)).collect();
    if ending.oom_kills > 0 {
        let bytes = mebibytes(ending.limits.memory_bytes);
        parts.push(format!(
            "a process of it used more memory than the {bytes} that all may"
        ));
    }
    if ending.refused_processes > 0 {
        let count = ending.limits.processes;
        parts.push(format!(
            "it wanted more than the {count} processes that it may have"
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn cut(text: &str) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    text[..end].to_owned()
}

/// Notes that are ours stand before what the program printed, so that its last line stays the last.
fn with_notes(course: &Course, ending: &Ending, printed: &str) -> String {
    let mut log = format!("[heddle] limited by {}\n", ending.limited_by);
    for why in &course.outputs.refused {
        log.push_str(&format!("[heddle] {why}\n"));
    }
    log.push_str(printed);
    log
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("is not a JSON object".to_owned()),
        // The reason could quote a secret.
        Err(_) => Err("is not JSON".to_owned()),
    }
}

/// Shown to people as a link, so it is one of the web or none.
fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let scheme = text.starts_with("https://") || text.starts_with("http://");
    let plain = text.chars().all(|c| !c.is_control() && !c.is_whitespace());
    (scheme && plain).then(|| text.to_owned())
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests;
