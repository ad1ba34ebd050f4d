//! Actions of bundles, for instances and bindings alike: which run is wanted, where it stands, and what comes next. Pure.
//!
//! ```text
//!   wanted ──> announced (status.run) ──> started ──> ended ──> taken in (status.run.result) ──> forgotten
//!                      │                     │
//!               not wanted any more:    not wanted any more:
//!                   withdrawn               cancelled
//! ```
//! Invariant: a run is announced in a durable status before it is started, and its end is durable before it is forgotten.
//! Its id follows from what it is for. So whoever looks after a crash finds either a run that was announced and perhaps
//! started, under an id that starts it at most once, or one whose end is written down, which is never started again.
//! One object has one run at a time.

mod deps;
mod run;
#[cfg(test)]
mod tests;
mod words;

use heddle_api::action::{Action, Outcome, Run, RunEnd, RunState};
use heddle_api::names;
use heddle_api::operation::{OperationProgress, OperationRequest, RunReport, RunResult};
use jiff::{SignedDuration, Timestamp};

use crate::operation::{OperationSubject, StepFailure, removes, whole_seconds};
use crate::reconcile::{Ctx, Error};

pub(crate) use deps::{ActionDeps, observe, plan_of};
pub(crate) use run::{ActionInputs, content, variables, without_secrets};
pub(crate) use words::{requeue_after, under_way, way_out};

/// A removal that was interrupted is begun anew; one that is interrupted this often is not interrupted by accident.
const ATTEMPTS_MAX: i32 = 10;
/// How long a removal that nobody can ask for again rests after it failed; doubled each time.
const PAUSE: SignedDuration = SignedDuration::from_mins(1);
const PAUSE_MAX: SignedDuration = SignedDuration::from_hours(1);

/// An action that is wanted, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Want {
    pub action: Action,
    /// Id of the operation, or what stands for one where nobody asked through OSB.
    pub operation: String,
    /// Whether it is tried again by itself after it failed, since nobody would ask for it again.
    pub persistent: bool,
}

/// What comes next for the run of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Nothing is wanted, and nothing is left to do.
    Rest,
    /// The wanted run is to be announced, as soon as it could be started.
    Announce { attempt: i32 },
    /// It is announced and is to be started.
    Start,
    /// It is under way.
    Await,
    /// What was announced is not wanted any more, and never began.
    Withdraw,
    /// What is under way is not wanted any more.
    Cancel,
    /// It ended, and that is to be written down.
    TakeIn(Box<RunEnd>),
    /// Its end is written down.
    Forget,
    /// The wanted run is over, and there will be no other for its operation.
    Over,
    /// It is tried again then.
    Pause { until: Timestamp },
}

/// What somebody who runs bundles is asked to do.
#[derive(Debug)]
pub(crate) enum RunnerCommand {
    Start(Run),
    Cancel(String),
    /// A run, and with it what an instance kept, if that is gone.
    Forget {
        run: String,
        instance: Option<String>,
    },
}

impl Want {
    /// What an operation asks for.
    pub(crate) fn asked(action: Action, request: &OperationRequest) -> Self {
        Self {
            action,
            operation: request.id.clone(),
            persistent: false,
        }
    }

    /// What is wanted of an object that nobody asked for through OSB: something else with every change of its spec.
    pub(crate) fn written(action: Action, generation: Option<i64>) -> Self {
        Self {
            action,
            operation: format!("generation-{}", generation.unwrap_or_default()),
            persistent: false,
        }
    }

    /// The end of an object, whoever asked for it.
    pub(crate) fn removal(action: Action, request: Option<&OperationRequest>) -> Self {
        match request.filter(|_| removes(request)) {
            Some(request) => Self::asked(action, request),
            None => Self {
                action,
                operation: "delete".to_owned(),
                persistent: true,
            },
        }
    }

    /// Id of its run.
    pub(crate) fn run_id(&self, uid: &str, attempt: i32) -> String {
        let attempt = u32::try_from(attempt).unwrap_or_default();
        names::run(uid, &self.operation, self.action.word(), attempt)
    }

    /// Whether a run is this one.
    pub(crate) fn is(&self, uid: &str, report: &RunReport) -> bool {
        report.action == self.action && report.id == self.run_id(uid, report.attempt)
    }

