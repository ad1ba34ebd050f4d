//! A terminal that can be read, for tests of whatever speaks to one.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Terminal;

/// What a command wrote.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    out: Page,
    err: Page,
}

#[derive(Clone, Debug, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Screen {
    /// A terminal without colours and without a person.
    pub fn terminal(&self) -> Terminal {
        Terminal {
            out: Box::new(self.out.clone()),
            err: Box::new(self.err.clone()),
            colour_out: false,
            colour_err: false,
            redraws: false,
            person: None,
        }
    }

    /// A terminal with somebody who will say `answers`.
    pub fn answered(&self, answers: &'static str) -> Terminal {
        Terminal {
            person: Some(Box::new(answers.as_bytes())),
            ..self.terminal()
        }
    }

    pub fn out(&self) -> String {
        self.out.text()
    }

    pub fn err(&self) -> String {
        self.err.text()
    }
}
