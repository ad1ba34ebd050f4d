//! What every adapter must do. Each function is one promise; an adapter's tests call [`all`].
//!
//! Not compiled for tests only: whoever adds an adapter elsewhere runs it too. The suite sees an old mesh from both sides:
//! as we do, through an [`Origin`], and as its publishers and subscribers do, through an [`OldMesh`].

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::counters::{AckFloor, Channel, FenceHold, Sequence, Subscription, SubscriptionId};
use crate::origin::{Error, Origin, OriginEvent, OriginRead, Reader};

/// An old mesh as its own publishers and subscribers see it.
pub trait OldMesh: Send + Sync {
    /// It as we see it, asked anew: nothing that an earlier one knew is known.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Origin>>;

    /// How many objects it was declared with.
    fn objects(&self) -> usize;

    /// Makes a channel and a durable subscription to all of it that has received nothing.
    fn subscribe<'a>(&'a self, channel: &'a str) -> BoxFuture<'a, SubscriptionId>;

    /// A publisher that may be fenced publishes one event; an error when it is refused.
    fn publish<'a>(&'a self, channel: &'a str, data: &'a [u8])
    -> BoxFuture<'a, Result<(), String>>;

    /// The subscriber comes, receives everything that was published, acknowledges these of it, and goes.
    fn consume<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
        acknowledged: &'a [Sequence],
    ) -> BoxFuture<'a, ()>;

    /// The subscriber comes and stays until what is answered is dropped. Nothing where subscribers cannot stay.
    fn attach<'a>(
        &'a self,
        subscription: &'a SubscriptionId,
    ) -> BoxFuture<'a, Option<Box<dyn Any + Send>>>;
}

/// Runs everything, each on a channel of its own.
///
/// # Panics
/// When a promise is broken; that is the report.
pub async fn all(mesh: &dyn OldMesh) {
    objects_are_all_there(mesh).await;
    counters_follow_publishers_and_subscribers(mesh).await;
    what_is_unacknowledged_is_read_in_order_and_nothing_else(mesh).await;
    events_are_read_byte_for_byte(mesh).await;
    a_reader_hands_out_an_event_once(mesh).await;
    what_is_not_acknowledged_is_there_for_the_next_reader(mesh).await;
    a_reader_that_was_dropped_lost_nothing(mesh).await;
    many_are_read_in_small_portions(mesh).await;
    a_drained_subscription_has_nothing_to_read(mesh).await;
    a_fence_is_kept_or_seen_to_be_broken(mesh).await;
    a_lifted_fence_is_no_fence(mesh).await;
    what_is_not_there_is_not_found(mesh).await;
    a_subscriber_at_work_is_not_replaced(mesh).await;
}

async fn channel(origin: &dyn Origin, name: &str) -> Channel {
    let channels = origin.channels().await.expect("channels are listed");
    assert!(
        channels.is_sorted_by(|a, b| a.name < b.name),
        "each once, by name"
    );
    let mut channels = channels.into_iter();
    let channel = channels.find(|channel| channel.name == name);
    let channel = channel.expect("a channel that is used is listed");
    assert_eq!(channel.check(), Ok(()));
    channel
}

async fn subscription(origin: &dyn Origin, id: &SubscriptionId) -> Subscription {
    let found = origin.subscriptions(&id.channel).await;
    let mut found = found.expect("subscriptions are listed").into_iter();
    let subscription = found.find(|subscription| subscription.id == *id);
    let subscription = subscription.unwrap_or_else(|| panic!("{id} is listed"));
    let channel = channel(origin, &id.channel).await;
    assert_eq!(subscription.check(&channel), Ok(()));
    subscription
}

async fn publish(mesh: &dyn OldMesh, channel: &str, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        let data = format!("event {number}");
        let published = mesh.publish(channel, data.as_bytes()).await;
        assert_eq!(published, Ok(()), "event {number}");
    }
}

async fn take_over(origin: &dyn Origin, id: &SubscriptionId) -> Box<dyn Reader> {
    let reader = origin.take_over(id).await;
    reader.unwrap_or_else(|error| panic!("{id} is taken over: {error}"))
}

/// Everything until the end, without acknowledging.
async fn read_all(reader: &mut dyn Reader) -> Vec<OriginEvent> {
    let mut all = Vec::new();
    loop {
        match reader.read(7).await.expect("it can be read") {
            OriginRead::End => return all,
            OriginRead::Events(events) => {
                assert!(!events.is_empty(), "an end is told by its name");
                assert!(events.len() <= 7, "no more than asked for");
                all.extend(events);
            }
        }
    }
}