    /// How it failed for good, in one line that names the action; `None` while it has not, or is tried again at once.
    pub(crate) fn failure(&self, uid: &str, report: &RunReport, now: Timestamp) -> Option<String> {
        let result = report.result.filter(|_| self.is(uid, report))?;
        let again = matches!(self.after(report, now), Next::Announce { .. });
        if result == RunResult::Succeeded || (again && result == RunResult::Interrupted) {
            return None;
        }
        let ended = report.ended.as_deref().unwrap_or("failed");
        Some(format!("{} {ended}", self.action.word()))
    }

    /// The same, unless its operation has failed or its time is over.
    pub(crate) fn in_time(
        self,
        subject: &impl OperationSubject,
        told: Option<&OperationProgress>,
        now: Timestamp,
    ) -> Option<Self> {
        let request = subject.request();
        let is_of_operation = request.is_some_and(|request| request.id == self.operation);
        let accepted = subject.accepted().filter(|_| is_of_operation);
        let is_over = accepted.is_some_and(|accepted| {
            accepted.is_late(now) || told.is_some_and(|told| accepted.ended(told))
        });
        (!is_over).then_some(self)
    }

    /// What is said once its operation has no time left. `doing` is what it was doing or waiting for.
    pub(crate) fn given_up(&self, doing: &str) -> String {
        format!(
            "operation {} did not end in time and was given up: {doing}",
            self.operation
        )
    }

    /// What follows after an end that is written down.
    fn after(&self, report: &RunReport, now: Timestamp) -> Next {
        let again = Next::Announce {
            attempt: report.attempt.saturating_add(1),
        };
        match report.result {
            Some(RunResult::Interrupted)
                if self.action.is_removal() && report.attempt < ATTEMPTS_MAX =>
            {
                again
            }
            Some(RunResult::Succeeded) | None => Next::Over,
            Some(_) if self.persistent => {
                let until = report.started_at.0.saturating_add(pause(report.attempt));
                match until {
                    Ok(until) if until > now => Next::Pause { until },
                    _ => again,
                }
            }
            Some(_) => Next::Over,
        }
    }
}

/// How the wanted action failed for good; see [`Want::failure`].
pub(crate) fn failure(
    uid: &str,
    wanted: Option<&Want>,
    report: Option<&RunReport>,
    now: Timestamp,
) -> Option<String> {
    wanted?.failure(uid, report?, now)
}

fn pause(attempt: i32) -> SignedDuration {
    let doubled = u32::try_from(attempt.clamp(1, 16) - 1).unwrap_or_default();
    PAUSE.saturating_mul(1 << doubled).min(PAUSE_MAX)
}

/// Whether a run may have made something.
pub(crate) fn has_run(report: &RunReport) -> bool {
    let ran = report
        .result
        .is_some_and(|result| result != RunResult::NotStarted);
    ran || report.earlier || report.action.is_removal()
}

/// What comes next, by what is wanted, what the status says and how the run stands.
pub(crate) fn next(
    want: Option<&Want>,
    uid: &str,
    report: Option<&RunReport>,
    state: &RunState,
    now: Timestamp,
) -> Next {
    let first = Next::Announce { attempt: 1 };
    let Some(report) = report else {
        return want.map_or(Next::Rest, |_| first);
    };
    let wanted = want.filter(|want| want.is(uid, report));
    match (report.result, state) {
        (None, RunState::Unheard) => match (wanted, want) {
            (Some(_), _) => Next::Start,
            (None, Some(_)) => first,
            // That a removal was announced says that there is something to remove.
            (None, None) if report.action.is_removal() => Next::Rest,
            (None, None) => Next::Withdraw,
        },
        (None, RunState::Running { .. }) if wanted.is_some() => Next::Await,
        (None, RunState::Running { .. }) => Next::Cancel,
        (None, RunState::Ended(end)) => Next::TakeIn(end.clone()),
        (Some(_), RunState::Unheard) => match (wanted, want) {
            (Some(want), _) => want.after(report, now),
            (None, Some(_)) => first,
            (None, None) => Next::Rest,
        },
        (Some(_), _) => Next::Forget,
    }
}

