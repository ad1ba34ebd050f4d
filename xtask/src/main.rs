//! Chores of the repository: `cargo xtask codegen [--check]`.

mod codegen;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["codegen"] => codegen::write(&codegen::repository()),
        ["codegen", "--check"] => codegen::check(&codegen::repository()),
        _ => bail!("unknown chore {words:?}; try: cargo xtask codegen [--check]"),
    }
}
