//! Words: what people are told about a run, and when it is looked at again; the same for instances and bindings.

use std::time::Duration;

use heddle_api::action::{Action, RunState};
use heddle_api::operation::RunReport;
use heddle_api::well_known::ABANDON_ANNOTATION;
use jiff::Timestamp;

use super::{ActionDeps, Next};

/// A run under way is looked at this often, should nobody say that it moved on.
const LOOK: Duration = Duration::from_secs(10);
/// What is to be done at once is done then, should nothing else wake us.
const SOON: Duration = Duration::from_secs(1);

/// When to look again at an object whose run is known, if time alone would change something. `is_through` says that
/// nothing is left but to let go of the object.
pub(crate) fn requeue_after(
    next: &Next,
    deps: &ActionDeps,
    is_through: bool,
    now: Timestamp,
) -> Option<Duration> {
    match next {
        Next::Start | Next::Await | Next::Cancel => Some(LOOK),
        // What was handed out is known and cannot be kept: somebody has to act.
        Next::TakeIn(_) if deps.credentials.is_some() => Some(LOOK),
        Next::Withdraw | Next::TakeIn(_) | Next::Forget => Some(SOON),
        Next::Pause { until } => Some(until.duration_since(now).unsigned_abs()),
        Next::Rest => is_through.then_some(SOON),
        Next::Announce { .. } | Next::Over => None,
    }
}

/// What a run that is not over is doing. `clean` takes out of a program's words what is secret.
pub(crate) fn under_way(
    deps: &ActionDeps,
    run: &RunReport,
    clean: impl FnOnce(&str) -> String,
) -> String {
    let (word, since) = (run.action.word(), &run.started_at.0);
    let attempt = match run.attempt {
        ..=1 => String::new(),
        attempt => format!(", for the {attempt}. time"),
    };
    match &deps.run {
        None => {
            format!("{word} was begun at {since}, and this server runs no bundles; configure it to")
        }
        Some(RunState::Unheard) => format!("{word} is about to be started{attempt}"),
        Some(RunState::Running { progress: None }) => format!("{word} runs since {since}{attempt}"),
        Some(RunState::Running {
            progress: Some(line),
        }) => format!("{word} runs since {since}{attempt}: {}", clean(line)),
        Some(RunState::Ended(_)) => match &deps.credentials {
            Some(Err(why)) => {
                format!("{word} ended, and what it handed out cannot be read: {why}")
            }
            _ => format!("{word} ended, and what it handed out is being kept"),
        },
    }
}

/// What can be done about a removal that does not come to its end.
pub(crate) fn way_out(object: &str, action: Action) -> String {
    let word = action.word();
    format!(
        "put that right and ask for the removal again, or annotate the {object} with {ABANDON_ANNOTATION}=true to let it go \
         without, which leaves behind what {word} would have removed"
    )
}
