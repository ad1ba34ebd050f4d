//! A server that may have few files open, and strangers who take every connection they can get.

use heddle_rt::net;
use tokio::net::TcpStream;

use super::stage::{self, BROKER, event};
use super::subscriber::{Manner, Subscriber};
use super::wire::Wire;
use crate::harness::{Server, eventually_or_else};

/// The least that a server starts with.
const FEW: u32 = 256;
const EVENTS: usize = 200;

#[tokio::test]
async fn too_few_descriptors_are_refused_with_a_remedy() {
    let server = Server::keeping(tempfile::tempdir().unwrap().path().join("data"));
    let status = server.command_with_descriptors(FEW - 1).status().unwrap();
    assert!(!status.success());
    let log = server.log();
    assert!(log.contains("needs 256"), "{log}");
    assert!(log.contains("ulimit -n"), "{log}");
}

/// As many connections as the server takes, and more that wait.
async fn crowd(address: &str, count: usize) -> Vec<TcpStream> {
    let address = address.trim_start_matches("http://").parse().unwrap();
    let connecting = (0..count).map(|_| net::connect(address));
    let connected = futures::future::join_all(connecting).await;
    connected.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_at_both_doors_costs_no_event() {
    let server = Server::start_with_descriptors(FEW).await;
    stage::set_up(&server).await;
    let subscriber = Subscriber::start().await;
    stage::refused_and_retried(&server, &subscriber).await;
    let mut wire = server.publisher();
    let mut held = Vec::new();
    let mut taken = 0;
    for number in 0..EVENTS {
        if number == EVENTS / 4 {
            held = crowd(&server.events, 100).await;
            held.extend(crowd(&server.control, 100).await);
        }
        let id = format!("{number}");
        let answer = wire.ask("POST", BROKER, &event(&id, "load"), b"data").await;
        // Whoever holds a connection is served; nothing else is said than yes.
        assert_eq!(answer.unwrap().status(), 202);
        taken += 1;
    }
    assert_eq!(taken, EVENTS);
    subscriber.behave("/", Manner::Accept);
    drop(held);
    // Until the server has noticed, whoever comes from the same address may be closed like one too many of the crowd.
    eventually_or_else("room at the control listener", async || {
        for _ in 0..5 {
            let mut wire = Wire::to(&server.control);
            let answer = wire.ask("GET", "/livez", &[], b"").await;
            answer.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
    .await;
    let accounts = eventually_or_else("all deliveries", async || match server.account("t").await {
        account if account.delivered == EVENTS as u64 => Ok(account),
        account => Err(format!("{account:#?}")),
    })
    .await;
    assert_eq!(
        (accounts.matched, accounts.dead_lettered),
        (EVENTS as u64, 0)
    );
    let doctor = server.heddle(&["doctor"]);
    assert!(doctor.out.contains("all accounted for"), "{}", doctor.out);
}
