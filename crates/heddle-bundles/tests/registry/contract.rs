//! What every kind of registry keeps to: one suite for a server, a directory, what was pushed to heddle, and charts.

use std::collections::BTreeMap;

use heddle_api::evidence::{ImageEvidence, Reading};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::charts::{Repository, runner};
use super::keeping::fetch;
use super::machine::{Reader, Registry, known, learned, words};
use super::made::{Made, bundle, write_layout};

/// Something that bundles can be put into and taken out of.
enum Subject {
    Server(Box<Registry>),
    Directory(TempDir, BTreeMap<String, Made>),
    Pushed,
    Charts(Box<Repository>),
}

impl Subject {
    fn spec(&self) -> Value {
        match self {
            Self::Server(registry) => json!({"type": "apiv2", "url": registry.url()}),
            Self::Directory(dir, _) => json!({"type": "oci-layout", "url": dir.path()}),
            Self::Pushed => json!({"type": "push"}),
            Self::Charts(repository) => repository.spec(),
        }
    }

    /// What something is called there.
    fn path(&self, name: &str) -> String {
        match self {
            Self::Charts(_) => name.to_owned(),
            _ => format!("org/{name}"),
        }
    }

    async fn put(&mut self, reader: &Reader, name: &str, tag: &str, version: &str) {
        let (made, path) = (bundle(name, version), self.path(name));
        match self {
            Self::Server(registry) => registry.put(&path, tag, &made).await,
            Self::Directory(dir, images) => {
                images.insert(format!("{path}:{tag}"), made);
                write_layout(dir.path(), &images.clone().into_iter().collect::<Vec<_>>());
            }
            Self::Pushed => {
                let pushed = reader.registries.pushed();
                pushed.put(&path, tag, &made.image()).unwrap();
            }
            // A chart has versions and no tags; what follows the newest one needs nothing else.
            Self::Charts(repository) => repository.put(name, version),
        }
    }

    async fn remove(&mut self, reader: &Reader, name: &str, tag: &str, version: &str) {
        let path = self.path(name);
        match self {
            Self::Server(registry) => {
                let digest = bundle(name, version).digest();
                registry.delete(&path, &digest).await;
            }
            Self::Directory(dir, images) => {
                images.remove(&format!("{path}:{tag}"));
                write_layout(dir.path(), &images.clone().into_iter().collect::<Vec<_>>());
            }
            Self::Pushed => assert!(reader.registries.pushed().remove(&path, tag).unwrap()),
            Self::Charts(repository) => repository.remove(name, version),
        }
    }
}

/// What was found, whatever it is called there and whoever runs it.
fn told(reading: &Reading) -> Vec<String> {
    let plain = |word: String| {
        let word = word.trim_start_matches("org/");
        word.split('+').next().unwrap().to_owned()
    };
    words(reading).into_iter().map(plain).collect()
}

