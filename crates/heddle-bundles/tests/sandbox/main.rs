//! Real programs in real sandboxes, as root with a user of its own and as an ordinary user.
//!
//! Needs root or user namespaces, and a static busybox whose path is in `BUSYBOX`; it fails where they are missing. This
//! binary is its own shim: started again as `sandbox-run DIRECTORY` it becomes one, before any thread is there. Arguments
//! choose the promises whose names contain one of them.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "it sets up the files of real processes and waits for them"
)]
#![expect(clippy::print_stdout, reason = "this is the report")]

mod bounds;
mod contract;
mod crashes;
mod examples;
mod launch;
mod network;
mod outputs;
mod stage;
mod walls;

use std::path::Path;
use std::process::{Command, ExitCode};

/// A promise, by its name.
type Promise = (&'static str, fn());

/// Makes a list of promises out of functions.
macro_rules! promises {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn())),*] };
}
pub(crate) use promises;

/// The user that the suite becomes to show that root is not needed.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sandbox-run", directory] => {
            return heddle_bundles::sandbox::shim::main(Path::new(directory));
        }
        ["server", directory, root, id] => {
            crashes::serve(Path::new(directory), Path::new(root), id);
        }
        _ => {}
    }
    let wanted = |name: &str| {
        let mut filters = arguments.iter().filter(|a| !a.starts_with('-')).peekable();
        filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()))
    };
    let all = [
        contract::PROMISES,
        outputs::PROMISES,
        walls::PROMISES,
        network::PROMISES,
        bounds::PROMISES,
        crashes::PROMISES,
        examples::PROMISES,
        launch::PROMISES,
    ];
    let mut failed = Vec::new();
    for (name, promise) in all.into_iter().flatten().filter(|(name, _)| wanted(name)) {
        let kept = std::panic::catch_unwind(promise).is_ok();
        println!("test {name} ... {}", if kept { "ok" } else { "FAILED" });
        if !kept {
            failed.push(*name);
        }
    }
    if stage::is_root() && !as_nobody(&arguments) {
        failed.push("the same as an ordinary user");
    }
    println!("\n{} failed {failed:?}", failed.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}

/// The same again without privileges.
fn as_nobody(arguments: &[String]) -> bool {
    use std::os::unix::process::CommandExt as _;

    println!("\nas an ordinary user:");
    let directory = tempfile::Builder::new()
        .prefix("heddle-nobody")
        .tempdir()
        .unwrap();
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let this = stage::readable_copy(&std::env::current_exe().unwrap(), directory.path(), "suite");
    let busybox = stage::readable_copy(&stage::busybox(), directory.path(), "busybox");
    let status = Command::new(this)
        .args(arguments)
        .env("BUSYBOX", busybox)
        .env("TMPDIR", directory.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .unwrap();
    status.success()
}
