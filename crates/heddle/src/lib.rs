//! Everything of the binary but its allocator: commands, configuration, and the wiring of the crates.
//!
//! What each command does lives in `cmd/`; who knows whom lives in `wire.rs`; the exit codes are listed in `failure.rs` and in
//! `heddle --help`. It is a library for the sake of `heddle-bench`, which measures these parts without being one of them.

mod alerts;
#[cfg(feature = "import-asb")]
mod asb;
#[cfg(not(feature = "import-asb"))]
#[path = "asb/absent.rs"]
mod asb;
mod audit;
mod backup;
mod base_url;
pub mod bundles;
mod checks;
pub mod client;
mod cmd;
mod config;
mod control;
mod descriptors;
mod door;
mod edge;
mod events;
pub mod failure;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod heartbeats;
mod identity;
mod manifest;
mod osb;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp/absent.rs"]
mod otlp;
pub mod output;
mod plane;
mod publishers;
mod registries;
mod rights;
mod session;
mod signing;
mod smoke;
pub mod terminal;
mod tokens;
pub mod wire;

use std::process::ExitCode;

use crate::terminal::Terminal;

/// What `main` does: parse what was asked, run it, and say in one line and one exit code how it went.
#[must_use]
pub fn main() -> ExitCode {
    // A shim must become what it is before there is a second thread.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == bundles::SHIM) {
        let directory = words.next().unwrap_or_default();
        return heddle_bundles::sandbox::shim::main(directory.as_ref());
    }
    take_small_pages();
    exit(cmd::run)
}

/// Runs a command and turns what became of it into words and an exit code.
pub fn exit(command: impl FnOnce(&mut Terminal) -> anyhow::Result<()>) -> ExitCode {
    let mut terminal = Terminal::process();
    match command(&mut terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if failure::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.complain(&error);
            ExitCode::from(failure::exit_code(&error))
        }
    }
}

/// Asks the kernel for memory in small pages. The allocator asks for huge ones, of which each is cleared whole for whoever
/// needs the first bytes of it: measured on the path of an event, that takes twice the memory and a third more time.
pub fn take_small_pages() {
    // Where it cannot be had there is more memory in use than need be, and nothing else.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}
