//! Actions: what a bundle's image is asked to do for an instance or binding, and how that ended.
//!
//! A run has an id that follows from what it is for. Starting a run twice under one id runs it once, also when a crash lies
//! in between; whoever asks again is told how the first one goes. A run is kept until it is forgotten.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an image is asked to do.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Make an instance.
    Provision,
    /// Change an instance.
    Update,
    /// Make credentials for an instance.
    Bind,
    /// Take credentials back.
    Unbind,
    /// Remove an instance.
    Deprovision,
}

impl Action {
    /// The first argument of the image's program.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update => "update",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
            Self::Deprovision => "deprovision",
        }
    }

    /// Whether it removes what another made: it may be begun again, and is never left out silently.
    pub fn is_removal(self) -> bool {
        matches!(self, Self::Unbind | Self::Deprovision)
    }
}

/// One run, as it is asked for. It carries secrets (parameters, credentials): whoever keeps it keeps it for itself, and no
/// longer than it takes.
#[derive(Serialize, Deserialize, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Lower-case letters, digits and dashes, at most 63.
    pub id: String,
    /// What to do.
    pub action: Action,
    /// Digest of the image's manifest; the image is kept locally.
    pub manifest_digest: String,
    /// Names the directory that is the instance's own from its first action to its last.
    pub instance: String,
    /// What the program is told: parameters, and what heddle says about instance, binding, plan and version.
    pub variables: Map<String, Value>,
    /// The version that the bundle's author gave the image, or gave the one the instance was made with.
    pub bundle_version: Option<String>,
    /// What the run may use.
    pub limits: Limits,
}

impl std::fmt::Debug for Run {
    /// Variables stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .field("action", &self.action)
            .field("manifest_digest", &self.manifest_digest)
            .finish_non_exhaustive()
    }
}

/// What a run may use.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of memory, of all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Seconds from start to end.
    pub seconds: u32,
    /// Whether it may connect to others, through heddle's proxy and by its egress rules.
    pub network: bool,
    /// Bytes that the instance may keep on disk, from action to action.
    #[serde(default = "unbounded")]
    pub disk_bytes: u64,
    /// Files and directories that it may keep there.
    #[serde(default = "unbounded")]
    pub disk_files: u64,
}

/// What servers meant that did not know a bound yet.
fn unbounded() -> u64 {
    u64::MAX
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// It was never started, or is forgotten.
    Unheard,
    /// It is under way.
    Running {
        /// What the program says it is doing.
        progress: Option<String>,
    },
    /// It is over.
    Ended(Box<RunEnd>),
}

/// How a run ended.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// Well or otherwise.
    pub outcome: Outcome,
    /// Where people manage what was made, if the program says so.
    pub dashboard_url: Option<String>,
    /// The end of what the program printed, without secrets as far as they are known.
    pub log_tail: String,
}

/// Well or otherwise.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It did what it was asked to do.
    Succeeded,
    /// The image has nothing to do for this action.
    NothingToDo,
    /// The program says that it failed, and perhaps why.
    Failed {
        /// The program's exit code.
        code: i32,
        /// What it says about it.
        message: Option<String>,
    },
    /// It took longer than it may.
    TimedOut,
    /// It used more than it may, or was killed by somebody else.
    Killed {
        /// The signal, and what is known of its cause.
        why: String,
    },
    /// It was called off.
    Cancelled,
    /// Nobody knows how it ended: whoever watched it died with it.
    Interrupted,
    /// It could not be started, and nothing of it ran.
    NotStarted {
        /// Why.
        why: String,
    },
}