/// What the status is to say of a run that is about to be started.
pub(crate) fn announced(
    want: &Want,
    uid: &str,
    attempt: i32,
    before: Option<&RunReport>,
    now: Timestamp,
) -> RunReport {
    RunReport {
        id: want.run_id(uid, attempt),
        action: want.action,
        attempt,
        started_at: whole_seconds(now),
        ended: None,
        result: None,
        earlier: before.is_some_and(has_run),
    }
}

/// What the status is to say of a run that was announced and never began: nothing, unless others ran before it.
pub(crate) fn withdrawn(report: &RunReport) -> Option<RunReport> {
    report.earlier.then(|| RunReport {
        ended: Some("was called off before it began".to_owned()),
        result: Some(RunResult::NotStarted),
        ..report.clone()
    })
}

/// What the status is to say of a run that ended. `clean` takes secrets out of what a program says.
pub(crate) fn taken_in(
    report: &RunReport,
    end: &RunEnd,
    clean: impl Fn(&str) -> String,
) -> RunReport {
    let (result, line) = conclusion(&end.outcome);
    RunReport {
        ended: Some(clean(&line)),
        result: Some(result),
        ..report.clone()
    }
}

/// An outcome in one word, and in a line that follows the name of the action.
pub(crate) fn conclusion(outcome: &Outcome) -> (RunResult, String) {
    match outcome {
        Outcome::Succeeded => (RunResult::Succeeded, "succeeded".to_owned()),
        Outcome::NothingToDo => {
            let line = "succeeded: the bundle has nothing to do for it";
            (RunResult::Succeeded, line.to_owned())
        }
        Outcome::Failed { code, message } => {
            let why = message.as_deref().map(str::trim).unwrap_or_default();
            let why = match why.is_empty() {
                true => "the program does not say why, its log may",
                false => why,
            };
            (
                RunResult::Failed,
                format!("failed with exit code {code}: {why}"),
            )
        }
        Outcome::TimedOut => (
            RunResult::Failed,
            "failed: it took longer than its registry allows".to_owned(),
        ),
        Outcome::Killed { why } => (RunResult::Failed, format!("was killed: {why}")),
        Outcome::Cancelled => (RunResult::Failed, "was called off".to_owned()),
        Outcome::Interrupted => (
            RunResult::Interrupted,
            "was interrupted, and nobody knows how far it came".to_owned(),
        ),
        Outcome::NotStarted { why } => (
            RunResult::NotStarted,
            format!("could not be started: {why}"),
        ),
    }
}

/// Whether an end is one that may come with credentials.
pub(crate) fn hands_out(action: Action, end: &RunEnd) -> bool {
    !action.is_removal() && end.outcome == Outcome::Succeeded
}

/// Carries a command out, if there is one, and notes how the run stands afterwards. What goes wrong is told as trouble.
pub(crate) async fn run(
    ctx: &Ctx,
    command: Option<RunnerCommand>,
    deps: Option<&mut ActionDeps>,
    trouble: &mut Option<StepFailure>,
) -> Result<(), Error> {
    let Some(command) = command else {
        return Ok(());
    };
    let state = go(ctx, command).await;
    if let Err(error) = &state {
        *trouble = StepFailure::new("run", error, 1);
    }
    let state = state?;
    if let Some(deps) = deps {
        deps.run = Some(state);
    }
    Ok(())
}

async fn go(ctx: &Ctx, command: RunnerCommand) -> Result<RunState, Error> {
    let Some(bundles) = ctx.bundles() else {
        return Err(Error::Bundles("there is none".to_owned()));
    };
    let id = match command {
        RunnerCommand::Start(run) => {
            let id = run.id.clone();
            bundles.start(run).await.map_err(Error::Bundles)?;
            id
        }
        RunnerCommand::Cancel(id) => {
            bundles.cancel(&id).await.map_err(Error::Bundles)?;
            id
        }
        RunnerCommand::Forget { run, instance } => {
            // The run last: as long as it is known, all this is done again.
            if let Some(instance) = instance {
                let forgotten = bundles.forget_instance(&instance).await;
                forgotten.map_err(Error::Bundles)?;
            }
            bundles.forget(&run).await.map_err(Error::Bundles)?;
            run
        }
    };
    Ok(bundles.look(&id).await)
}
