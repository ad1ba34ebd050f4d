use std::any::Any;

use bytes::Bytes;
use futures::future::BoxFuture;
use heddle_rt::{MemoryVfs, Tasks};
use jiff::Timestamp;
use serde_json::json;

use super::ranges::Ranges;
use super::writer::{RecordedProgress as Told, Writer};
use super::*;
use crate::conformance::{self, OldMesh};
use crate::counters::Sequence;
use crate::origin::{OriginEvent, OriginRead};

const DIR: &str = "/recording";

#[derive(Debug, Default)]
struct Recorder {
    vfs: MemoryVfs,
    channels: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    id: SubscriptionId,
    data: Vec<Bytes>,
    acknowledged: Ranges,
    last_sent: Sequence,
}

fn event(sequence: Sequence, data: Bytes) -> OriginEvent {
    OriginEvent {
        sequence,
        at: Timestamp::from_second(i64::try_from(sequence).unwrap()).unwrap(),
        subject: "sub.ject".to_owned(),
        headers: vec![("ce-id".to_owned(), sequence.to_string())],
        data,
        redelivered: false,
    }
}

fn object() -> Value {
    json!({"apiVersion": "eventing.kyma-project.io/v1alpha1", "kind": "Subscription", "metadata": {"name": "a"}})
}

impl Recorder {
    /// Records everything anew.
    fn record(&self) {
        let mut writer = Writer::create(self.vfs.shared(), Path::new(DIR)).unwrap();
        writer.object(&object()).unwrap();
        for kept in self.channels.lock().iter() {
            let name = &kept.id.channel;
            let channel = Channel {
                name: name.clone(),
                first: 1,
                high_water: kept.data.len() as u64,
                events: 0,
                bytes: 0,
            };
            let told = Told {
                id: kept.id.clone(),
                acknowledged: kept.acknowledged.iter().collect(),
                last_sent: kept.last_sent,
            };
            writer.channel(&channel, &[told]).unwrap();
            for (number, data) in (1..).zip(&kept.data) {
                writer.event(name, &event(number, data.clone())).unwrap();
            }
        }
        writer.finish().unwrap();
    }

    fn origin(&self) -> Recorded {
        Recorded::new(Tasks::new("test"), self.vfs.shared(), Path::new(DIR))
    }

    /// One channel with three events, of which the second is acknowledged.
    async fn small() -> Self {
        let recorder = Self::default();
        let id = recorder.subscribe("orders").await;
        for data in ["one", "two", "three"] {
            recorder.publish("orders", data.as_bytes()).await.unwrap();
        }
        recorder.consume(&id, &[2]).await;
        recorder
    }

    fn edit(&self, name: &str, edit: impl FnOnce(String) -> String) {
        let path = Path::new(DIR).join(name);
        let text = String::from_utf8(self.vfs.read(&path).unwrap()).unwrap();
        self.vfs
            .write_atomic(&path, edit(text).as_bytes(), 0o600)
            .unwrap();
    }
}

impl OldMesh for Recorder {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Origin>> {
        Box::pin(async { Arc::new(self.origin()) as Arc<dyn Origin> })
    }

    fn objects(&self) -> usize {
        1
    }

    fn subscribe<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, SubscriptionId> {
        let id = SubscriptionId {
            channel: channel.to_owned(),
            client: Some("dispatcher".to_owned()),
            durable: format!("all-{channel}"),
            group: None,
        };
        self.channels.lock().push(Kept {
            id: id.clone(),
            data: Vec::new(),
            acknowledged: Ranges::default(),
            last_sent: 0,
        });
        self.record();
        Box::pin(async { id })
    }

    fn publish<'a>(
        &'a self,
        channel: &'a str,
        data: &'a [u8],
    ) -> BoxFuture<'a, Result<(), String>> {
        let mut channels = self.channels.lock();
        let kept = channels.iter_mut().find(|kept| kept.id.channel == channel);
        kept.unwrap().data.push(Bytes::copy_from_slice(data));
        drop(channels);
        self.record();
        Box::pin(async { Ok(()) })
    }

    fn consume<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
        acknowledged: &'a [Sequence],
    ) -> BoxFuture<'a, ()> {
        let mut channels = self.channels.lock();
        let kept = channels
            .iter_mut()
            .find(|kept| kept.id == *subscription)
            .unwrap();
        kept.last_sent = kept.data.len() as u64;
        for sequence in acknowledged {
            kept.acknowledged.insert(*sequence, *sequence);
        }
        drop(channels);
        self.record();
        Box::pin(async {})
    }

    fn attach<'a>(&'a self, _: &'a SubscriptionId) -> BoxFuture<'a, Option<Box<dyn Any + Send>>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn it_does_what_every_adapter_does() {
    let recorder = Recorder::default();
    recorder.record();
    conformance::all(&recorder).await;
}

#[tokio::test]
async fn everything_of_an_event_comes_back() {
    let recorder = Recorder::small().await;
    let origin = recorder.origin();
    assert_eq!(origin.objects().await, Ok(vec![object()]));
    let [subscription] = &origin.subscriptions("orders").await.unwrap()[..] else {
        panic!("one subscription");
    };
    let mut reader = origin.take_over(&subscription.id).await.unwrap();
    let read = reader.read(9).await.unwrap();
    let expected = [(1, "one"), (3, "three")].map(|(sequence, data)| OriginEvent {
        redelivered: true,
        ..event(sequence, Bytes::from_static(data.as_bytes()))
    });
    assert_eq!(read, OriginRead::Events(expected.to_vec()));
}

