//! What the processes inside tell the shim: a line of JSON each, on the pipe that is their standard input.
//!
//! The program never has this pipe. When its last writer is gone, so is the sandbox.

use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::{AsFd as _, OwnedFd};

use serde::Deserialize;
use serde_json::{Value, json};

/// Longer lines are no report: outputs are bounded far below.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// One thing that is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
    /// Which process, as the shim sees it, takes all others with it when it dies.
    Init(i32),
    /// The sandbox could not be made, and nothing of the program ran.
    Failed(String),
    /// What the program says it is doing.
    Progress(String),
    /// How the program ended.
    Exited(i32),
    /// Which signal ended the program.
    Signalled(i32),
    /// What the program wrote for us.
    Outputs(Outputs),
}

/// What the program wrote for us, as it is: nothing is believed yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Outputs {
    pub(super) credentials: Option<String>,
    pub(super) message: Option<String>,
    pub(super) dashboard_url: Option<String>,
    /// What is there and was not taken, with the reason.
    pub(super) refused: Vec<String>,
}

impl Report {
    fn line(&self) -> String {
        let value: Value = match self {
            Self::Init(pid) => json!({ "init": pid }),
            Self::Failed(why) => json!({ "failed": why }),
            Self::Progress(text) => json!({ "progress": text }),
            Self::Exited(code) => json!({ "exited": code }),
            Self::Signalled(signal) => json!({ "signalled": signal }),
            Self::Outputs(outputs) => json!({ "outputs": {
                "credentials": outputs.credentials,
                "message": outputs.message,
                "dashboardUrl": outputs.dashboard_url,
                "refused": outputs.refused,
            }}),
        };
        format!("{value}\n")
    }
}

/// The end of the pipe that reports go into.
#[derive(Debug)]
pub(super) struct Reporter(OwnedFd);

impl Reporter {
    /// Takes a handle of its own that no program inherits.
    pub(super) fn on_stdin() -> io::Result<Self> {
        Ok(Self(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Fails when the shim is gone, which is the end of this process too.
    pub(super) fn tell(&self, report: &Report) -> io::Result<()> {
        let line = report.line();
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match nix::unistd::write(&self.0, rest) {
                Ok(written) => rest = &rest[written..],
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Calls `hear` for each report until the last writer is gone.
pub(super) fn follow(pipe: impl Read, mut hear: impl FnMut(Report)) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return,
            Ok(_) => {
                if let Ok(report) = serde_json::from_slice(&line) {
                    hear(report);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let told = [
            Report::Init(7),
            Report::Failed("no".to_owned()),
            Report::Progress("half\nway".to_owned()),
            Report::Exited(8),
            Report::Signalled(9),
            Report::Outputs(Outputs {
                credentials: Some("{}".to_owned()),
                refused: vec!["x".to_owned()],
                ..Outputs::default()
            }),
        ];
        let mut text: String = told.iter().map(Report::line).collect();
        text.insert_str(0, "noise\n");
        let mut heard = Vec::new();
        follow(text.as_bytes(), |report| heard.push(report));
        assert_eq!(heard, told);
    }
}
