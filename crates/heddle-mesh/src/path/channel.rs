//! Hop 2: append to the log. One append per event, whoever asks for it.

use std::ops::Range;

use futures::FutureExt as _;

use crate::envelope::Envelope;
use crate::heartbeat;
use crate::log::{AppendRefused, Draft, LogFuture, Offset};
use crate::shared::Shared;

/// Makes an event safe.
pub(crate) async fn append(
    shared: &Shared,
    envelope: &Envelope,
) -> Result<Range<Offset>, AppendRefused> {
    if shared.faults.fails_append(&envelope.entry) {
        return Err(AppendRefused::Busy);
    }
    let head = envelope.head();
    let draft = Draft {
        key: envelope.event.key(),
        parts: [&head, envelope.event.bytes()],
    };
    let appending = shared.log.append(&[draft]);
    if heartbeat::is_reserved(envelope.event.type_()) {
        return appending.await;
    }
    timed(shared, appending).await
}

/// Hands an event to the log, which goes on with it whoever still waits for the answer.
pub(crate) fn hand_over(
    shared: &Shared,
    envelope: &Envelope,
) -> LogFuture<Range<Offset>, AppendRefused> {
    if shared.faults.fails_append(&envelope.entry) {
        return futures::future::ready(Err(AppendRefused::Busy)).boxed();
    }
    let head = envelope.head();
    let draft = Draft {
        key: envelope.event.key(),
        parts: [&head, envelope.event.bytes()],
    };
    shared.log.append(&[draft])
}

/// Makes several events safe, all or none.
pub(crate) async fn append_all(
    shared: &Shared,
    envelopes: &[Envelope],
) -> Result<Range<Offset>, AppendRefused> {
    let heads: Vec<Vec<u8>> = envelopes.iter().map(Envelope::head).collect();
    let drafts: Vec<Draft<'_>> = envelopes
        .iter()
        .zip(&heads)
        .map(|(envelope, head)| Draft {
            key: envelope.event.key(),
            parts: [head, envelope.event.bytes()],
        })
        .collect();
    let appending = shared.log.append(&drafts);
    drop(drafts);
    timed(shared, appending).await
}

/// Waits until the append is safe, and tells how long that took.
async fn timed(
    shared: &Shared,
    appending: LogFuture<Range<Offset>, AppendRefused>,
) -> Result<Range<Offset>, AppendRefused> {
    let begun = shared.clock.monotonic();
    let appended = appending.await;
    if appended.is_ok() {
        let took = shared.clock.monotonic().saturating_sub(begun);
        shared.metrics.appended(took);
    }
    appended
}
