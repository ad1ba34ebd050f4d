//! Who has to go, and who never does.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use tokio::io::AsyncWrite;

use super::*;
use crate::net::progress::Watched;

fn connections(connections_max: usize, address_max: usize, resting_max: usize) -> Arc<Connections> {
    let limits = Limits {
        connections_max,
        address_connections_max: address_max,
        resting_max,
        ..Limits::default()
    };
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    Connections::new(clock, limits, CancellationToken::new())
}

fn from(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn is_evicted(place: &Place) -> bool {
    place.connection.is_evicted()
}

#[tokio::test(start_paused = true)]
async fn those_who_never_asked_go_first_and_those_who_are_served_never() {
    let connections = connections(4, 4, 4);
    let busy = connections.enter(from(1)).unwrap();
    let request = busy.connection.begin();
    let idle = connections.enter(from(1)).unwrap();
    drop(idle.connection.begin());
    let silent = connections.enter(from(1)).unwrap();
    let later = connections.enter(from(1)).unwrap();
    assert!(!connections.has_room());
    assert!(!is_evicted(&silent), "it has only just come");
    connections.clock.sleep(GRACE).await;
    for expected in [&silent, &later, &idle] {
        assert!(!is_evicted(expected));
        assert!(!connections.has_room(), "its place is not free yet");
        assert!(is_evicted(expected));
    }
    assert!(!connections.has_room());
    assert!(!is_evicted(&busy));
    drop(silent);
    assert!(connections.has_room());
    drop(request);
}

#[tokio::test(start_paused = true)]
async fn one_address_leaves_room_for_the_others() {
    let connections = connections(100, 2, 100);
    let places = [(); 2].map(|()| connections.enter(from(1)).unwrap());
    let requests = [&places[0], &places[1]].map(|place| place.connection.begin());
    assert!(connections.enter(from(1)).is_none(), "all it may have");
    assert!(
        connections
            .enter("::ffff:10.0.0.1".parse().unwrap())
            .is_none()
    );
    let other = connections.enter(from(2)).unwrap();
    drop(requests);
    connections.clock.sleep(GRACE).await;
    let newer = connections.enter(from(1)).unwrap();
    assert!(is_evicted(&places[0]) && !is_evicted(&other));
    drop((places, other, newer));
    let open = connections.open.lock();
    assert!(open.all.is_empty() && open.by_address.is_empty());
}

/// A machine with IPv6 has all addresses of its network, so one for each connection.
#[tokio::test(start_paused = true)]
async fn one_network_of_ipv6_leaves_room_for_the_others() {
    let connections = connections(100, 2, 100);
    let from = |text: &str| text.parse::<IpAddr>().unwrap();
    let places = ["2001:db8::1", "2001:db8::a:b:c:d"]
        .map(|address| connections.enter(from(address)).unwrap());
    let requests = [&places[0], &places[1]].map(|place| place.connection.begin());
    assert!(connections.enter(from("2001:db8::ffff")).is_none());
    let other = connections.enter(from("2001:db8:0:1::1")).unwrap();
    drop(requests);
    connections.clock.sleep(GRACE).await;
    let newer = connections.enter(from("2001:db8::2")).unwrap();
    assert!(is_evicted(&places[0]) && !is_evicted(&other));
    drop((places, other, newer));
    let open = connections.open.lock();
    assert!(open.all.is_empty() && open.by_address.is_empty());
}

/// Whoever reads slowly what it asked for is not asked to leave, also when all of the answer is on its way.
#[tokio::test(start_paused = true)]
async fn one_that_still_has_something_to_read_is_not_resting() {
    let connections = connections(2, 2, 1);
    let reading = connections.enter(from(1)).unwrap();
    drop(reading.connection.begin());
    let mut stream = Watched::new(Stuck, Arc::clone(&reading.connection));
    let mut cx = Context::from_waker(Waker::noop());
    let written = Pin::new(&mut stream).poll_write(&mut cx, b"the rest");
    assert!(written.is_pending());
    let resting = connections.enter(from(1)).unwrap();
    drop(resting.connection.begin());
    connections.clock.sleep(GRACE).await;
    assert!(!connections.has_room());
    assert!(connections.enter(from(1)).is_none(), "nobody else can go");
    assert!(is_evicted(&resting) && !is_evicted(&reading));
}

/// A socket that takes nothing.
struct Stuck;

impl AsyncWrite for Stuck {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn few_rest_and_a_flood_has_no_grace() {
    let connections = connections(1_000, 1_000, 10);
    let mut places = Vec::new();
    for _ in 0..100 {
        places.push(connections.enter(from(1)).unwrap());
    }
    let kept = places.iter().filter(|place| !is_evicted(place)).count();
    assert_eq!(kept, FAR_TOO_MANY * 10, "at once");
    connections.clock.sleep(GRACE).await;
    for _ in 0..100 {
        places.push(connections.enter(from(1)).unwrap());
    }
    assert!(places[..100].iter().all(is_evicted), "the older ones went");
}
