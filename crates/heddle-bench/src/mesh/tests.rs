//! The instruments themselves: what the generator says it sent is what the other side saw.

use std::net::SocketAddr;

use heddle_rt::{Clock, OnError, Tasks};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::sink::{Bound, Counted, Manner};
use super::{load, nats, noop};
use heddle::wire::World;

/// The no-op server, until the tasks are dropped.
async fn start_noop(tasks: &Tasks, world: &World) -> SocketAddr {
    let listener = heddle_rt::net::bind(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let (address, door) = (listener.address(), noop::door(world));
    tasks.spawn_finishing("noop", OnError::Report, |closing| {
        heddle_rt::net::serve(listener, door, tower::service_fn(noop::answer), closing)
    });
    address
}

async fn start_sink(tasks: &Tasks, world: &World) -> SocketAddr {
    start_sink_with(tasks, world, Manner::default()).await
}

async fn start_sink_with(tasks: &Tasks, world: &World, manner: Manner) -> SocketAddr {
    let sink = Bound::new().await.unwrap();
    let (address, clock) = (sink.address, world.clock.clone());
    tasks.spawn("sink", OnError::Report, async move {
        sink.serve(clock, manner)
            .await
            .map_err(|error| error.to_string())
    });
    address
}

#[tokio::test]
async fn every_accepted_event_is_counted_once() {
    let (tasks, world) = (Tasks::new("test"), World::real());
    let sink = start_sink(&tasks, &world).await;
    let args = load::Args {
        connections: 7,
        count: Some(500),
        ..load::Args::to(sink, "/")
    };
    let outcome = load::generate(args, world.clone()).await.unwrap();
    assert_eq!((outcome.accepted, outcome.refused), (500, 0));
    assert!(outcome.p50 > std::time::Duration::ZERO && outcome.p50 <= outcome.p99);
    let counted = Counted::of(sink).await.unwrap();
    assert_eq!(counted.received, 500);
    assert!(counted.p50 > std::time::Duration::ZERO && counted.p50 <= counted.p99);
    Counted::forget(sink).await.unwrap();
    assert_eq!(Counted::of(sink).await.unwrap(), Counted::default());
    tasks.cancel();
}

#[tokio::test]
async fn a_bad_subscriber_is_bad_in_its_own_way() {
    let (tasks, world) = (Tasks::new("test"), World::real());
    let expected = [
        (Manner::Accepting, Some((202, 0))),
        (Manner::Slow, Some((202, 0))),
        (Manner::Busy, Some((429, 0))),
        (Manner::Failing, Some((500, 2))),
        (Manner::Wordy, Some((400, 2048))),
        (Manner::Closing, None),
    ];
    for (manner, expected) in expected {
        let sink = start_sink_with(&tasks, &world, manner).await;
        let answer = super::wire::ask(sink, "POST", "/").await.ok();
        let answer = answer.map(|(status, body)| (status, body.len()));
        assert_eq!(answer, expected, "{manner:?}");
    }
    let hung = start_sink_with(&tasks, &world, Manner::Hung).await;
    let mut asking = Box::pin(super::wire::ask(hung, "POST", "/"));
    loop {
        tokio::select! {
            answer = &mut asking => panic!("it answered {answer:?}"),
            counted = Counted::of(hung) => if counted.unwrap().received == 1 { break },
        }
    }
    tasks.cancel();
}

#[tokio::test]
async fn the_floor_takes_single_events_and_batches() {
    let (tasks, world) = (Tasks::new("test"), World::real());
    let floor = start_noop(&tasks, &world).await;
    for (batch, accepted) in [(1, 50), (100, 300)] {
        let args = load::Args {
            connections: 3,
            count: Some(accepted),
            batch,
            ..load::Args::to(floor, "/broker/default/one")
        };
        let outcome = load::generate(args, world.clone()).await.unwrap();
        assert_eq!(outcome.accepted, accepted, "batches of {batch}");
    }
    tasks.cancel();
}

#[tokio::test]
async fn a_schedule_sends_what_was_asked_for() {
    let (tasks, world) = (Tasks::new("test"), World::real());
    let sink = start_sink(&tasks, &world).await;
    let args = load::Args {
        connections: 4,
        count: Some(100),
        rate: Some(20_000.0),
        ..load::Args::to(sink, "/")
    };
    let outcome = load::generate(args, world).await.unwrap();
    assert_eq!(outcome.accepted, 100);
    assert_eq!(Counted::of(sink).await.unwrap().received, 100);
    tasks.cancel();
}

#[test]
fn the_requests_of_a_schedule_are_evenly_apart() {
    let args = load::Args {
        connections: 4,
        rate: Some(2000.0),
        batch: 10,
        ..load::Args::to(([127, 0, 0, 1], 80).into(), "/")
    };
    let places = (0..3).flat_map(|turn| (0..4).map(move |connection| (turn, connection)));
    let dues: Vec<u128> = places
        .filter_map(|(turn, connection)| args.due(turn, connection))
        .map(|due| due.as_millis())
        .collect();
    assert_eq!(dues, [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
    assert_eq!(load::Args { rate: None, ..args }.due(0, 0), None);
}

/// Answers every connection's requests with the next of `statuses`, and then with 202.
async fn start_grumbling(tasks: &Tasks, statuses: &'static [u16]) -> SocketAddr {
    let listener = bind().await;
    let address = listener.local_addr().unwrap();
    tasks.spawn("grumbling", OnError::Report, async move {
        let (stream, _) = listener.accept().await?;
        let mut wire = super::wire::Wire::over(stream)?;
        let mut statuses = statuses.iter();
        while let Some(frame) = wire.message().await? {
            wire.consume(frame);
            let status = statuses.next().unwrap_or(&202);
            let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 3\r\n\r\nwhy");
            wire.write(answer.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    address
}

#[expect(
    clippy::disallowed_methods,
    reason = "stands in for a server that heddle does not serve"
)]
async fn bind() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.unwrap()
}

#[tokio::test]
async fn an_event_refused_under_pressure_is_made_up_for() {
    let tasks = Tasks::new("test");
    let args = load::Args {
        connections: 1,
        count: Some(5),
        ..load::Args::to(start_grumbling(&tasks, &[202, 429, 503]).await, "/")
    };
    let outcome = load::generate(args, World::real()).await.unwrap();
    assert_eq!((outcome.accepted, outcome.refused), (5, 2));
    tasks.cancel();
}

#[tokio::test]
async fn any_other_refusal_ends_the_run_in_the_servers_words() {
    let tasks = Tasks::new("test");
    let args = load::Args {
        connections: 1,
        count: Some(5),
        ..load::Args::to(start_grumbling(&tasks, &[202, 404]).await, "/there")
    };
    let error = load::generate(args, World::real()).await.unwrap_err();
    assert!(
        error.to_string().ends_with("/there answered 404: why"),
        "{error}"
    );
    tasks.cancel();
}

#[test]
fn outcomes_survive_the_way_between_processes() {
    let outcome = load::Outcome {
        accepted: 12,
        refused: 3,
        rate: 99.5,
        p50: std::time::Duration::from_micros(250),
        p99: std::time::Duration::from_millis(4),
    };
    let line = outcome.to_json().to_string();
    assert_eq!(load::Outcome::parse(&line).unwrap(), outcome);
    assert!(load::Outcome::parse("{}").is_err());
}

#[test]
fn command_lines_parse_to_what_they_were_made_from() {
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: load::Args,
    }
    let args = load::Args {
        connections: 9,
        seconds: 0.3,
        warm_up: 0.1,
        count: Some(4),
        rate: Some(2.5),
        batch: 100,
        data_bytes: 128,
        ..load::Args::to(([127, 0, 0, 1], 80).into(), "/broker/a/b")
    };
    // The name of the command stands where a program's name is expected.
    let parsed = Cli::parse_from(args.command_line()).args;
    assert_eq!(format!("{parsed:?}"), format!("{args:?}"));
}

/// As much of a JetStream server as acknowledges what is published; pings once, as servers do.
async fn jetstream(listener: TcpListener) -> std::io::Result<u64> {
    let (stream, _) = listener.accept().await?;
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    write
        .write_all(b"INFO {\"server_id\":\"x\"}\r\nPING\r\n")
        .await?;
    let (mut published, mut line) = (0, String::new());
    while lines.read_line(&mut line).await? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["PUB", subject, reply, size] = words[..] {
            let mut payload = vec![0; size.parse::<usize>().unwrap() + 2];
            lines.read_exact(&mut payload).await?;
            let answer = if subject == "bench.events" {
                published += 1;
                format!("{{\"stream\":\"BENCH\", \"seq\":{published}}}")
            } else {
                assert_eq!(subject, "$JS.API.STREAM.CREATE.BENCH");
                "{\"type\":\"io.nats.jetstream.api.v1.stream_create_response\"}".to_owned()
            };
            let message = format!("MSG {reply} 1 {}\r\n{answer}\r\n", answer.len());
            // In two pieces, for a message need not arrive whole.
            let (first, rest) = message.split_at(message.len() / 2);
            write.write_all(first.as_bytes()).await?;
            write.flush().await?;
            write.write_all(rest.as_bytes()).await?;
        }
        line.clear();
    }
    Ok(published)
}

#[tokio::test]
async fn jetstream_acknowledges_exactly_what_is_counted() {
    let listener = bind().await;
    let args = nats::Args {
        address: listener.local_addr().unwrap(),
        in_flight: 8,
        seconds: 0.05,
        warm_up: 0.0,
        data_bytes: 64,
    };
    let publish = nats::publish(args, Clock::system());
    let (outcome, published) = tokio::join!(publish, jetstream(listener));
    let outcome = outcome.unwrap();
    assert!(outcome.accepted >= 8, "{outcome:?}");
    assert_eq!(outcome.accepted, published.unwrap());
}
