//! Chores of the repository: `cargo xtask check`, `codegen [--check]`, `fuzz [SECONDS]`, `dist`, `changelog`,
//! `keep-data-directory`, `alerts DIR` and `dashboards DIR`.
//!
//! `check` is the gate, the same here and in continuous integration. What needs programs from outside Rust (kubectl, a
//! real API server) is asked for by the Makefile, which calls this one.

mod alerts;
mod changelog;
mod check;
mod codegen;
mod dashboards;
mod dist;
mod fuzz;
mod keep;

use anyhow::{Result, bail};

const CHORES: &str = "check [--features LIST] | codegen [--check] | fuzz [SECONDS] | dist [--binary FILE] [--out DIR] | changelog [VERSION DATE] | keep-data-directory | alerts DIR | dashboards DIR";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check::run(&codegen::repository(), None),
        ["check", "--features", list] => check::run(&codegen::repository(), Some(list)),
        ["codegen"] => codegen::write_all(&codegen::repository()),
        ["codegen", "--check"] => codegen::check_all(&codegen::repository()),
        ["fuzz"] => fuzz::run(&codegen::repository(), None),
        ["fuzz", seconds] => fuzz::run(&codegen::repository(), Some(seconds)),
        ["dist", options @ ..] => {
            dist::run(&codegen::repository(), &dist::Options::parse(options)?)
        }
        ["changelog"] => changelog::run(&codegen::repository(), None),
        ["changelog", version, date] => {
            changelog::run(&codegen::repository(), Some((version, date)))
        }
        ["alerts", out] => alerts::write(std::path::Path::new(out)),
        ["dashboards", out] => dashboards::write(std::path::Path::new(out)),
        ["keep-data-directory"] => keep::run(&codegen::repository()),
        _ => bail!("unknown chore {words:?}; try: cargo xtask {CHORES}"),
    }
}
