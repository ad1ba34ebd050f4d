//! Controllers under every single fault: the same story, told once without faults and then once per fault.
//!
//! ```text
//!   story (what users do)  ->  reference run: W writes, E watch events, R revisions, the final state
//!                          ->  for each write: crash before, crash after, reply lost, 409, 429 or 500
//!                              for each event: dropped, doubled, the watch expired (410)
//!                              for each revision: a restart whose caches are frozen there for a while
//!                          ->  the end must be the reference's: same objects, nothing destroyed that was not,
//!                              and silence
//! ```
//! The API server is the real one, in process, on a simulated disk and a paused clock; the fault layer sits
//! between it and the controllers' client. Users act through a client of their own, which nothing disturbs.

mod chaos;
mod oracle;
mod story;
mod trial;

pub use chaos::{EventFault, Fault, WriteFault, refusal};
pub use oracle::{Ending, Judgement};
pub use story::{Act, Story, bind, deprovision, provision, shop, shop_mapping, stories, unbind};
pub use trial::{Controllers, Outside, RESYNC, Reference, run_trial};

use std::sync::Arc;

use heddle_apiserver::Registry;

/// What a sweep found.
#[derive(Debug, Default)]
pub struct Findings {
    pub trials: usize,
    /// Story, fault, and what differed.
    pub violations: Vec<(String, Fault, String)>,
}

/// Runs one story under every single fault that `counts` picks, or under `most` of them, spread evenly from the first to the
/// last.
pub fn sweep_by(
    registry: &Arc<Registry>,
    story: &Story,
    controllers: Controllers,
    most: usize,
    counts: fn(&Fault) -> bool,
) -> Findings {
    let reference = trial::reference(registry, story, controllers);
    let mut findings = Findings::default();
    let mut faults = reference.faults();
    faults.retain(counts);
    let number = faults.len();
    let taken = number.min(most);
    // Of 5 faults, 2 are those that begin the first and the second half: each stands for its neighbours.
    let is_taken = |index: &usize| index * taken / number != (index + 1) * taken / number;
    let chosen = faults
        .into_iter()
        .enumerate()
        .filter(|(index, _)| is_taken(index));
    for (_, fault) in chosen {
        findings.trials += 1;
        let ending = run_trial(registry, story, controllers, Some(fault.clone()));
        if let Judgement::Violated(what) = oracle::judge(&reference.ending, &ending) {
            findings
                .violations
                .push((story.name.to_owned(), fault, what));
        }
    }
    findings
}
