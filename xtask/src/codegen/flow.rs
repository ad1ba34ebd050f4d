//! The diagrams of provisioning and deprovisioning, drawn from what the code declares.

use heddle_api::event_flow::{OnDeprovision, STAGES, Stage};
use heddle_api::operation::OperationState;

/// The page, without its note.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Provisioning, drawn\n\n\
         How [an instance](provisioning.md) comes to be and goes, drawn from the declarations in heddle-api.\n\n\
         ## What a flow needs\n\n\
         An arrow means *is needed by*. Nothing waits for its turn: each is tried as soon as its own needs are met, in any order.\n\n\
         ```mermaid\nflowchart LR\n",
    );
    for stage in STAGES {
        let name = stage.condition.name;
        page.push_str(&format!("  {name}[\"{name}<br/>{}\"]\n", stage.object));
        for need in stage.needs {
            page.push_str(&format!("  {} --> {name}\n", need.name));
        }
    }
    for last in STAGES.iter().filter(|stage| is_last(stage)) {
        page.push_str(&format!("  {} --> Ready\n", last.condition.name));
    }
    page.push_str("```\n\n| condition | read from | holds when | does not hold because |\n|---|---|---|---|\n");
    for stage in STAGES {
        let reasons: Vec<&str> = stage
            .condition
            .reasons
            .iter()
            .map(|reason| reason.name)
            .collect();
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            stage.condition.name,
            stage.object,
            stage.condition.meaning,
            reasons.join(", ")
        ));
    }
    page.push_str(&operations());
    page
}

/// Nothing but readiness needs it.
fn is_last(stage: &Stage) -> bool {
    !STAGES.iter().any(|other| {
        other
            .needs
            .iter()
            .any(|need| need.name == stage.condition.name)
    })
}

fn operations() -> String {
    let state = |state: OperationState| match state {
        OperationState::Queued => "queued",
        OperationState::InProgress => "in_progress",
        OperationState::Succeeded => "succeeded",
        OperationState::Failed => "failed",
    };
    let (queued, working) = (
        state(OperationState::Queued),
        state(OperationState::InProgress),
    );
    let (done, failed) = (
        state(OperationState::Succeeded),
        state(OperationState::Failed),
    );
    let fates = [
        OnDeprovision::Drain,
        OnDeprovision::DeadLetter,
        OnDeprovision::Discard,
    ]
    .map(|fate| format!("{fate:?}"))
    .join(", ");
    format!(
        "\n## What becomes of an operation\n\n\
         Platforms see `queued` and `in progress` alike.\n\n\
         ```mermaid\nstateDiagram-v2\n  \
         [*] --> {queued}: PUT, PATCH or DELETE, one write\n  \
         {queued} --> {working}: a controller has looked\n  \
         {working} --> {done}: everything is as asked\n  \
         {working} --> {failed}: the deadline, or what time does not heal\n  \
         {failed} --> {queued}: the same PUT again\n  \
         {failed} --> {failed}: work goes on, and the instance may become ready\n  \
         {done} --> {queued}: the next request\n```\n\n\
         ## What becomes of an instance that is removed\n\n\
         ```mermaid\nstateDiagram-v2\n  \
         [*] --> Deprovisioning: DELETE, whatever state it is in\n  \
         Deprovisioning --> Unbound: its bindings are gone\n  \
         Unbound --> Unlinked: no new events, unless another flow shares the link\n  \
         Unlinked --> Settled: pending events, {fates}\n  \
         Settled --> Recorded: how it ended, for a week\n  \
         Recorded --> [*]: the finalizer is let go\n```\n"
    )
}

#[cfg(test)]
mod tests {
    use heddle_api::event_flow::CONDITIONS;

    use super::*;

    #[test]
    fn every_condition_that_readiness_needs_is_a_stage() {
        let mut declared: Vec<&str> = CONDITIONS.dependents.iter().map(|c| c.name).collect();
        let mut drawn: Vec<&str> = STAGES.iter().map(|stage| stage.condition.name).collect();
        declared.sort_unstable();
        drawn.sort_unstable();
        assert_eq!(drawn, declared);
    }
}
