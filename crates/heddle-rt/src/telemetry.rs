//! Logs: for people on a terminal, as JSON lines otherwise.
//!
//! Everything goes to standard error, so that standard output stays what a command prints.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::prelude::*;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people on a terminal, JSON otherwise.
    #[default]
    Auto,
    Human,
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read log filter {filter:?}")]
    Invalid { filter: String, source: ParseError },
    #[error("logging is set up already")]
    AlreadySet,
}

/// Sets up logging for the process. `filter` is a level (`info`) or a list such as
/// `info,heddle_store=debug`.
pub fn init(filter: &str, format: Format) -> Result<(), Error> {
    let parsed: Targets = filter.parse().map_err(|source| Error::Invalid {
        filter: filter.to_owned(),
        source,
    })?;
    let terminal = std::io::stderr().is_terminal();
    let human = match format {
        Format::Auto => terminal,
        Format::Human => true,
        Format::Json => false,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(parsed);
    let done = if human {
        registry.with(lines.with_ansi(terminal)).try_init()
    } else {
        let lines = lines.json().flatten_event(true).with_current_span(false);
        registry.with(lines).try_init()
    };
    done.map_err(|_| Error::AlreadySet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_is_named_and_a_second_setup_is_refused() {
        let error = init("info,=nonsense=", Format::Json).unwrap_err();
        assert!(error.to_string().contains("=nonsense="), "{error}");
        init("warn,heddle_rt=debug", Format::Auto).unwrap();
        assert!(matches!(
            init("info", Format::Human),
            Err(Error::AlreadySet)
        ));
    }
}
