//! Making outcomes safe: lines and the checkpoint, in one append to the journal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt as _;

use super::Scanner;
use crate::journal::{self, Checkpoint, JournalRecord};
use crate::log::{AppendRefused, Draft};
use crate::shared::Shared;

impl Scanner {
    /// Starts a flush; scanning goes on meanwhile.
    pub(super) fn begin_flush(&mut self) {
        self.flushing = Some(flush(&self.shared).boxed());
    }

    /// Waits until everything noted so far is safe. Gives whether it is.
    pub(super) async fn flush_all(&mut self) -> bool {
        if let Some(flushing) = self.flushing.take() {
            flushing.await;
        }
        flush(&self.shared).await
    }
}

/// Takes what there is now, without waiting; the answer comes when it is safe.
///
/// The checkpoint is made before the lines are taken. A line written in between speaks of something the checkpoint does not count on
/// yet, which is harmless; the other way round the checkpoint would count on a line that may be lost.
fn flush(shared: &Arc<Shared>) -> impl Future<Output = bool> + Send + use<> {
    let number = shared.begun.fetch_add(1, Ordering::AcqRel) + 1;
    let scanned = shared.scanned();
    let dirty = shared.take_dirty();
    let mark = Checkpoint {
        scanned,
        consumers: dirty
            .iter()
            .filter_map(|consumer| consumer.checkpoint(scanned))
            .collect(),
    };
    let mut lines = shared.take_lines();
    lines.push(JournalRecord::Checkpoint(mark));
    let records = journal::encode(&lines);
    let drafts: Vec<Draft<'_>> = records
        .iter()
        .map(|record| Draft {
            key: record.key,
            parts: [&record.payload, &[]],
        })
        .collect();
    let appending = shared.log.acknowledge(&drafts);
    drop(drafts);
    let dead: Vec<Vec<u64>> = records.into_iter().map(|record| record.dead).collect();
    let shared = Arc::clone(shared);
    async move {
        match appending.await {
            Ok(range) => {
                let mut letters = shared.dead.lock();
                for (at, names) in range.zip(&dead) {
                    names.iter().for_each(|name| letters.saved(*name, at));
                }
                drop(letters);
                remember(&shared);
                shared.safe.send_replace(number);
                true
            }
            Err(refused) => {
                lines.retain(|line| !matches!(line, JournalRecord::Checkpoint(_)));
                shared.return_lines(lines);
                for consumer in &dirty {
                    consumer.redo_checkpoint(&shared);
                }
                forget(&shared, &refused);
                false
            }
        }
    }
}

/// Outcomes are remembered again: deliveries go on.
fn remember(shared: &Arc<Shared>) {
    if !shared.journal_stalled.swap(false, Ordering::AcqRel) {
        return;
    }
    tracing::info!("the journal takes outcomes again; deliveries go on");
    let consumers: Vec<_> = shared.consumers.read().by_id.values().cloned().collect();
    for consumer in consumers {
        let mut state = consumer.lock();
        consumer.wake(shared, &mut state);
    }
    shared.notify_changed();
}

/// What is delivered now would be forgotten by a restart, and delivered again. So nothing new is begun.
fn forget(shared: &Shared, refused: &AppendRefused) {
    *shared.stall_reason.lock() = refused.to_string();
    if !shared.journal_stalled.swap(true, Ordering::AcqRel) {
        tracing::error!(%refused, "outcomes cannot be written; deliveries wait");
        shared.notify_changed();
    }
}