#[tokio::test]
async fn what_is_acknowledged_survives_a_power_loss_and_a_new_reading() {
    let mut recorder = Recorder::small().await;
    let id = recorder.channels.lock()[0].id.clone();
    let mut reader = recorder.origin().take_over(&id).await.unwrap();
    reader.read(9).await.unwrap();
    reader.acknowledge(&[1]).await.unwrap();
    recorder.vfs = recorder
        .vfs
        .power_loss(heddle_rt::vfs::PowerLoss::LoseUnsynced);
    let origin = recorder.origin();
    assert_eq!(
        origin.subscriptions("orders").await.unwrap()[0].pending(),
        1
    );
    let mut reader = origin.take_over(&id).await.unwrap();
    let OriginRead::Events(events) = reader.read(9).await.unwrap() else {
        panic!("one is left");
    };
    assert_eq!(events[0].sequence, 3);
}

/// Damages a small recording and tells what is said of it.
async fn damaged(name: &str, edit: impl FnOnce(String) -> String) -> String {
    let recorder = Recorder::small().await;
    recorder.edit(name, edit);
    match recorder.origin().channels().await {
        Err(Error::Corrupt(text) | Error::Invalid(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn damage_is_named_by_file_and_line() {
    let events = "events-000001.jsonl";
    let damage = damaged(events, |text| {
        text.replacen("\"sequence\":2", "\"sequence\":9", 1)
    })
    .await;
    assert!(
        damage.contains("events-000001.jsonl:2: its checksum is"),
        "{damage}"
    );
    let damage = damaged(events, |text| {
        text.lines().skip(1).map(|l| format!("{l}\n")).collect()
    })
    .await;
    assert!(
        damage.contains("events-000001.jsonl:3: the file ends after 2 lines, and 3 were written"),
        "{damage}"
    );
    assert!(
        damage.contains("event 1 of channel orders is missing"),
        "{damage}"
    );
    let damage = damaged(events, |mut text| {
        text.truncate(text.len() - 1);
        text
    });
    assert!(
        damage
            .await
            .contains("events-000001.jsonl:3: it is empty, cut off")
    );
    let damage = damaged(events, |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(0, 1);
        lines.join("\n") + "\n"
    });
    let damage = damage.await;
    assert!(
        damage.contains("events-000001.jsonl:2: event 1 is out of order"),
        "{damage}"
    );
    let damage = damaged(events, |text| {
        text + &"x".repeat(limits::LINE_BYTES_MAX + 1) + "\n"
    })
    .await;
    assert!(
        damage.contains("events-000001.jsonl:4: it is empty, cut off"),
        "{damage}"
    );
    let damage = damaged("objects.jsonl", |text| text + "{}\n").await;
    assert!(damage.contains("objects.jsonl:2: "), "{damage}");
    let damage = damaged("channels.jsonl", |_| String::new()).await;
    assert!(
        damage.contains("events-000001.jsonl:1: there is no channel orders"),
        "{damage}"
    );
}

#[tokio::test]
async fn a_recording_of_another_sort_is_refused_whole() {
    let recording = |text: &'static str| damaged("recording.json", move |_| text.to_owned());
    let cases = [
        ("{\"format\": 2, \"files\": {}}", "its format is 2"),
        ("{\"format\": 1}", "missing field"),
        ("nothing", "recording.json: expected"),
        (
            "{\"format\": 1, \"files\": {\"../x.jsonl\": {\"lines\": 1, \"crc32c\": \"\"}}}",
            "is no file of a recording",
        ),
        (
            "{\"format\": 1, \"files\": {\"events-/../../x.jsonl\": {\"lines\": 1, \"crc32c\": \"\"}}}",
            "is no file of a recording",
        ),
        (
            "{\"format\": 1, \"files\": {\"events-000007.jsonl\": {\"lines\": 1, \"crc32c\": \"\"}}}",
            "events-000007.jsonl:1: the file is missing",
        ),
    ];
    for (text, expected) in cases {
        let said = recording(text).await;
        assert!(said.contains(expected), "{said}");
    }
    let empty = Recorded::new(
        Tasks::new("test"),
        MemoryVfs::new().shared(),
        Path::new(DIR),
    );
    assert!(matches!(empty.channels().await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn damage_is_found_again_when_an_event_is_read() {
    let recorder = Recorder::small().await;
    let id = recorder.channels.lock()[0].id.clone();
    let mut reader = recorder.origin().take_over(&id).await.unwrap();
    recorder.edit("events-000001.jsonl", |text| {
        text.replacen("\"sequence\":3", "\"sequence\":4", 1)
    });
    let refused = reader.read(9).await;
    assert!(
        matches!(&refused, Err(Error::Corrupt(why)) if why.starts_with("events-000001.jsonl:3: ")),
        "{refused:?}"
    );
    let first = reader.read(1).await.unwrap();
    assert!(
        matches!(first, OriginRead::Events(events) if events[0].sequence == 1),
        "what is whole is read"
    );
}

#[tokio::test]
async fn every_flipped_bit_of_a_recording_is_found() {
    let recorder = Recorder::small().await;
    for name in ["objects.jsonl", "channels.jsonl", "events-000001.jsonl"] {
        let path = Path::new(DIR).join(name);
        let whole = recorder.vfs.read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            recorder.vfs.write_atomic(&path, &bytes, 0o600).unwrap();
            let found = index::recording(&recorder.vfs, Path::new(DIR)).unwrap();
            let verified = Index::verify(&recorder.vfs, Path::new(DIR), &found);
            assert!(verified.is_err(), "{name}: bit {bit}");
        }
        recorder.vfs.write_atomic(&path, &whole, 0o600).unwrap();
    }
}
