#![expect(
    clippy::disallowed_methods,
    reason = "an author's files: no fault is injected there"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use flate2::read::GzDecoder;

use super::*;

/// A new bundle whose busybox is any file.
fn bundle() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("bundle");
    init(&bundle, "first").unwrap();
    fs::write(directory.path().join("busybox"), "a program").unwrap();
    fs::set_permissions(
        directory.path().join("busybox"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let settings = r#"{"include": [{"from": "../busybox", "to": "/bin/busybox"}]}"#;
    fs::write(bundle.join("heddle-bundle.yaml"), settings).unwrap();
    (directory, bundle)
}

/// Path, kind, mode and content of everything in the only layer, in its order.
fn listing(image: &Image) -> Vec<String> {
    let mut archive = tar::Archive::new(GzDecoder::new(&image.layers[0][..]));
    let mut lines = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        assert_eq!(
            (
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mtime().unwrap()
            ),
            (0, 0, 0)
        );
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let link = entry.link_name().unwrap();
        lines.push(format!(
            "{} {:o} {}",
            entry.path().unwrap().display(),
            header.mode().unwrap(),
            link.map_or_else(
                || content.len().to_string(),
                |link| format!("-> {}", link.display())
            )
        ));
    }
    lines
}

#[test]
fn an_image_holds_what_the_directory_says_and_nothing_about_this_machine() {
    let (_directory, bundle) = bundle();
    let image = image(&bundle).unwrap();
    let entrypoint = fs::metadata(bundle.join("rootfs/bin/entrypoint"))
        .unwrap()
        .len();
    let listed = listing(&image);
    assert_eq!(
        listed[1..],
        [
            "bin/busybox 755 9".to_owned(),
            "bin/cat 777 -> busybox".to_owned(),
            format!("bin/entrypoint 755 {entrypoint}"),
            "bin/sh 777 -> busybox".to_owned(),
        ]
    );
    assert_eq!(listed[0].replace('/', ""), "bin 755 0");
    let config: Value = serde_json::from_slice(&image.config).unwrap();
    let labels: BTreeMap<String, String> =
        serde_json::from_value(config["config"]["Labels"].clone()).unwrap();
    for label in LABELS {
        let text = STANDARD.decode(&labels[label]).unwrap();
        assert_eq!(text, fs::read(bundle.join("bundle.yaml")).unwrap());
    }
    assert_eq!(labels[VERSION_LABEL], "0.1.0");
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/entrypoint"]));
}

#[test]
fn the_manifest_names_config_and_layer_by_their_digests() {
    let (_directory, bundle) = bundle();
    let image = image(&bundle).unwrap();
    let manifest: Value = serde_json::from_slice(&image.manifest).unwrap();
    assert_eq!(manifest["config"]["digest"], digest(&image.config));
    assert_eq!(manifest["layers"][0]["digest"], digest(&image.layers[0]));
    assert_eq!(manifest["layers"][0]["size"], image.layers[0].len());
    let mut tar = Vec::new();
    GzDecoder::new(&image.layers[0][..])
        .read_to_end(&mut tar)
        .unwrap();
    let config: Value = serde_json::from_slice(&image.config).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"], json!([digest(&tar)]));
    assert_eq!(image.digest().as_str(), digest(&image.manifest));
}

#[test]
fn the_same_files_give_the_same_image_whatever_their_times_and_modes() {
    let (_one, first) = bundle();
    let (_two, second) = bundle();
    let file = second.join("rootfs/bin/entrypoint");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o710)).unwrap();
    fs::File::open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(image(&first).unwrap(), image(&second).unwrap());
    fs::write(file, "#!/bin/sh\n").unwrap();
    assert_ne!(
        image(&first).unwrap().digest(),
        image(&second).unwrap().digest()
    );
}

#[test]
fn long_names_are_kept_and_links_are_not_followed() {
    let (directory, bundle) = bundle();
    let long = "x".repeat(120);
    fs::create_dir_all(bundle.join("rootfs").join(&long)).unwrap();
    fs::write(bundle.join("rootfs").join(&long).join(&long), "far").unwrap();
    symlink(directory.path(), bundle.join("rootfs/outside")).unwrap();
    let listed = listing(&image(&bundle).unwrap());
    assert!(
        listed.contains(&format!("{long}/{long} 644 3")),
        "{listed:?}"
    );
    assert!(
        listed
            .iter()
            .any(|line| line.starts_with("outside 777 -> ")),
        "{listed:?}"
    );
    assert!(!listed.iter().any(|line| line.starts_with("outside/")));
}

#[test]
fn what_cannot_become_an_image_says_why() {
    let check = |change: fn(&Path), expected: &str| {
        let (_directory, bundle) = bundle();
        change(&bundle);
        let error = image(&bundle).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let findings = lint(&bundle);
        assert!(
            findings.iter().any(|f| f.severity == Severity::Error),
            "{expected}: {findings:?}"
        );
    };
    check(
        |b| fs::remove_file(b.join("bundle.yaml")).unwrap(),
        "no bundle.yaml",
    );
    check(
        |b| fs::write(b.join("bundle.yaml"), "name: [").unwrap(),
        "bundle.yaml",
    );
    check(
        |b| fs::remove_dir_all(b.join("rootfs")).unwrap(),
        "no rootfs",
    );
    check(
        |b| fs::write(b.join("heddle-bundle.yaml"), r#"{"includes": []}"#).unwrap(),
        "heddle-bundle.yaml",
    );
    check(
        |b| {
            fs::write(
                b.join("heddle-bundle.yaml"),
                r#"{"include": [{"from": "x", "to": "../x"}]}"#,
            )
            .unwrap()
        },
        "leads out",
    );
    check(
        |b| {
            fs::write(
                b.join("heddle-bundle.yaml"),
                r#"{"include": [{"from": "gone", "to": "x"}]}"#,
            )
            .unwrap()
        },
        "gone",
    );
}

#[test]
fn a_new_bundle_has_nothing_to_be_said_about() {
    let (_directory, bundle) = bundle();
    assert_eq!(lint(&bundle), []);
    assert!(init(&bundle, "again").is_err(), "it is not empty");
    assert!(init(&bundle.join("x"), "No Name").is_err());
}

#[test]
fn lint_finds_what_would_only_show_when_it_runs() {
    let (_directory, bundle) = bundle();
    let entrypoint = bundle.join("rootfs/bin/entrypoint");
    fs::set_permissions(&entrypoint, fs::Permissions::from_mode(0o644)).unwrap();
    symlink("/etc", bundle.join("rootfs/data")).unwrap();
    fs::write(bundle.join("apb.yml"), "").unwrap();
    let text = fs::read_to_string(bundle.join("bundle.yaml")).unwrap();
    fs::write(bundle.join("bundle.yaml"), text.replace("0.1.0", "latest")).unwrap();
    let findings: Vec<String> = lint(&bundle).iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 4, "{findings:#?}");
    assert!(findings[0].starts_with("error: rootfs/bin/entrypoint: "));
    assert!(findings[1].starts_with("error: rootfs/data: "));
    assert!(findings[2].starts_with("warning: apb.yml: "));
    assert!(findings[3].starts_with("warning: bundle.yaml: bundleVersion latest"));
    fs::remove_file(entrypoint).unwrap();
    assert!(lint(&bundle)[0].message.contains("missing"));
}