fn sequences(events: &[OriginEvent]) -> Vec<Sequence> {
    events.iter().map(|event| event.sequence).collect()
}

async fn objects_are_all_there(mesh: &dyn OldMesh) {
    let objects = mesh.open().await.objects().await.expect("objects are read");
    assert_eq!(objects.len(), mesh.objects());
    assert!(objects.iter().all(|object| object["kind"].is_string()));
}

async fn counters_follow_publishers_and_subscribers(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("counted").await;
    publish(mesh, "counted", 1..=6).await;
    let origin = mesh.open().await;
    let found = channel(&*origin, "counted").await;
    assert_eq!((found.first, found.high_water, found.events), (1, 6, 6));
    assert!(
        found.bytes >= 6 * 7,
        "at least what was published: {found:?}"
    );
    let found = subscription(&*origin, &id).await;
    assert_eq!((found.pending(), found.expired), (6, 0));
    assert!(found.is_durable && !found.is_attached, "{found:?}");
    mesh.consume(&id, &[1, 2, 5]).await;
    let found = subscription(&*origin, &id).await;
    assert_eq!((found.outstanding, found.unsent), (3, 0), "{found:?}");
    assert!(!found.is_drained());
    let (AckFloor::Exactly(floor) | AckFloor::AtMost(floor)) = found.ack_floor;
    let exact = matches!(found.ack_floor, AckFloor::Exactly(_));
    assert!(if exact { floor == 2 } else { floor >= 2 }, "{found:?}");
}

async fn what_is_unacknowledged_is_read_in_order_and_nothing_else(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("holes").await;
    publish(mesh, "holes", 1..=6).await;
    mesh.consume(&id, &[1, 2, 5]).await;
    publish(mesh, "holes", 7..=9).await;
    let origin = mesh.open().await;
    let mut reader = take_over(&*origin, &id).await;
    let events = read_all(&mut *reader).await;
    assert_eq!(sequences(&events), [3, 4, 6, 7, 8, 9]);
    let told: Vec<bool> = events.iter().map(|event| event.redelivered).collect();
    assert_eq!(told, [true, true, true, false, false, false]);
    assert!(events.is_sorted_by_key(|event| event.at));
    reader.acknowledge(&[3, 4, 6, 7, 8, 9]).await.expect("told");
    assert_eq!(reader.read(7).await, Ok(OriginRead::End));
    reader.release().await.expect("released");
    let found = subscription(&*origin, &id).await;
    assert!(found.is_drained() && !found.is_attached, "{found:?}");
}

async fn events_are_read_byte_for_byte(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("bytes").await;
    let every: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let published: [&[u8]; 4] = [b"", b"\0\r\n", b"{\"n\": 10.10}\n", &every];
    for data in published {
        assert_eq!(mesh.publish("bytes", data).await, Ok(()));
    }
    let mut reader = take_over(&*mesh.open().await, &id).await;
    let events = read_all(&mut *reader).await;
    let read: Vec<&[u8]> = events.iter().map(|event| &event.data[..]).collect();
    assert!(read == published, "not what was published");
}

