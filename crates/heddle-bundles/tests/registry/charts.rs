//! Repositories of Helm charts: what their index proves, and the runner that goes with it.

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::bundle_source::Fetch;
use heddle_api::evidence::{Credentials, Found, ImageEvidence, Reading, Trouble};
use heddle_rt::Tasks;
use serde_json::{Map, Value, json};

use super::keeping::fetch;
use super::machine::{Fault, Proxy, Reader, Registry, learned, words};
use super::made::{Family, Made, labelled, layer};

/// An image that could carry out actions on charts.
pub(crate) fn runner(version: &str) -> Made {
    labelled(Family::Oci, &json!({}), layer("bin/entrypoint", version))
}

/// A repository of charts, and a registry with its runner.
pub(crate) struct Repository {
    images: Registry,
    /// Serves the index.
    charts: Proxy,
    versions: BTreeMap<String, BTreeSet<String>>,
    tasks: Tasks,
}

impl Repository {
    pub(crate) async fn start(runner: &Made) -> Self {
        let tasks = Tasks::new("charts");
        let repository = Self {
            images: Registry::start().await,
            charts: Proxy::start(&tasks, None).await,
            versions: BTreeMap::new(),
            tasks,
        };
        repository.images.put("acme/runner", "v1", runner).await;
        repository.serve();
        repository
    }

    pub(crate) fn spec(&self) -> Value {
        let runner = format!("{}/acme/runner:v1", self.images.url());
        json!({"type": "helm", "url": self.charts.url(), "runner": runner})
    }

    pub(crate) fn put(&mut self, chart: &str, version: &str) {
        let versions = self.versions.entry(chart.to_owned()).or_default();
        versions.insert(version.to_owned());
        self.serve();
    }

    pub(crate) fn remove(&mut self, chart: &str, version: &str) {
        let versions = self.versions.get_mut(chart).unwrap();
        assert!(versions.remove(version));
        if versions.is_empty() {
            self.versions.remove(chart);
        }
        self.serve();
    }

    fn index(&self) -> String {
        let entry = |version: &String| json!({"version": version, "description": "a chart"});
        let charts = self.versions.iter().map(|(name, versions)| {
            let entries: Vec<Value> = versions.iter().map(entry).collect();
            (name.clone(), Value::from(entries))
        });
        let entries: Map<String, Value> = charts.collect();
        json!({"apiVersion": "v1", "entries": entries, "generated": "2026-01-01T00:00:00Z"})
            .to_string()
    }

    /// From now on the index is what it should be.
    fn serve(&self) {
        self.answer(200, Vec::new(), self.index());
    }

