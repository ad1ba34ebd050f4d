//! Chores of the repository: `cargo xtask check` and `cargo xtask codegen [--check]`.
//!
//! `check` is the gate, the same here and in continuous integration. What needs programs from outside Rust (kubectl, a
//! real API server) is asked for by the Makefile, which calls this one.

mod check;
mod codegen;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check::run(&codegen::repository()),
        ["codegen"] => codegen::write(&codegen::repository()),
        ["codegen", "--check"] => codegen::check(&codegen::repository()),
        _ => bail!("unknown chore {words:?}; try: cargo xtask check | codegen [--check]"),
    }
}
