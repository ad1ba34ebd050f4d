//! Which runs are under way, and a mark that grows when one of them may have changed.
//!
//! Shims tell nobody: they may be older than this server. So the directories of runs that are under way are looked at while
//! somebody waits, which costs a few system calls each, and nothing when no run is under way.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::Duration;

use heddle_rt::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::super::files::{RunFiles, RunFilesState};

/// How often runs under way are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(super) struct Watch {
    mark: watch::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<String, Followed>,
    /// Shims that this process started, until it has taken note of their end.
    children: Vec<Child>,
}

#[derive(Debug)]
struct Followed {
    files: RunFiles,
    instance: String,
    progress: Option<String>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            mark: watch::Sender::new(0),
            state: Mutex::default(),
        }
    }
}

impl Watch {
    pub(super) fn follow(&self, id: &str, instance: &str, files: RunFiles) {
        let followed = Followed {
            files,
            instance: instance.to_owned(),
            progress: None,
        };
        self.state.lock().runs.insert(id.to_owned(), followed);
        self.bump();
    }

    pub(super) fn follows(&self, id: &str) -> bool {
        self.state.lock().runs.contains_key(id)
    }

    pub(super) fn adopt(&self, child: Child) {
        self.state.lock().children.push(child);
    }

    pub(super) fn leave(&self, id: &str) {
        self.state.lock().runs.remove(id);
        self.bump();
    }

    /// A run of this instance that is under way.
    pub(super) fn under_way(&self, instance: &str) -> Option<String> {
        self.look();
        let state = self.state.lock();
        let mut runs = state.runs.iter();
        runs.find(|(_, run)| run.instance == instance)
            .map(|(id, _)| id.clone())
    }

    pub(super) async fn changed(&self, clock: &Clock, seen: u64) -> u64 {
        let mut mark = self.mark.subscribe();
        loop {
            let now = *mark.borrow_and_update();
            if now > seen {
                return now;
            }
            if self.look() {
                // Waits until somebody starts a run or forgets one.
                mark.changed().await.expect("the sender lives in self");
            } else {
                tokio::select! {
                    changed = mark.changed() => changed.expect("the sender lives in self"),
                    () = clock.sleep(LOOK_EVERY) => {}
                }
            }
        }
    }

    /// Looks at every run that is under way; whether none is.
    fn look(&self) -> bool {
        let mut state = self.state.lock();
        state
            .children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let before = state.runs.len();
        let mut news = false;
        state.runs.retain(|_, run| {
            let progress = run.files.read_progress();
            news |= progress != run.progress;
            run.progress = progress;
            // What cannot be read now is looked at again.
            !matches!(
                run.files.standing(),
                Ok(RunFilesState::Ended | RunFilesState::Abandoned | RunFilesState::Fresh)
            )
        });
        let is_idle = state.runs.is_empty() && state.children.is_empty();
        news |= state.runs.len() != before;
        drop(state);
        if news {
            self.bump();
        }
        is_idle
    }

    fn bump(&self) {
        self.mark.send_modify(|mark| *mark += 1);
    }
}