async fn keeps_the_contract(mut subject: Subject) {
    let reader = Reader::new();
    for (name, tag) in [("hello", "latest"), ("hello", "1.0.0"), ("other", "latest")] {
        subject.put(&reader, name, tag, "1.0.0").await;
    }
    let mut spec = subject.spec();
    spec["tags"] = json!({"named": [
        {"image": "hello", "tag": "1.0.0"}, {"image": subject.path("other"), "tag": "7.0.0"},
    ]});

    let reading = reader.read(&spec, &[]).await;
    assert_eq!(reading.trouble, None);
    assert_eq!(
        told(&reading),
        [
            "hello:1.0.0 present 1.0.0",
            "hello:latest present 1.0.0",
            "other:7.0.0 absent TagRemoved",
            "other:latest present 1.0.0",
        ]
    );
    let mut pinned = None;
    for sighting in &reading.sightings {
        if let ImageEvidence::Present(found) = &sighting.verdict {
            let name = found.description["name"].as_str().unwrap();
            assert_eq!(subject.path(name), sighting.image.repository);
            assert_eq!(found.runtime, 1);
            if !matches!(subject, Subject::Charts(_)) {
                let end = format!("/{}", sighting.image.repository);
                assert!(found.location.ends_with(&end), "{found:?}");
            }
            pinned = Some((sighting.image.repository.clone(), found.clone()));
        }
    }
    let all = learned(&reading);
    let again = told(&reader.read(&spec, &all).await);
    let unchanged = again.iter().filter(|word| word.ends_with("unchanged"));
    assert_eq!(unchanged.count(), 3, "{again:?}");

    // What is pinned is kept before the tag moves on.
    let (repository, found) = pinned.unwrap();
    let mut wanted = fetch(&spec, &repository, &found.manifest_digest);
    wanted.location.clone_from(&found.location);
    reader.registries.keep(wanted).await.unwrap();
    let root = reader.store.unpack(&found.manifest_digest).unwrap();
    assert!(root.join("bin/entrypoint").is_file());
    subject.put(&reader, "hello", "latest", "2.0.0").await;
    let moved = told(&reader.read(&spec, &all).await);
    assert_eq!(
        moved[..2],
        ["hello:1.0.0 unchanged", "hello:latest present 2.0.0"]
    );

    subject.remove(&reader, "hello", "1.0.0", "1.0.0").await;
    subject.remove(&reader, "other", "latest", "1.0.0").await;
    let removed = told(&reader.read(&spec, &all).await);
    assert_eq!(
        removed[..2],
        [
            "hello:1.0.0 absent TagRemoved",
            "hello:latest present 2.0.0"
        ]
    );
    let is_gone = |word: &String| word.starts_with("other:latest absent");
    assert!(removed.iter().any(is_gone), "{removed:?}");
    subject.put(&reader, "other", "latest", "1.0.0").await;
    let back = told(&reader.read(&spec, &all).await);
    assert!(
        back.contains(&"other:latest unchanged".to_owned()),
        "seen again: {back:?}"
    );

    spec["whiteList"] = json!([".*"]);
    spec["blackList"] = json!(["other"]);
    let denied = told(&reader.read(&spec, &all).await);
    assert!(
        denied.contains(&"other:latest absent Filtered".to_owned()),
        "{denied:?}"
    );
    spec["blackList"] = json!([]);
    spec["whiteList"] = json!(["hello"]);
    let filtered = told(&reader.read(&spec, &all).await);
    assert!(
        filtered.contains(&"other:latest absent Filtered".to_owned()),
        "{filtered:?}"
    );
    spec["tags"] = json!({"select": [">=1, <3"]});
    subject.put(&reader, "hello", "2.0.0", "2.0.0").await;
    assert_eq!(
        told(&reader.read(&spec, &[]).await),
        ["hello:2.0.0 present 2.0.0", "hello:latest present 2.0.0"]
    );
    let mut never = fetch(&spec, &repository, &bundle("never", "1").digest());
    never.location = found.location;
    assert!(reader.registries.keep(never).await.is_err());
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
async fn charts_keep_the_contract() {
    let repository = Repository::start(&runner("1")).await;
    keeps_the_contract(Subject::Charts(Box::new(repository))).await;
}

#[tokio::test]
async fn a_directory_has_as_many_images_as_a_registry() {
    const MANY: usize = 1_100;
    let (reader, dir) = (Reader::new(), TempDir::new().unwrap());
    let made = bundle("hello", "1.0.0");
    let named = |number: usize| (format!("org/hello-{number}:latest"), made.clone());
    write_layout(dir.path(), &(0..MANY).map(named).collect::<Vec<_>>());
    let spec = json!({"type": "oci-layout", "url": dir.path(), "whiteList": [".*"]});
    let reading = reader.read(&spec, &[]).await;
    assert_eq!((reading.trouble, reading.sightings.len()), (None, MANY));
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
