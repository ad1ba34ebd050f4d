//! Clients of old meshes, made with their own libraries: programs that are told what to do by arguments, and say what came of it.

use std::any::Any;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::machine::program;

/// Starts the client that a variable names.
pub(crate) fn start(variable: &str, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Child {
    Command::new(program(variable))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Has a publisher send all of these, and says why not if it was not all taken.
pub(crate) fn publish(mut child: Child, all: &[&[u8]]) -> Result<(), String> {
    let mut input = child.stdin.take().unwrap();
    for data in all {
        let digits: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        // One that is refused does not read.
        if writeln!(input, "{digits}").is_err() {
            break;
        }
    }
    drop(input);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let is_taken = done.status.success() && said.lines().count() == all.len();
    match is_taken && said.lines().all(|line| line == "ok") {
        true => Ok(()),
        false => Err(said + &String::from_utf8(done.stderr).unwrap()),
    }
}

/// Waits for a client that has to succeed.
pub(crate) fn finish(child: Child) {
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A subscriber at work; it goes when this is dropped.
struct AtWork(Child, Option<ChildStdin>);

impl Drop for AtWork {
    fn drop(&mut self) {
        drop(self.1.take());
        self.0.wait().unwrap();
    }
}

/// A subscriber, once it says that it is at work.
pub(crate) fn attached(mut child: Child) -> Box<dyn Any + Send> {
    let input = child.stdin.take();
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "attached\n");
    Box::new(AtWork(child, input))
}
