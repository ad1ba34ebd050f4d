//! Guests that read, slowly or not at all, under a clock that stands still.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::*;
use crate::budget::Holder;
use crate::net::connections::Connections;
use crate::net::receive::Intake;
use crate::net::{ConnectionTask, Door, Limits, Peer, Streams, any_service, bind, connect, serve};
use crate::{Budget, Clock};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const PIECE_BYTES: usize = 4 << 10;
/// What most clients let be on its way.
const WINDOW: u32 = 64 << 10;
const REST: Duration = Duration::from_secs(60);
const NOT_READ: &str = "what it was sent was not read in time";

/// A body of pieces, each after a pause.
struct Pieces {
    left: usize,
    bytes: usize,
    last: usize,
    pause: Duration,
    clock: Clock,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _dropped: Option<DropGuard>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(waiting) = &mut self.waiting {
            std::task::ready!(waiting.as_mut().poll(cx));
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        self.left = left;
        let (clock, pause) = (self.clock.clone(), self.pause);
        self.waiting = (!pause.is_zero())
            .then(|| Box::pin(async move { clock.sleep(pause).await }) as Pin<Box<_>>);
        let bytes = match (left, self.last) {
            (0, 1..) => self.last,
            _ => self.bytes,
        };
        let data = Bytes::from(vec![b'x'; bytes]);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

/// What a door sends to whoever asks.
#[derive(Clone)]
struct Sent {
    pieces: usize,
    bytes: usize,
    /// Bytes of the last piece, if that is another number.
    last: usize,
    pause: Duration,
    clock: Clock,
}

impl Sent {
    fn new(pieces: usize, bytes: usize) -> Self {
        Self {
            pieces,
            bytes,
            last: 0,
            pause: Duration::ZERO,
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
        }
    }

    fn body(&self, dropped: Option<DropGuard>) -> Pieces {
        Pieces {
            left: self.pieces,
            bytes: self.bytes,
            last: self.last,
            pause: self.pause,
            clock: self.clock.clone(),
            waiting: None,
            _dropped: dropped,
        }
    }

    fn door(&self, limits: Limits) -> Door {
        Door {
            clock: self.clock.clone(),
            tls: None,
            plain_on_loopback: true,
            limits,
            budget: Budget::default(),
        }
    }

    /// Serves one connection until it ends; gives why.
    async fn serve(self, stream: DuplexStream) -> Result<(), String> {
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        let clock = self.clock.clone();
        let limits = Limits::default();
        let open = Connections::new(clock.clone(), limits, CancellationToken::new());
        let place = open.enter(address.ip()).unwrap();
        let stream = Watched::new(stream, Arc::clone(&place.connection));
        let holder = Holder::at(address.ip());
        let peer = Peer {
            address,
            tls: false,
            certificate: None,
            intake: Arc::new(Intake::new(Budget::default(), holder, clock)),
        };
        let task = ConnectionTask {
            door: self.door(limits),
            plain: true,
            service: any_service(tower::service_fn(move |_: Request<Incoming>| {
                let body = self.body(None);
                async move { Ok::<_, Infallible>(Response::new(body)) }
            })),
            streams: Streams {
                tracker: TaskTracker::new(),
                abort: CancellationToken::new(),
            },
            place,
        };
        let ended = task.speak_http(stream, peer).await;
        ended.map_err(|error| error.to_string())
    }
}

/// Sends a request over HTTP/2 and does with the answer what it is told.
async fn over_http2<F: Future>(
    stream: DuplexStream,
    window: u32,
    read: impl FnOnce(Incoming) -> F,
) {
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(executor)
        .initial_stream_window_size(window)
        .handshake(io)
        .await
        .unwrap();
    let asking = async {
        let nothing = Sent::new(0, 0).body(None);
        let request = Request::get("http://x/").body(nothing).unwrap();
        let response = sender.send_request(request).await.unwrap();
        read(response.into_body()).await;
    };
    tokio::select! {
        _ended = connection => {}
        () = asking => {}
    }
}

/// Right after it has asked, which its time to ask must not count against, and later.
#[tokio::test(start_paused = true)]
async fn a_connection_of_http_2_may_rest_for_as_long_as_is_said_and_no_longer() {
    let sent = Sent::new(1, 100);
    let clock = sent.clock.clone();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(ours);
    let asking = async {
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io)
            .await
            .unwrap();
        let asking = async {
            for _ in 0..3 {
                let nothing = Sent::new(0, 0).body(None);
                let request = Request::get("http://x/").body(nothing).unwrap();
                let mut body = sender.send_request(request).await.unwrap().into_body();
                assert_eq!(next(&mut body).await.map(|data| data.len()), Some(100));
                clock.sleep(REST * 9 / 10).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ended = connection => clock.monotonic(),
            () = asking => unreachable!("it never ends"),
        }
    };
    let (_ended, at) = tokio::join!(sent.serve(theirs), asking);
    let last_asked = 2 * (REST * 9 / 10);
    let rested = at.saturating_sub(last_asked);
    assert!((REST..2 * REST).contains(&rested), "{rested:?}");
}

async fn next(body: &mut Incoming) -> Option<Bytes> {
    let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    Some(frame.unwrap().into_data().unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_ends_its_connection() {
    // One that is buffered whole, and one that never ends.
    for (pieces, bytes) in [(1, 100_000), (usize::MAX, PIECE_BYTES)] {
        let sent = Sent::new(pieces, bytes);
        let clock = sent.clock.clone();
        let (mut ours, theirs) = tokio::io::duplex(1024);
        ours.write_all(GET).await.unwrap();
        let ended = sent.serve(theirs).await;
        assert_eq!(ended, Err(NOT_READ.to_owned()));
        let limit = Limits::default().stall_timeout;
        assert!((limit..limit * 3 / 2).contains(&clock.monotonic()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_http_2_that_is_not_read_ends_its_connection() {
    // One that fills what may be on its way, and those of which nothing may: not a byte of them is ever asked for.
    for (window, pieces) in [(WINDOW, usize::MAX), (0, usize::MAX), (0, 1)] {
        let sent = Sent::new(pieces, PIECE_BYTES);
        let clock = sent.clock.clone();
        let (ours, theirs) = tokio::io::duplex(16 << 20);
        // It answers pings and holds the answer without reading it.
        let holding = over_http2(ours, window, |body| async move {
            let _held = body;
            std::future::pending::<()>().await;
        });
        let both = async { tokio::join!(sent.serve(theirs), holding) };
        let both = clock.timeout(Duration::from_secs(3600), both).await;
        let (ended, ()) = both.unwrap_or_else(|_| panic!("{window} {pieces}: it is held for ever"));
        assert_eq!(ended, Err(NOT_READ.to_owned()), "{window} {pieces}");
        let limit = Limits::default().stall_timeout;
        assert!((limit..3 * limit).contains(&clock.monotonic()));
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_slowly_is_sent_everything() {
    let (pieces, bytes) = (16, PIECE_BYTES);
    let sent = Sent::new(pieces, bytes);
    let (mut ours, theirs) = tokio::io::duplex(256);
    ours.write_all(GET).await.unwrap();
    let clock = sent.clock.clone();
    let reading = async {
        let mut read = 0;
        let mut buffer = [0; 512];
        loop {
            clock.sleep(Duration::from_secs(20)).await;
            match ours.read(&mut buffer).await.unwrap() {
                0 => return read,
                more => read += more,
            }
        }
    };
    let (ended, read) = tokio::join!(sent.serve(theirs), reading);
    assert_eq!(ended, Ok(()));
    assert!(read > pieces * bytes, "{read}");
    assert!(clock.monotonic() > Duration::from_secs(1200));
}

/// What is on its way is read for longer than anybody may take nothing, piece by piece, and faster than too slowly.
#[tokio::test(start_paused = true)]
async fn who_reads_large_pieces_slowly_over_http_2_is_sent_them() {
    let (pieces, bytes) = (3, 1 << 20);
    let sent = Sent::new(pieces, bytes);
    let clock = sent.clock.clone();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let reading = over_http2(ours, WINDOW, |mut body| async move {
        let mut read = 0;
        while read < pieces * bytes {
            clock.sleep(Duration::from_secs(1)).await;
            read += next(&mut body).await.map_or(0, |data| data.len());
        }
        assert!(clock.monotonic() > Duration::from_secs(180));
    });
    tokio::select! {
        ended = sent.serve(theirs) => panic!("the connection ended: {ended:?}"),
        () = reading => {}
    }
}

/// The last piece is handed over whole, and the body is gone long before it is read.
#[tokio::test(start_paused = true)]
async fn who_reads_the_last_piece_for_longer_than_a_connection_may_rest_is_sent_it() {
    // One that is all there is, and one behind which hardly anything comes: it waits for the one before it.
    for (first, last) in [(1 << 20, 0), (1 << 20, 1)] {
        let sent = Sent {
            last,
            ..Sent::new(1 + usize::from(last > 0), first)
        };
        let clock = sent.clock.clone();
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let reading = over_http2(ours, WINDOW, |mut body| async move {
            let mut read = 0;
            while read < first + last {
                clock.sleep(Duration::from_millis(1700)).await;
                read += next(&mut body).await.map_or(0, |data| data.len());
            }
            assert_eq!(read, first + last);
            assert!(clock.monotonic() > REST * 3 / 2, "it took longer than that");
        });
        tokio::select! {
            ended = sent.serve(theirs) => panic!("{last}: the connection ended: {ended:?}"),
            () = reading => {}
        }
    }
}

/// However much a guest took, and however fast, it has no more time for the rest than others.
#[tokio::test(start_paused = true)]
async fn who_stops_to_read_is_not_waited_for_whatever_it_took_before() {
    let limit = Limits::default().stall_timeout;
    for (pieces, bytes, wanted) in [
        // In the middle of an answer without an end, and of the last piece of one.
        (usize::MAX, PIECE_BYTES, 10 << 20),
        (1, 1 << 20, 700 << 10),
    ] {
        let sent = Sent::new(pieces, bytes);
        let clock = sent.clock.clone();
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let stopped = Arc::new(Mutex::new(None));
        let (noted, now) = (Arc::clone(&stopped), clock.clone());
        let reading = over_http2(ours, WINDOW, |mut body| async move {
            let mut read = 0;
            while read < wanted {
                read += next(&mut body).await.map_or(0, |data| data.len());
            }
            *noted.lock() = Some(now.monotonic());
            std::future::pending::<()>().await;
        });
        let both = async { tokio::join!(sent.serve(theirs), reading) };
        let both = clock.timeout(Duration::from_secs(3600), both).await;
        let (ended, ()) = both.unwrap_or_else(|_| panic!("{pieces}: it is held for ever"));
        assert_eq!(ended, Err(NOT_READ.to_owned()), "{pieces}");
        let waited = clock.monotonic() - stopped.lock().expect("it read that much");
        assert!((limit..4 * limit).contains(&waited), "{pieces}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_nothing_to_say_for_a_while_lives() {
    let hour = Duration::from_secs(3600);
    let rare = Sent {
        pause: hour,
        ..Sent::new(3, 100)
    };
    let (mut ours, theirs) = tokio::io::duplex(64 << 10);
    ours.write_all(GET).await.unwrap();
    let mut answer = Vec::new();
    let (ended, read) = tokio::join!(rare.clone().serve(theirs), ours.read_to_end(&mut answer));
    assert_eq!((ended, read.is_ok()), (Ok(()), true));
    assert!(answer.iter().filter(|byte| **byte == b'x').count() >= 300);
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let reading = over_http2(ours, WINDOW, |mut body| async move {
        for _ in 0..3 {
            assert_eq!(next(&mut body).await.map(|data| data.len()), Some(100));
        }
    });
    let clock = rare.clock.clone();
    tokio::select! {
        ended = rare.serve(theirs) => panic!("the connection ended: {ended:?}"),
        () = reading => {}
    }
    assert!(clock.monotonic() >= 4 * hour);
}

#[tokio::test]
async fn a_door_closes_connections_that_do_not_read() {
    let limits = Limits {
        stall_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let sent = Sent {
        clock: Clock::system(),
        ..Sent::new(usize::MAX, 64 << 10)
    };
    let door = sent.door(limits);
    let dropped = CancellationToken::new();
    let guard = Mutex::new(Some(dropped.clone().drop_guard()));
    let guard = Arc::new(guard);
    let service = tower::service_fn(move |_: Request<Incoming>| {
        let body = sent.body(guard.lock().take());
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.address();
    let guest = async {
        let mut stream = connect(address).await.unwrap();
        stream.write_all(GET).await.unwrap();
        // Only because the door gave up.
        dropped.cancelled().await;
    };
    tokio::select! {
        served = serve(listener, door, service, CancellationToken::new()) => panic!("{served:?}"),
        () = guest => {}
    }
}
