//! What tests of commands share: a world without chance, and a terminal that can be read.

use std::io::Write;
use std::sync::Arc;

use heddle_rt::{Chance, Clock, DiskVfs};
use parking_lot::Mutex;

use crate::terminal::Terminal;
use crate::wire::World;

/// The machine's time, but always the same chance.
pub(super) fn world() -> World {
    World {
        clock: Clock::system(),
        chance: Chance::seeded(7),
        vfs: Arc::new(DiskVfs),
    }
}

/// What a command wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    out: Page,
    err: Page,
}

#[derive(Clone, Debug, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

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
    pub(super) fn terminal(&self) -> Terminal {
        Terminal {
            out: Box::new(self.out.clone()),
            err: Box::new(self.err.clone()),
            colour_out: false,
            colour_err: false,
            person: None,
        }
    }

    /// A terminal with somebody who will say `answers`.
    pub(super) fn answered(&self, answers: &'static str) -> Terminal {
        Terminal {
            person: Some(Box::new(answers.as_bytes())),
            ..self.terminal()
        }
    }

    pub(super) fn out(&self) -> String {
        String::from_utf8(self.out.0.lock().clone()).unwrap()
    }

    pub(super) fn err(&self) -> String {
        String::from_utf8(self.err.0.lock().clone()).unwrap()
    }
}