    fn answer(&self, status: u16, headers: Vec<(&'static str, String)>, body: String) {
        self.charts.calm();
        let answer = Fault::Answer(status, headers, body);
        self.charts.fault(None, "/index.yaml", usize::MAX, answer);
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn found(reading: &Reading, image: &str) -> Found {
    let mut sightings = reading.sightings.iter();
    let sighting = sightings.find(|it| it.image.to_string() == image).unwrap();
    match &sighting.verdict {
        ImageEvidence::Present(found) => (**found).clone(),
        other => panic!("{image}: {other:?}"),
    }
}

fn keep(spec: &Value, found: &Found) -> Fetch {
    let mut wanted = fetch(spec, "redis", &found.manifest_digest);
    wanted.location.clone_from(&found.location);
    wanted
}

#[tokio::test]
async fn a_newer_version_or_another_runner_is_another_revision() {
    let (old, new) = (runner("1"), runner("2"));
    let (mut repository, reader) = (Repository::start(&old).await, Reader::new());
    repository.put("redis", "1.0.0");
    repository.put("redis", "2.0.0-rc.1");
    let spec = repository.spec();
    let first = reader.read(&spec, &[]).await;
    let one = found(&first, "redis:latest");
    assert_eq!(one.manifest_digest, old.digest(), "what runs is the runner");
    let location = format!("{}/acme/runner", repository.images.url());
    assert_eq!(one.location, location);
    let choices = &one.description["plans"][0]["parameters"][2]["enum"];
    assert_eq!(*choices, json!(["1.0.0"]), "without what is not released");

    repository.put("redis", "1.1.0");
    let second = reader.read(&spec, &learned(&first)).await;
    let two = found(&second, "redis:latest");
    assert_eq!(two.manifest_digest, one.manifest_digest);
    assert_ne!(two.digest(), one.digest());
    assert!(two.version.unwrap().0.starts_with("1.1.0+runner."));

    repository.images.put("acme/runner", "v1", &new).await;
    let third = reader.read(&spec, &learned(&second)).await;
    let three = found(&third, "redis:latest");
    assert_eq!(three.manifest_digest, new.digest());
    let settled = reader.read(&spec, &learned(&third)).await;
    assert_eq!(words(&settled), ["redis:latest unchanged"]);
}

#[tokio::test]
async fn a_pinned_runner_outlives_the_repository_and_its_registry() {
    let (old, new) = (runner("1"), runner("2"));
    let (mut repository, reader) = (Repository::start(&old).await, Reader::new());
    repository.put("redis", "1.0.0");
    let mut spec = repository.spec();
    let pinned = found(&reader.read(&spec, &[]).await, "redis:latest");

    // The settings name another runner by now, and the index is gone.
    repository.images.put("acme/other", "v9", &new).await;
    spec["runner"] = json!(format!("{}/acme/other:v9", repository.images.url()));
    repository.answer(404, Vec::new(), "gone".to_owned());
    reader.registries.keep(keep(&spec, &pinned)).await.unwrap();
    repository.images.stop();
    reader.registries.keep(keep(&spec, &pinned)).await.unwrap();
    let root = reader.store.unpack(&pinned.manifest_digest).unwrap();
    let program = std::fs::read_to_string(root.join("bin/entrypoint")).unwrap();
    assert_eq!(program, "1");
}

#[tokio::test]
async fn only_a_whole_index_proves_that_a_chart_is_gone() {
    let (mut repository, reader) = (Repository::start(&runner("1")).await, Reader::new());
    repository.put("redis", "1.0.0");
    repository.put("kept", "1.0.0");
    let spec = repository.spec();
    let known = learned(&reader.read(&spec, &[]).await);
    repository.remove("redis", "1.0.0");
    let gone = reader.read(&spec, &known).await;
    assert_eq!((&gone.trouble, gone.requests), (&None, 3));
    assert_eq!(
        words(&gone),
        [
            "kept:latest unchanged",
            "redis:latest absent RemovedFromRegistry"
        ]
    );

    let whole = repository.index();
    let unsaid = whole.replace("generated", "remarks");
    let half = whole[..whole.len() / 2].to_owned();
    let page = "<!DOCTYPE html><html><body>Not Found</body></html>".to_owned();
    for (status, body) in [
        (200, half),
        (200, page.clone()),
        (200, String::new()),
        (200, "{}".to_owned()),
        (404, page),
        (304, String::new()),
        (500, whole.clone()),
        (403, whole),
    ] {
        repository.answer(status, Vec::new(), body.clone());
        let reading = reader.read(&spec, &known).await;
        assert!(reading.trouble.is_some(), "{status} {body}");
        assert_eq!(
            words(&reading),
            ["kept:latest unknown", "redis:latest unknown"],
            "{status} {body}"
        );
    }
    repository.answer(200, Vec::new(), unsaid);
    let reading = reader.read(&spec, &known).await;
    assert!(matches!(
        reading.trouble,
        Some(Trouble::ListingIncomplete(_))
    ));
    assert_eq!(
        words(&reading),
        ["kept:latest unchanged", "redis:latest unknown"],
        "what is there is there"
    );
}

#[tokio::test]
async fn an_index_that_did_not_change_is_not_sent_again() {
    let (mut repository, reader) = (Repository::start(&runner("1")).await, Reader::new());
    repository.put("redis", "1.0.0");
    let spec = repository.spec();
    let date = "Thu, 01 Jan 2026 00:00:00 GMT".to_owned();
    let tag = "\"one\"".to_owned();
    let marks = vec![("etag", tag.clone()), ("last-modified", date.clone())];
    repository.answer(200, marks, repository.index());
    let first = reader.read(&spec, &[]).await;
    assert!(repository.charts.seen()[0].conditions.is_empty());
    repository.answer(304, Vec::new(), String::new());
    let second = reader.read(&spec, &learned(&first)).await;
    assert_eq!(second.trouble, None);
    assert_eq!(words(&second), ["redis:latest unchanged"]);
    assert_eq!(repository.charts.seen()[0].conditions, [tag, date]);
    repository.put("redis", "2.0.0");
    let third = reader.read(&spec, &learned(&first)).await;
    assert!(words(&third)[0].starts_with("redis:latest present 2.0.0"));
    repository.serve();
    reader.read(&spec, &[]).await;
    assert!(
        repository.charts.seen()[0].conditions.is_empty(),
        "the last answer had no mark to ask with"
    );
}

#[tokio::test]
async fn without_its_runner_nothing_is_said_about_any_chart() {
    let (mut repository, reader) = (Repository::start(&runner("1")).await, Reader::new());
    repository.put("redis", "1.0.0");
    let spec = repository.spec();
    let known = learned(&reader.read(&spec, &[]).await);
    repository.remove("redis", "1.0.0");
    let with = |runner: String| {
        let mut spec = spec.clone();
        spec["runner"] = json!(runner);
        spec
    };
    let registry = repository.images.url();
    for wrong in [
        format!("{registry}/acme/runner:v2"),
        format!("{registry}/acme/nobody"),
        "acme/runner:v1".to_owned(),
    ] {
        let reading = reader.read(&with(wrong.clone()), &known).await;
        assert!(
            matches!(reading.trouble, Some(Trouble::Misconfigured(_))),
            "{wrong}: {reading:?}"
        );
        assert_eq!(words(&reading), ["redis:latest unknown"]);
    }
    repository.put("redis", "1.0.0");
    let digest = runner("1").digest();
    let pinned = with(format!("{registry}/acme/runner@{digest}"));
    let reading = reader.read(&pinned, &[]).await;
    assert_eq!(found(&reading, "redis:latest").manifest_digest, digest);
    repository.images.stop();
    let reading = reader.read(&spec, &known).await;
    assert!(
        matches!(reading.trouble, Some(Trouble::Unreachable(_))),
        "{reading:?}"
    );
    assert_eq!(words(&reading), ["redis:latest unknown"]);
}

#[tokio::test]
async fn the_password_of_a_repository_is_shown_to_no_other_server() {
    let (mut repository, reader) = (Repository::start(&runner("1")).await, Reader::new());
    repository.put("redis", "1.0.0");
    let images = reader.proxy(&repository.images).await;
    let mut spec = repository.spec();
    spec["runner"] = json!(format!("{}/acme/runner:v1", images.url()));
    let wants = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
    let refusal = Fault::Answer(401, wants, String::new());
    let answer = Fault::Answer(200, Vec::new(), repository.index());
    repository.charts.calm();
    for fault in [refusal.clone(), answer] {
        repository.charts.fault(None, "/index.yaml", 1, fault);
    }
    let credentials = Credentials::Basic {
        username: "me".to_owned(),
        password: "secret".to_owned(),
    };
    let reading = reader.read_as(&spec, &[], credentials.clone()).await;
    assert_eq!(reading.trouble, None);
    assert!(repository.charts.seen()[1].authorization.is_some());
    let shown = || {
        images
            .seen()
            .iter()
            .any(|seen| seen.authorization.is_some())
    };
    assert!(!shown(), "{:?}", images.seen());

    repository.serve();
    images.fault(None, "/manifests/", usize::MAX, refusal);
    let reading = reader.read_as(&spec, &[], credentials).await;
    assert!(
        matches!(reading.trouble, Some(Trouble::AuthenticationFailed(_))),
        "{reading:?}"
    );
    assert!(!shown(), "{:?}", images.seen());
}
