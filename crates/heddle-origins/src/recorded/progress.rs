//! What has been acknowledged of a recording since it was made: the one thing that is written into its directory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use heddle_rt::Vfs;
use serde::Deserialize;
use serde_json::json;

use super::index::{RecordedSubscription, Recording, unavailable};
use super::line::{SubscriptionRecord, decode, encode};
use crate::counters::{AckFloor, Subscription, SubscriptionId};
use crate::origin::Error;

pub(super) const PROGRESS: &str = "progress.jsonl";

#[derive(Debug, Default)]
pub(super) struct ReaderProgress {
    known: BTreeMap<SubscriptionId, RecordedSubscription>,
}

#[derive(Debug, Deserialize)]
struct ProgressRecord {
    channel: String,
    subscription: SubscriptionRecord,
}

impl ReaderProgress {
    pub(super) fn load(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<(), Error> {
        let bytes = match vfs.read(&dir.join(PROGRESS)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unavailable(PROGRESS, &error)),
        };
        let mut known = BTreeMap::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let damaged = |why| Error::Corrupt(format!("{PROGRESS}:{}: {why}", number + 1));
            let record: ProgressRecord = decode(line).map_err(damaged)?;
            let mut subscription = RecordedSubscription {
                id: record.subscription.id(&record.channel),
                acknowledged: super::ranges::Ranges::default(),
                last_sent: record.subscription.last_sent,
            };
            for (first, last) in record.subscription.acknowledged {
                subscription.acknowledged.insert(first, last);
            }
            known.insert(subscription.id.clone(), subscription);
        }
        self.known = known;
        Ok(())
    }

    /// A subscription as it is now.
    pub(super) fn of(&self, recorded: &RecordedSubscription) -> RecordedSubscription {
        let mut now = recorded.clone();
        if let Some(known) = self.known.get(&recorded.id) {
            for (first, last) in known.acknowledged.iter() {
                now.acknowledged.insert(first, last);
            }
            now.last_sent = now.last_sent.max(known.last_sent);
        }
        now
    }

    /// Replaces what is known of a subscription, safely.
    pub(super) fn save(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        subscription: &RecordedSubscription,
    ) -> Result<(), Error> {
        let id = subscription.id.clone();
        let before = self.known.insert(id.clone(), subscription.clone());
        let lines = self.known.values().map(|known| {
            let record = SubscriptionRecord::write(&known.id, &known.acknowledged, known.last_sent);
            encode(&json!({"channel": known.id.channel, "subscription": record}))
        });
        let bytes: Vec<u8> = lines.flatten().collect();
        let written = vfs.write_atomic(&dir.join(PROGRESS), &bytes, 0o600);
        written.map_err(|error| {
            // Nobody was told of it.
            match before {
                Some(before) => self.known.insert(id.clone(), before),
                None => self.known.remove(&id),
            };
            Error::Unavailable(format!("cannot write {PROGRESS}: {error}"))
        })
    }
}

impl RecordedSubscription {
    pub(super) fn counted(&self, channel: &Recording) -> Subscription {
        let counted = channel.counted();
        let gone = counted.first.saturating_sub(1);
        let floor = self.acknowledged.floor(0);
        let last_sent = self.last_sent.max(floor);
        let open = channel.events.range(floor + 1..=last_sent.max(floor + 1));
        let outstanding = open.filter(|(sequence, _)| {
            **sequence <= last_sent && !self.acknowledged.contains(**sequence)
        });
        Subscription {
            id: self.id.clone(),
            is_durable: true,
            is_attached: false,
            ack_floor: AckFloor::Exactly(floor),
            outstanding: outstanding.count() as u64,
            unsent: channel.events.range(last_sent + 1..).count() as u64,
            expired: gone.saturating_sub(last_sent),
            last_sent,
        }
    }
}
