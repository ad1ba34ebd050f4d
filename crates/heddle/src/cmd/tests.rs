//! The command line as a whole: it is well formed, and its help can be believed.

mod reference;
mod typed;

use super::*;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_example_in_the_help_is_a_command_line() {
    let mut seen = 0;
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        let help = command.get_after_help().map(ToString::to_string);
        for example in examples(&help.unwrap_or_default()) {
            check_example(&example);
            seen += 1;
        }
        commands.extend(command.get_subcommands().cloned());
    }
    assert!(seen > 40, "only {seen} examples were found");
}

#[cfg(feature = "import-asb")]
#[test]
fn every_command_that_an_import_advises_is_a_command_line() {
    let imported = crate::asb::import(include_str!("../asb/example.yaml")).unwrap();
    let mut seen = 0;
    for warning in &imported.warnings {
        let quoted = warning.text.split('`').skip(1).step_by(2);
        for command in quoted.filter(|text| text.starts_with("heddle ")) {
            check_example(command);
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} commands were found");
}

/// The commands in a text: lines that begin with two spaces and `heddle`, without what is said about them.
pub(super) fn examples(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    let commands = lines.filter(|line| line.starts_with("heddle "));
    let commands = commands.map(|line| line.split("  ").next().unwrap_or_default());
    // What a shell puts in its place cannot be known here.
    let commands = commands.filter(|line| !line.contains("$("));
    commands.map(str::to_owned).collect()
}

/// Fails unless clap takes it.
pub(super) fn check_example(example: &str) {
    if let Err(error) = Cli::try_parse_from(shell_words(example)) {
        panic!("`{example}`: {error}");
    }
}

/// Words as a shell splits them, up to a pipe, a file or a comment; quotes, but nothing cleverer.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '|' | '>' | '#') if word.is_empty() => break,
            (None, ' ') => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
