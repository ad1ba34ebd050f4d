//! Where a channel is once it does not move any more: what was under way when a fence was made counts as before it.

use std::time::Duration;

use heddle_rt::Clock;

use crate::counters::Sequence;
use crate::origin::Error;

/// Between two looks at a channel that must not move.
const SAMPLE_PAUSE: Duration = Duration::from_millis(100);

/// Looks until two looks in a row see the same.
pub(crate) async fn at_rest<L>(
    clock: &Clock,
    patience: Duration,
    channel: &str,
    mut look: impl FnMut() -> L,
) -> Result<Sequence, Error>
where
    L: Future<Output = Result<Sequence, Error>>,
{
    let resting = async {
        let mut seen = look().await?;
        loop {
            clock.sleep(SAMPLE_PAUSE).await;
            let now = look().await?;
            if now == seen {
                return Ok(now);
            }
            seen = now;
        }
    };
    let rested = clock.timeout(patience, resting).await;
    rested.unwrap_or_else(|_| {
        let text = format!("channel {channel} is still being published to");
        Err(Error::Conflict(text))
    })
}
