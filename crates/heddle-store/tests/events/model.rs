//! Random operations against the log and against a plain list, compared after every one.

use std::collections::BTreeMap;

use heddle_rt::MemoryVfs;
use heddle_store::events::{Draft, EventLog};
use proptest::prelude::*;

use crate::support::*;

#[derive(Clone, Debug)]
enum Op {
    Append(Vec<(u8, u16)>),
    Seal,
    Remove(prop::sample::Index),
    Close,
    Kill,
    Read(prop::sample::Index, usize),
    Find(u8, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let record = (0..6_u8, 0..400_u16);
    prop_oneof![
        8 => prop::collection::vec(record, 1..6).prop_map(Op::Append),
        1 => Just(Op::Seal),
        1 => any::<prop::sample::Index>().prop_map(Op::Remove),
        1 => Just(Op::Close),
        1 => Just(Op::Kill),
        4 => (any::<prop::sample::Index>(), 1..2000_usize).prop_map(|(from, max)| Op::Read(from, max)),
        2 => (1..6_u8, 0..8_usize).prop_map(|(key, limit)| Op::Find(key, limit)),
    ]
}

struct Pair {
    vfs: MemoryVfs,
    log: EventLog,
    model: BTreeMap<u64, (u64, Vec<u8>)>,
    next: u64,
}

fn reopen(vfs: &MemoryVfs) -> EventLog {
    let mut options = options_on(vfs.shared());
    options.limits.cache_bytes_max = 9000;
    EventLog::open(options).expect("the log opens")
}

impl Pair {
    async fn apply(&mut self, op: Op) {
        match op {
            Op::Append(records) => self.append(&records).await,
            Op::Seal => self.log.seal(),
            Op::Remove(index) => self.remove(index).await,
            Op::Close => {
                self.log.close().await;
                self.log = reopen(&self.vfs);
            }
            Op::Kill => {
                self.vfs = self.vfs.kill();
                self.log = reopen(&self.vfs);
            }
            Op::Read(index, bytes_max) => self.read(index.index(self.count() + 1), bytes_max),
            Op::Find(key, limit) => {
                let key = u64::from(key);
                let same = self.model.iter().filter(|(_, (other, _))| *other == key);
                let expected: Vec<u64> = same.map(|(offset, _)| *offset).take(limit).collect();
                assert_eq!(
                    self.log.find(key, limit).expect("nothing is in the way"),
                    expected
                );
            }
        }
        assert_eq!(self.log.committed(), self.next);
        assert_eq!(self.log.damage(), []);
    }

    fn count(&self) -> usize {
        usize::try_from(self.next).expect("nothing is in the way")
    }

    async fn append(&mut self, records: &[(u8, u16)]) {
        let payloads: Vec<(u64, Vec<u8>)> = records
            .iter()
            .zip(self.next..)
            .map(|((key, len), offset)| {
                let mut payload = offset.to_le_bytes().to_vec();
                payload.resize(usize::from(*len), *key);
                (u64::from(*key), payload)
            })
            .collect();
        let drafts: Vec<Draft<'_>> = payloads
            .iter()
            .map(|(key, bytes)| draft(*key, bytes))
            .collect();
        let offsets = self
            .log
            .append(&drafts)
            .await
            .expect("nothing is in the way");
        assert_eq!(offsets.start, self.next);
        self.next = offsets.end;
        self.model.extend(offsets.zip(payloads));
    }

    async fn remove(&mut self, index: prop::sample::Index) {
        let mut sealed = self.log.segments();
        sealed.retain(|segment| segment.sealed);
        if sealed.is_empty() {
            return;
        }
        let chosen = index.get(&sealed);
        self.log
            .remove_segment(chosen.first)
            .await
            .expect("nothing is in the way");
        self.model
            .retain(|offset, _| !(chosen.first..chosen.next).contains(offset));
    }

    fn read(&self, from: usize, bytes_max: usize) {
        let from = from as u64;
        let batch = self
            .log
            .read(from, bytes_max)
            .expect("nothing is in the way");
        let found = batch
            .records
            .iter()
            .map(|record| (record.offset, (record.key, record.payload.to_vec())));
        let expected: BTreeMap<_, _> = self
            .model
            .range(from..batch.next.max(from))
            .map(|(offset, value)| (*offset, value.clone()))
            .collect();
        let found: BTreeMap<_, _> = found.collect();
        let offsets = |records: &BTreeMap<u64, _>| records.keys().copied().collect::<Vec<_>>();
        assert_eq!(offsets(&found), offsets(&expected));
        assert!(found == expected, "a record is not what was appended");
        let more = self.model.range(from..).next().is_some();
        assert_eq!(
            !batch.records.is_empty(),
            more,
            "at least one when there is one"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_is_a_list(ops in prop::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let vfs = MemoryVfs::new();
            let log = reopen(&vfs);
            let mut pair = Pair { vfs, log, model: BTreeMap::new(), next: 1 };
            for op in ops {
                pair.apply(op).await;
            }
            let mut from = 0;
            while from < pair.count() {
                pair.read(from, 500);
                from += 1;
            }
        });
    }
}
