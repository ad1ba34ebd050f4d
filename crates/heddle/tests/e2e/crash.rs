//! Killed in the middle of writes, again and again: what was acknowledged is there afterwards.
//!
//! A sample with a real process and a real disk; the store's own suite ends the world at every
//! single operation.

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use kube::api::WatchParams;
use serde_json::Value;

use crate::harness::Server;
use crate::writers::{Stored, Writers, Written, version};

const ROUNDS: usize = 4;
const WRITERS: usize = 16;
const ACKNOWLEDGED_PER_ROUND: usize = 200;

/// Creates objects from many writers until enough are acknowledged, then kills the server under
/// them.
async fn write_until_killed(server: &mut Server, round: usize) -> Written {
    let writers = Writers::on(server, &format!("r{round}")).await;
    let killer = async {
        writers.until_acknowledged(ACKNOWLEDGED_PER_ROUND).await;
        server.kill();
    };
    let (written, ()) = tokio::join!(writers.run(WRITERS), killer);
    assert!(written.acknowledged.len() >= ACKNOWLEDGED_PER_ROUND);
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_versions_never_go_back() {
    let mut server = Server::start().await;
    let mut written = Written::default();
    for round in 0..ROUNDS {
        written.add(write_until_killed(&mut server, round).await);
        server.launch().await;
        let stored = Stored::on(&server).await;
        for (name, acknowledged) in &written.acknowledged {
            assert_eq!(
                stored.versions.get(name),
                Some(acknowledged),
                "{name} after round {round}"
            );
        }
        assert!(
            stored.newest >= *written.acknowledged.values().max().unwrap(),
            "the version went back"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_before_the_kill_misses_nothing_or_is_told_to_list_again() {
    let mut server = Server::start().await;
    let acknowledged = write_until_killed(&mut server, 0).await.acknowledged;
    server.launch().await;
    let mut versions: Vec<u64> = acknowledged.values().copied().collect();
    versions.sort_unstable();
    let from = versions[versions.len() / 2];
    let mut expected: Vec<&String> = acknowledged
        .iter()
        .filter(|(_, version)| **version > from)
        .map(|(name, _)| name)
        .collect();

    let params = WatchParams::default().timeout(5);
    let request = kube::core::Request::new("/api/v1/namespaces/default/configmaps")
        .watch(&params, &from.to_string())
        .unwrap();
    let client = server.client().await;
    let mut lines = client.request_stream(request).await.unwrap().lines();
    let mut last = from;
    while !expected.is_empty() {
        let line = lines
            .try_next()
            .await
            .unwrap()
            .expect("the watch ended before it had shown everything");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "ERROR" {
            assert_eq!(event["object"]["code"], 410, "{event}");
            return;
        }
        let metadata = &event["object"]["metadata"];
        let current = version(metadata["resourceVersion"].as_str());
        assert!(current > last, "out of order or twice: {event}");
        last = current;
        expected.retain(|name| metadata["name"] != name.as_str());
    }
}
