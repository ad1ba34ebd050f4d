//! The instruments themselves: images that are sound, a log that is counted right, and goals where they belong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heddle_bundles::images::Digest;
use heddle_bundles::images::manifest::{self, Document};
use serde_json::Value;

use super::super::report::Report;
use super::docker_registry::{Tally, config_text};
use super::images::Images;
use super::sync::{Pass, middle, repeated_rows};
use super::{Bench, NO_BUSYBOX, NO_REGISTRY, program};
use heddle::failure;
use heddle::terminal::Screen;
use heddle::wire::World;

const LOG: &str = r#"127.0.0.1 - - [16/Nov/2026:10:52:52 +0000] "GET /v2/_catalog?n=100 HTTP/1.1" 200 20 "" "heddle"
127.0.0.1 - - [16/Nov/2026:10:52:52 +0000] "HEAD /v2/a/b/manifests/latest HTTP/1.1" 200 96 "" "heddle"
127.0.0.1 - - [16/Nov/2026:10:52:52 +0000] "GET /v2/a/b/manifests/latest HTTP/1.1" 200 96 "" "heddle"
127.0.0.1 - - [16/Nov/2026:10:52:52 +0000] "GET /v2/a/b/manifests/latest HTTP/1.1" 304 0 "" "heddle"
127.0.0.1 - - [16/Nov/2026:10:52:53 +0000] "GET /v2/a/b/blobs/sha256:12 HTTP/1.1" 200 800 "" "heddle"
time="2026-11-16T10:52:52Z" level=warning msg="something else"
127.0.0.1 - - [16/Nov/2026:10:52:53 +0000] "GET /v2/a/b/blobs/sha256:13 HTTP/1.1" 200 8"#;

#[test]
fn only_what_a_registry_sent_was_downloaded() {
    let expected = Tally {
        requests: 5,
        manifests: 1,
        blobs: 1,
    };
    assert_eq!(Tally::of(LOG), expected);
    assert_eq!(Tally::of(""), Tally::default());
}

#[test]
fn a_registry_is_told_where_to_listen_and_what_to_keep() {
    let text = config_text(([127, 0, 0, 1], 5000).into(), Path::new("a dir"));
    insta::assert_snapshot!(text, @r#"
    version: 0.1
    log: {level: error}
    http: {addr: "127.0.0.1:5000"}
    storage:
      cache: {blobdescriptor: inmemory}
      filesystem: {rootdirectory: "a dir"}
    "#);
}

#[test]
fn images_share_a_layer_and_nothing_else_and_their_descriptions_can_be_offered() {
    let dir = tempfile::tempdir().unwrap();
    let images = Images::pack(&World::real(), dir.path()).unwrap();
    let (mut configs, mut names) = (BTreeSet::new(), BTreeSet::new());
    for number in [0, 1, 4_999] {
        let image = images.one(number).unwrap();
        let Document::Image(document) = manifest::parse(&image.manifest, None).unwrap() else {
            panic!("image {number} is none");
        };
        assert_eq!(document.config.digest, Digest::of(&image.config));
        assert_eq!(document.config.size, image.config.len() as u64);
        assert_eq!(document.layers.len(), 1);
        assert_eq!(document.layers[0].digest, Digest::of(&image.layers[0]));
        configs.insert(document.config.digest.to_string());
        names.insert(described(&image.config));
    }
    assert_eq!(configs.len(), 3);
    let expected = ["bundle-00000", "bundle-00001", "bundle-04999"];
    assert_eq!(names, expected.map(str::to_owned).into());
}

/// The name in the description that an image has on it.
fn described(config: &[u8]) -> String {
    use base64::Engine as _;

    let config: Value = serde_json::from_slice(config).unwrap();
    let label = config["config"]["Labels"]["io.heddle.bundle.spec"].as_str();
    let text = base64::engine::general_purpose::STANDARD.decode(label.unwrap());
    let text = String::from_utf8(text.unwrap()).unwrap();
    heddle_api::description::read(&text).unwrap().1.name
}

fn pass(millis: u64, manifests: u64) -> Pass {
    Pass {
        took: Duration::from_millis(millis),
        cpu: Duration::from_millis(millis),
        asked: Tally {
            requests: 7,
            manifests,
            blobs: 0,
        },
    }
}

#[test]
fn one_download_in_any_repetition_is_not_forgotten() {
    let middle = middle(vec![pass(30, 0), pass(10, 1), pass(20, 0)]);
    assert_eq!(middle, pass(20, 1));
}

#[test]
fn nothing_may_be_downloaded_again_and_five_hundred_images_have_a_time() {
    let goals = |count, pass: &Pass| {
        let report = Report {
            rows: repeated_rows(count, pass),
            ..Report::default()
        };
        let rows = report.to_json()["measures"].take();
        let met = |row: &Value| row["met"].as_bool();
        rows.as_array().unwrap().iter().map(met).collect::<Vec<_>>()
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(goals(500, &pass(1_999, 0)), [yes, None, yes, yes, None]);
    assert_eq!(goals(500, &pass(2_001, 1)), [no, None, no, yes, None]);
    assert_eq!(goals(5_000, &pass(9_000, 0)), [None, None, yes, yes, None]);
}

#[test]
fn a_program_that_was_named_has_to_be_there() {
    let named = PathBuf::from("no/such/program");
    let refused = program(Some(named), "docker-registry").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "docker-registry is said to be no/such/program, which is no file"
    );
    assert_eq!(failure::exit_code(&refused.into()), 2);
    assert_eq!(program(None, "heddle-has-no-such-program").unwrap(), None);
}

#[test]
fn what_is_missing_is_a_note_unless_it_was_asked_for() {
    let world = World::real();
    for (asked, missing) in [(false, NO_REGISTRY), (true, NO_BUSYBOX)] {
        let screen = Screen::default();
        let mut terminal = screen.terminal();
        let mut bench = Bench {
            world: &world,
            terminal: &mut terminal,
            dir: PathBuf::new(),
            images: vec![1],
            launches: 1,
            asked,
            report: Report::default(),
        };
        let left_out = bench.left_out(missing);
        assert_eq!(left_out.is_err(), asked);
        assert_eq!(screen.err().contains(missing), !asked);
    }
}
