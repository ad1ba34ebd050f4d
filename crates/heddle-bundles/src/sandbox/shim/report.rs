//! What the processes inside tell those above them: a line of JSON each, on the socket that is their standard input. On the
//! same socket they are told to go on.
//!
//! The program never has any of these. When the other end of the shim's is gone, so is the sandbox.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

/// Longer lines are no report: outputs are bounded far below.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// One thing that is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
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

/// Told to the one below when it may go on.
const GO: [u8; 1] = [b'\n'];

/// Lets the one at the other end go on. One that is gone is heard of by its silence.
pub(super) fn let_go_on(mut line: &UnixStream) {
    line.write_all(&GO).ok();
}

/// Whether whoever hears reports wants to hear another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    NoMore,
}

/// The lower end of a line.
#[derive(Debug)]
pub(super) struct Reporter {
    line: UnixStream,
    /// Held for the length of a report.
    telling: Mutex<()>,
}

impl Reporter {
    /// Takes a handle of its own that no program inherits.
    pub(super) fn on_stdin() -> io::Result<Self> {
        Ok(Self {
            line: io::stdin().as_fd().try_clone_to_owned()?.into(),
            telling: Mutex::default(),
        })
    }

    /// Fails when the one above is gone, which is the end of this process too.
    pub(super) fn tell(&self, report: &Report) -> io::Result<()> {
        let _alone = self.telling.lock();
        (&self.line).write_all(report.line().as_bytes())
    }

    /// Waits until the one above lets this process go on. It fails when that one is gone, also if it went before this process
    /// could ask to die with it.
    pub(super) fn wait_to_go_on(&self) -> Result<(), String> {
        (&self.line)
            .read_exact(&mut [0; GO.len()])
            .map_err(|_| "whoever started this is gone".to_owned())
    }
}

/// Calls `hear` for each report until it wants no more or nobody is left to tell any.
pub(super) fn follow(line: impl Read, mut hear: impl FnMut(Report) -> Wanted) {
    let mut reader = BufReader::new(line);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return,
            Ok(_) => {
                if let Ok(report) = serde_json::from_slice(&line)
                    && hear(report) == Wanted::NoMore
                {
                    return;
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
        follow(text.as_bytes(), |report| {
            heard.push(report);
            Wanted::More
        });
        assert_eq!(heard, told);
        let mut count = 0;
        follow(text.as_bytes(), |report| {
            count += 1;
            match report {
                Report::Exited(_) => Wanted::NoMore,
                _ => Wanted::More,
            }
        });
        assert_eq!(count, 3, "nothing is heard behind what was waited for");
    }
}
