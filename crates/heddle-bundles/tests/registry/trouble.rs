//! Registries that are slow, overloaded, gone or hung.

use std::time::Duration;

use heddle_api::evidence::Trouble;
use heddle_bundles::registries::Patience;
use serde_json::json;

use super::machine::{Fault, Reader, Registry, known, words};
use super::made::bundle;

const SHORT: Patience = Patience {
    connect: Duration::from_secs(2),
    answer: Duration::from_secs(2),
    layer: Duration::from_secs(5),
    wait_max: Duration::from_secs(2),
};

#[tokio::test]
async fn a_registry_that_is_down_or_hung_is_unreachable_and_withdraws_nothing() {
    let (mut registry, reader) = (Registry::start().await, Reader::patient(SHORT, 100));
    registry
        .put("org/hello", "latest", &bundle("hello", "1.0.0"))
        .await;
    let spec = json!({"url": registry.url()});
    let known = [known(
        "org/hello:latest",
        &bundle("hello", "1.0.0").digest(),
    )];
    registry.signal("STOP");
    let reading = reader.read(&spec, &known).await;
    registry.signal("CONT");
    assert!(
        matches!(&reading.trouble, Some(Trouble::Unreachable(why)) if why.contains("no answer")),
        "{reading:?}"
    );
    assert_eq!(words(&reading), ["org/hello:latest unknown"]);
    let awake = Reader::new().read(&spec, &known).await;
    assert_eq!(words(&awake), ["org/hello:latest unchanged"]);
    registry.stop();
    let reading = reader.read(&spec, &known).await;
    assert!(
        matches!(&reading.trouble, Some(Trouble::Unreachable(why)) if why.contains("refused")),
        "{reading:?}"
    );
    assert_eq!(words(&reading), ["org/hello:latest unknown"]);
}

#[tokio::test]
async fn a_registry_that_stops_answering_halfway_is_not_asked_on() {
    let (registry, reader) = (Registry::start().await, Reader::patient(SHORT, 100));
    let made = bundle("many", "1.0.0");
    let mut all = Vec::new();
    for number in 0..40 {
        registry
            .put(&format!("org/b{number}"), "latest", &made)
            .await;
        all.push(known(&format!("org/b{number}:latest"), &made.digest()));
    }
    let proxy = reader.proxy(&registry).await;
    proxy.fault(None, "/manifests/", usize::MAX, Fault::Hang);
    let reading = reader.read(&json!({"url": proxy.url()}), &all).await;
    assert!(matches!(reading.trouble, Some(Trouble::Unreachable(_))));
    assert!(
        words(&reading).iter().all(|word| word.ends_with("unknown"))
            && reading.sightings.len() == 40
    );
    assert!(proxy.seen().len() < 20, "{} requests", proxy.seen().len());
}

#[tokio::test]
async fn a_registry_is_left_alone_for_as_long_as_it_asks() {
    let (registry, reader) = (
        Registry::start().await,
        Reader::patient(
            Patience {
                answer: Duration::from_secs(30),
                ..SHORT
            },
            100,
        ),
    );
    for name in ["a", "b", "c"] {
        registry
            .put(&format!("org/{name}"), "latest", &bundle(name, "1.0.0"))
            .await;
    }
    let proxy = reader.proxy(&registry).await;
    let wait = |seconds: &str| {
        Fault::Answer(
            429,
            vec![("retry-after", seconds.to_owned())],
            String::new(),
        )
    };
    proxy.fault(None, "_catalog", 1, wait("1"));
    let reading = reader.read(&json!({"url": proxy.url()}), &[]).await;
    assert_eq!((reading.trouble, reading.sightings.len()), (None, 3));
    let seen = proxy.seen();
    assert!(
        seen[1].at.saturating_sub(seen[0].at) >= Duration::from_secs(1),
        "{seen:?}"
    );
    // Longer than anybody wants to wait: the rest is unknown, and nothing is asked in the meantime.
    proxy.calm();
    proxy.fault(None, "_catalog", 1, wait("3600"));
    let known = [known("org/a:latest", "")];
    let reading = reader.read(&json!({"url": proxy.url()}), &known).await;
    assert!(reading.trouble.is_some());
    assert_eq!(words(&reading), ["org/a:latest unknown"]);
    assert_eq!(proxy.seen().len(), 1, "{:?}", proxy.seen());
}

#[tokio::test]
async fn what_passes_is_waited_for() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    registry.put("org/a", "latest", &bundle("a", "1.0.0")).await;
    let proxy = reader.proxy(&registry).await;
    for status in [429, 502, 503] {
        proxy.fault(
            None,
            "/manifests/",
            1,
            Fault::Answer(status, Vec::new(), String::new()),
        );
        let reading = reader.read(&json!({"url": proxy.url()}), &[]).await;
        assert_eq!(words(&reading), ["org/a:latest present 1.0.0"], "{status}");
    }
    proxy.status("/manifests/", 503);
    let reading = reader.read(&json!({"url": proxy.url()}), &[]).await;
    assert_eq!(
        words(&reading),
        ["org/a:latest unknown"],
        "but not for ever"
    );
}