async fn a_reader_hands_out_an_event_once(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("once").await;
    publish(mesh, "once", 1..=4).await;
    let mut reader = take_over(&*mesh.open().await, &id).await;
    assert_eq!(sequences(&read_all(&mut *reader).await), [1, 2, 3, 4]);
    reader.acknowledge(&[2]).await.expect("told");
    assert_eq!(
        reader.read(7).await,
        Ok(OriginRead::End),
        "1, 3 and 4 are with whoever read them"
    );
    let refused = reader.acknowledge(&[1, 99]).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

async fn what_is_not_acknowledged_is_there_for_the_next_reader(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("again").await;
    publish(mesh, "again", 1..=5).await;
    let origin = mesh.open().await;
    let mut reader = take_over(&*origin, &id).await;
    read_all(&mut *reader).await;
    reader.acknowledge(&[1, 3]).await.expect("told");
    reader.release().await.expect("released");
    assert_eq!(subscription(&*origin, &id).await.pending(), 3);
    let mut reader = take_over(&*mesh.open().await, &id).await;
    let events = read_all(&mut *reader).await;
    assert_eq!(sequences(&events), [2, 4, 5]);
    assert!(events.iter().all(|event| event.redelivered));
}

async fn a_reader_that_was_dropped_lost_nothing(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("dropped").await;
    publish(mesh, "dropped", 1..=3).await;
    let origin = mesh.open().await;
    let mut reader = take_over(&*origin, &id).await;
    read_all(&mut *reader).await;
    drop(reader);
    let mut reader = take_over(&*origin, &id).await;
    assert_eq!(sequences(&read_all(&mut *reader).await), [1, 2, 3]);
}

async fn many_are_read_in_small_portions(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("many").await;
    publish(mesh, "many", 1..=400).await;
    let origin = mesh.open().await;
    let mut reader = take_over(&*origin, &id).await;
    let mut next = 1;
    while let OriginRead::Events(events) = reader.read(16).await.expect("it can be read") {
        for event in &events {
            assert_eq!(event.sequence, next);
            assert_eq!(event.data, format!("event {next}"));
            next += 1;
        }
        reader.acknowledge(&sequences(&events)).await.expect("told");
    }
    assert_eq!(next, 401);
    reader.release().await.expect("released");
    assert!(subscription(&*origin, &id).await.is_drained());
}

async fn a_drained_subscription_has_nothing_to_read(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("drained").await;
    let origin = mesh.open().await;
    let mut reader = take_over(&*origin, &id).await;
    assert_eq!(reader.read(7).await, Ok(OriginRead::End));
    reader.release().await.expect("released");
    publish(mesh, "drained", 1..=2).await;
    mesh.consume(&id, &[1, 2]).await;
    assert!(subscription(&*origin, &id).await.is_drained());
    let mut reader = take_over(&*origin, &id).await;
    assert_eq!(reader.read(7).await, Ok(OriginRead::End));
    reader.release().await.expect("released");
}

async fn a_fence_is_kept_or_seen_to_be_broken(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("fenced").await;
    publish(mesh, "fenced", 1..=3).await;
    let origin = mesh.open().await;
    let fence = origin.fence("fenced").await.expect("fenced");
    assert_eq!((fence.channel.as_str(), fence.high_water), ("fenced", 3));
    assert_eq!(fence.check(&channel(&*origin, "fenced").await), Ok(()));
    assert_eq!(
        origin.fence("fenced").await,
        Ok(fence.clone()),
        "twice is once"
    );
    let published = mesh.publish("fenced", b"late").await;
    let checked = fence.check(&channel(&*origin, "fenced").await);
    match fence.hold {
        FenceHold::Everybody | FenceHold::Named => {
            assert!(published.is_err(), "a fence that holds refuses");
            assert_eq!(checked, Ok(()));
        }
        FenceHold::Watched => assert!(published.is_err() || checked.is_err()),
    }
    let mut reader = take_over(&*origin, &id).await;
    let events = read_all(&mut *reader).await;
    assert_eq!(
        sequences(&events)[..3],
        [1, 2, 3],
        "a fence stops no reader"
    );
    reader.release().await.expect("released");
    origin.lift_fence("fenced").await.expect("lifted");
}

async fn a_lifted_fence_is_no_fence(mesh: &dyn OldMesh) {
    mesh.subscribe("lifted").await;
    publish(mesh, "lifted", 1..=1).await;
    let origin = mesh.open().await;
    origin.lift_fence("lifted").await.expect("there is none");
    origin.fence("lifted").await.expect("fenced");
    origin.lift_fence("lifted").await.expect("lifted");
    publish(mesh, "lifted", 2..=2).await;
    assert_eq!(channel(&*origin, "lifted").await.high_water, 2);
}

async fn what_is_not_there_is_not_found(mesh: &dyn OldMesh) {
    let mut id = mesh.subscribe("known").await;
    let origin = mesh.open().await;
    let unknown = origin.subscriptions("unknown").await;
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
    let unknown = origin.fence("unknown").await;
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
    id.durable = "unknown".to_owned();
    let unknown = origin.take_over(&id).await.map(drop);
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
    let listed = origin.subscriptions("known").await.expect("listed");
    assert_eq!(listed.len(), 1, "asking for one did not make it");
}

async fn a_subscriber_at_work_is_not_replaced(mesh: &dyn OldMesh) {
    let id = mesh.subscribe("busy").await;
    publish(mesh, "busy", 1..=1).await;
    let Some(at_work) = mesh.attach(&id).await else {
        return;
    };
    let origin = mesh.open().await;
    assert!(subscription(&*origin, &id).await.is_attached);
    let refused = origin.take_over(&id).await.map(drop);
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    drop(at_work);
}
