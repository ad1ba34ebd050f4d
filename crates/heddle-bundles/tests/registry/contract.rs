//! What every kind of registry keeps to: one suite for a server, a directory, and what was pushed to heddle.

use std::collections::BTreeMap;

use heddle_api::evidence::Verdict;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::keeping::fetch;
use super::machine::{Reader, Registry, known, learned, words};
use super::made::{Made, bundle, write_layout};

/// Something that images can be put into and taken out of.
enum Subject {
    Server(Box<Registry>),
    Directory(TempDir, BTreeMap<String, Made>),
    Pushed,
}

impl Subject {
    fn spec(&self) -> Value {
        match self {
            Self::Server(registry) => json!({"type": "apiv2", "url": registry.url()}),
            Self::Directory(dir, _) => json!({"type": "oci-layout", "url": dir.path()}),
            Self::Pushed => json!({"type": "push"}),
        }
    }

    async fn put(&mut self, reader: &Reader, repository: &str, tag: &str, made: &Made) {
        match self {
            Self::Server(registry) => registry.put(repository, tag, made).await,
            Self::Directory(dir, images) => {
                images.insert(format!("{repository}:{tag}"), made.clone());
                write_layout(dir.path(), &images.clone().into_iter().collect::<Vec<_>>());
            }
            Self::Pushed => drop(
                reader
                    .registries
                    .shelf()
                    .put(repository, tag, &made.image())
                    .unwrap(),
            ),
        }
    }

    async fn remove(&mut self, reader: &Reader, repository: &str, tag: &str, made: &Made) {
        match self {
            Self::Server(registry) => registry.delete(repository, &made.digest()).await,
            Self::Directory(dir, images) => {
                images.remove(&format!("{repository}:{tag}"));
                write_layout(dir.path(), &images.clone().into_iter().collect::<Vec<_>>());
            }
            Self::Pushed => assert!(reader.registries.shelf().remove(repository, tag).unwrap()),
        }
    }
}

async fn keeps_the_contract(mut subject: Subject) {
    let reader = Reader::new();
    let (first, second, other) = (
        bundle("hello", "1.0.0"),
        bundle("hello", "2.0.0"),
        bundle("other", "1.0.0"),
    );
    subject.put(&reader, "org/hello", "latest", &first).await;
    subject.put(&reader, "org/hello", "v1", &first).await;
    subject.put(&reader, "org/other", "latest", &other).await;
    let mut spec = subject.spec();
    spec["tags"] =
        json!({"named": [{"image": "hello", "tag": "v1"}, {"image": "org/other", "tag": "v7"}]});

    let reading = reader.read(&spec, &[]).await;
    assert_eq!(reading.trouble, None);
    assert_eq!(
        words(&reading),
        [
            "org/hello:latest present 1.0.0",
            "org/hello:v1 present 1.0.0",
            "org/other:latest present 1.0.0",
            "org/other:v7 absent TagRemoved"
        ]
    );
    for sighting in &reading.sightings {
        if let Verdict::Present(found) = &sighting.verdict {
            assert!(
                found
                    .location
                    .ends_with(&format!("/{}", sighting.image.repository)),
                "{found:?}"
            );
            assert_eq!(
                (found.runtime, found.description["version"].as_f64()),
                (1, Some(1.0))
            );
        }
    }
    let all = learned(&reading);
    let words_now = words(&reader.read(&spec, &all).await);
    assert_eq!(
        words_now
            .iter()
            .filter(|word| word.ends_with("unchanged"))
            .count(),
        3,
        "{words_now:?}"
    );

    // What is pinned is kept before the tag moves on.
    reader
        .registries
        .keep(fetch(&spec, "org/hello", &first.digest()))
        .await
        .unwrap();
    assert!(
        reader
            .store
            .unpack(&first.digest())
            .unwrap()
            .join("bin/entrypoint")
            .is_file()
    );
    subject.put(&reader, "org/hello", "latest", &second).await;
    let moved = words(&reader.read(&spec, &all).await);
    assert_eq!(
        moved[..2],
        ["org/hello:latest present 2.0.0", "org/hello:v1 unchanged"]
    );

    subject
        .remove(&reader, "org/hello", "latest", &second)
        .await;
    subject.remove(&reader, "org/other", "latest", &other).await;
    let removed = words(&reader.read(&spec, &all).await);
    assert_eq!(removed[0], "org/hello:latest absent TagRemoved");
    assert!(
        removed
            .iter()
            .any(|word| word.starts_with("org/other:latest absent")),
        "{removed:?}"
    );
    subject.put(&reader, "org/other", "latest", &other).await;
    let back = words(&reader.read(&spec, &all).await);
    assert!(
        back.contains(&"org/other:latest unchanged".to_owned()),
        "seen again: {back:?}"
    );

    spec["whiteList"] = json!(["hello"]);
    let filtered = words(&reader.read(&spec, &all).await);
    assert!(
        filtered.contains(&"org/other:latest absent Filtered".to_owned()),
        "{filtered:?}"
    );
    let never = reader
        .registries
        .keep(fetch(&spec, "org/hello", &bundle("never", "1").digest()))
        .await;
    assert!(never.is_err());
}

#[tokio::test]
async fn a_server_keeps_the_contract() {
    keeps_the_contract(Subject::Server(Box::new(Registry::start().await))).await;
}

#[tokio::test]
async fn a_directory_keeps_the_contract() {
    keeps_the_contract(Subject::Directory(TempDir::new().unwrap(), BTreeMap::new())).await;
}

#[tokio::test]
async fn what_was_pushed_keeps_the_contract() {
    keeps_the_contract(Subject::Pushed).await;
}

#[tokio::test]
async fn a_directory_that_is_gone_or_broken_withdraws_nothing() {
    let (reader, dir) = (Reader::new(), TempDir::new().unwrap());
    let made = bundle("hello", "1.0.0");
    write_layout(dir.path(), &[("org/hello:latest".to_owned(), made.clone())]);
    let spec = json!({"type": "oci-layout", "url": dir.path()});
    let known = [known("org/hello:latest", "sha256:00")];
    let blob = dir
        .path()
        .join("blobs/sha256")
        .join(heddle_bundles::images::Digest::of(&made.blobs[0]).hex());
    std::fs::write(&blob, "something else").unwrap();
    assert_eq!(
        words(&reader.read(&spec, &known).await),
        ["org/hello:latest unknown"]
    );
    std::fs::write(dir.path().join("index.json"), "{").unwrap();
    for _ in 0..2 {
        let reading = reader.read(&spec, &known).await;
        assert!(reading.trouble.is_some());
        assert_eq!(words(&reading), ["org/hello:latest unknown"]);
        std::fs::remove_file(dir.path().join("index.json")).ok();
    }
}
