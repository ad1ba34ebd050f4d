//! `heddle completions`: the script that lets a shell complete our commands.

use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  source <(heddle completions bash)
  heddle completions zsh  > ~/.zfunc/_heddle
  heddle completions fish > ~/.config/fish/completions/heddle.fish";

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    shell: clap_complete::Shell,
}

pub(super) fn run(
    args: &Args,
    mut command: clap::Command,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "heddle", &mut script);
    terminal.out.write_all(&script)?;
    Ok(terminal.out.flush()?)
}
