//! Chores of the repository: `cargo xtask check`, `cargo xtask codegen [--check]` and `cargo xtask fuzz [SECONDS]`.
//!
//! `check` is the gate, the same here and in continuous integration. What needs programs from outside Rust (kubectl, a
//! real API server) is asked for by the Makefile, which calls this one.

mod check;
mod codegen;
mod fuzz;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check::run(&codegen::repository()),
        ["codegen"] => codegen::write(&codegen::repository()),
        ["codegen", "--check"] => codegen::check(&codegen::repository()),
        ["fuzz"] => fuzz::run(&codegen::repository(), None),
        ["fuzz", seconds] => fuzz::run(&codegen::repository(), Some(seconds)),
        _ => bail!(
            "unknown chore {words:?}; try: cargo xtask check | codegen [--check] | fuzz [SECONDS]"
        ),
    }
}
