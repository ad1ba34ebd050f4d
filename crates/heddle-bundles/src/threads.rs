//! Work that blocks, done where no other task waits for it.

use std::io;

use heddle_rt::{OnError, Tasks};
use tokio::sync::oneshot;

/// Does `work` on a thread of its own and hands over what comes of it. Whoever stops waiting does not stop the work.
pub(crate) async fn blocking<T: Send + 'static>(
    tasks: &Tasks,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, waiting) = oneshot::channel();
    tasks.spawn_thread(name, OnError::Report, move || {
        // Nobody waits any more when this fails, which is theirs to decide.
        done.send(work()).ok();
    })?;
    let ended = waiting.await;
    ended.map_err(|_| io::Error::other(format!("{name} ended before its time")))
}
