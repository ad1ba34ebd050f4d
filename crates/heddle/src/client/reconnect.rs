//! Waiting for a server that went away, for commands that follow something until Ctrl-C.

use heddle_rt::Backoff;

use crate::failure;
use crate::terminal::Terminal;
use crate::wire::World;

/// Pauses between attempts, with one note on standard error about all of them.
#[derive(Debug)]
pub struct Reconnect(Backoff);

impl Reconnect {
    pub fn new(world: &World) -> Self {
        Self(Backoff::new(Default::default(), world.chance.clone()))
    }

    /// Something arrived: the next failure is a new one.
    pub fn arrived(&mut self) {
        self.0.reset();
    }

    /// Waits before the next attempt if nobody was there or the connection broke; the server may be restarting. Whatever else
    /// happened would happen again.
    pub async fn after(
        &mut self,
        error: anyhow::Error,
        world: &World,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        if !matches!(failure::exit_code(&error), 6) {
            return Err(error);
        }
        if self.0.failures() == 0 {
            terminal.note(&format!("waiting for the server: {error:#}"));
        }
        self.pause(world).await;
        Ok(())
    }

    /// Waits without a word: a stream that ended is opened again, and one that always ends at once is not asked all the time.
    pub async fn pause(&mut self, world: &World) {
        let pause = self.0.failed();
        world.clock.sleep(pause).await;
    }
}
