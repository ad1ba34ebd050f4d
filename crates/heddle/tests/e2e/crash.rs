//! Killed in the middle of writes, again and again: what was acknowledged is there afterwards.
//!
//! A sample with a real process and a real disk; the store's own suite ends the world at every
//! single operation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::join_all;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchParams};
use serde_json::Value;

use crate::harness::Server;

const ROUNDS: usize = 4;
const WRITERS: usize = 16;
const ACKNOWLEDGED_PER_ROUND: usize = 200;

fn version(text: Option<&str>) -> u64 {
    text.unwrap().parse().unwrap()
}

/// Creates objects from many writers until enough are acknowledged, then kills the server under
/// them. Returns every acknowledged name with its version.
async fn write_until_killed(server: &mut Server, round: usize) -> BTreeMap<String, u64> {
    let client = server.client().await;
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let (acknowledged, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let writers = (0..WRITERS).map(|writer| {
        let (api, acknowledged, over) = (api.clone(), &acknowledged, &over);
        async move {
            let mut mine = Vec::new();
            for number in 0.. {
                let mut object = ConfigMap::default();
                object.metadata.name = Some(format!("r{round}-w{writer}-n{number}"));
                match api.create(&PostParams::default(), &object).await {
                    Ok(made) => mine.push((
                        made.metadata.name.unwrap(),
                        version(made.metadata.resource_version.as_deref()),
                    )),
                    Err(error) => {
                        assert!(
                            over.load(Ordering::SeqCst),
                            "a write failed before the kill: {error}"
                        );
                        return mine;
                    }
                }
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            mine
        }
    });
    let killer = async {
        crate::harness::eventually("enough writes", async || {
            (acknowledged.load(Ordering::SeqCst) >= ACKNOWLEDGED_PER_ROUND).then_some(())
        })
        .await;
        over.store(true, Ordering::SeqCst);
        server.kill();
    };
    let (written, ()) = futures::future::join(join_all(writers), killer).await;
    written.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_and_versions_never_go_back() {
    let mut server = Server::start().await;
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..ROUNDS {
        let acknowledged = write_until_killed(&mut server, round).await;
        assert!(acknowledged.len() >= ACKNOWLEDGED_PER_ROUND);
        all.extend(acknowledged);
        server.launch().await;
        let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
        let list = api.list(&ListParams::default()).await.unwrap();
        let newest = version(list.metadata.resource_version.as_deref());
        let stored: BTreeMap<String, u64> = list
            .items
            .into_iter()
            .map(|object| {
                (
                    object.metadata.name.unwrap(),
                    version(object.metadata.resource_version.as_deref()),
                )
            })
            .collect();
        for (name, acknowledged) in &all {
            assert_eq!(
                stored.get(name),
                Some(acknowledged),
                "{name} after round {round}"
            );
        }
        assert!(
            newest >= *all.values().max().unwrap(),
            "the version went back"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_before_the_kill_misses_nothing_or_is_told_to_list_again() {
    let mut server = Server::start().await;
    let acknowledged = write_until_killed(&mut server, 0).await;
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
