//! Where a command speaks: results on standard output, everything else on standard error.
//!
//! Colours appear only on a terminal that wants them (`NO_COLOR` is honoured), so that what a
//! script reads never changes.

mod screen;

use std::io::{BufRead, IsTerminal as _, Write};

pub use screen::Screen;

/// Both outputs of a command. Tests hand in buffers.
pub struct Terminal {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub colour_out: bool,
    pub colour_err: bool,
    /// Standard output is a screen, on which something can be drawn again.
    pub redraws: bool,
    /// Somebody who can answer a question; a script cannot.
    pub person: Option<Box<dyn BufRead + Send>>,
}

/// The few colours we use, by what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Strong,
    Quiet,
}

impl Terminal {
    /// The process's own outputs.
    pub fn process() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            colour_out: wanted && std::io::stdout().is_terminal(),
            colour_err: wanted && std::io::stderr().is_terminal(),
            redraws: std::io::stdout().is_terminal(),
            person: (std::io::stdin().is_terminal() && std::io::stderr().is_terminal())
                .then(|| Box::new(std::io::BufReader::new(std::io::stdin())) as _),
        }
    }

    /// A result as it stands, with whatever line ends it has.
    pub fn print(&mut self, text: &str) -> std::io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// A result in place of what is on the screen; where there is none, behind what was printed.
    pub fn redraw(&mut self, text: &str) -> std::io::Result<()> {
        let clear = if self.redraws { "\x1b[H\x1b[J" } else { "" };
        self.print(&format!("{clear}{text}"))
    }

    /// One line of result.
    pub fn say(&mut self, line: &str) -> std::io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// One line of progress or advice. A lost line of progress is no reason to fail.
    pub fn note(&mut self, line: &str) {
        if writeln!(self.err, "{line}").is_ok() {
            self.err.flush().unwrap_or_default();
        }
    }

    /// The last words of a failed command.
    pub fn complain(&mut self, error: &anyhow::Error) {
        let label = paint(self.colour_err, Tone::Bad, "error:");
        self.note(&format!("{label} {error:#}"));
    }

    /// Asks a question that only `y` or `yes` agrees to. `None` when there is nobody to ask.
    pub fn agrees(&mut self, question: &str) -> std::io::Result<Option<bool>> {
        let Some(person) = &mut self.person else {
            return Ok(None);
        };
        write!(self.err, "{question} [y/N] ")?;
        self.err.flush()?;
        let mut answer = String::new();
        person.read_line(&mut answer)?;
        let answer = answer.trim();
        Ok(Some(
            answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"),
        ))
    }

    /// Whether there is somebody to ask.
    #[must_use]
    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Asks for a text, such as a number that must be typed. `None` when there is nobody to ask.
    pub fn answer(&mut self, question: &str) -> std::io::Result<Option<String>> {
        let Some(person) = &mut self.person else {
            return Ok(None);
        };
        write!(self.err, "{question} ")?;
        self.err.flush()?;
        let mut answer = String::new();
        person.read_line(&mut answer)?;
        Ok(Some(answer.trim().to_owned()))
    }

    /// Something worth knowing that did not stop the command.
    pub fn warn(&mut self, message: &str) {
        let label = paint(self.colour_err, Tone::Strong, "warning:");
        self.note(&format!("{label} {message}"));
    }
}

/// `text` in a tone, or just `text`.
pub fn paint(colour: bool, tone: Tone, text: &str) -> String {
    let code = match tone {
        _ if !colour => return text.to_owned(),
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Strong => "1",
        Tone::Quiet => "2",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal")
            .field("colour_out", &self.colour_out)
            .finish_non_exhaustive()
    }
}
