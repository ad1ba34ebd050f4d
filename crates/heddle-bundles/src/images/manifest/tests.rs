//! Both families of manifests, and what is refused of them.

use serde_json::{Value, json};

use super::*;

fn descriptor(media_type: &str, platform: &str) -> Value {
    let mut value = json!({"mediaType": media_type, "digest": Digest::of(platform.as_bytes()).as_str(), "size": 1});
    let mut words = platform.split('/');
    if let (Some(os), Some(architecture)) = (words.next(), words.next()) {
        value["platform"] =
            json!({"os": os, "architecture": architecture, "variant": words.next()});
    }
    value
}

fn read(value: &Value, content_type: Option<&str>) -> Result<Document, String> {
    parse(value.to_string().as_bytes(), content_type)
}

#[test]
fn four_kinds_are_told_apart_by_their_own_word_then_by_the_header_then_by_content() {
    let image = json!({"schemaVersion": 2, "config": descriptor(OCI_CONFIG, ""), "layers": []});
    let index = json!({"schemaVersion": 2, "manifests": []});
    let with = |value: &Value, media_type: &str| {
        let mut value = value.clone();
        value["mediaType"] = json!(media_type);
        value
    };
    for (media_type, index_is_meant) in [
        (OCI_MANIFEST, false),
        (DOCKER_MANIFEST, false),
        (OCI_INDEX, true),
        (DOCKER_LIST, true),
    ] {
        let value = if index_is_meant { &index } else { &image };
        let is_index = |read: Result<Document, String>| matches!(read, Ok(Document::Index(_)));
        assert_eq!(
            is_index(read(&with(value, media_type), None)),
            index_is_meant
        );
        assert_eq!(
            is_index(read(value, Some(&format!("{media_type}; charset=utf-8")))),
            index_is_meant
        );
        assert_eq!(is_index(read(value, Some("text/plain"))), index_is_meant);
        assert!(ACCEPT.contains(media_type), "it is asked for");
    }
}

#[test]
fn what_cannot_be_an_image_says_why() {
    let check = |value: Value, why: &str| {
        let refused = read(&value, None).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    };
    check(json!({"schemaVersion": 1, "fsLayers": []}), "schema 1");
    check(json!({"schemaVersion": 2}), "no configuration");
    check(json!([]), "cannot be read");
    let config = json!({"mediaType": OCI_CONFIG, "digest": "sha256:../../etc/passwd", "size": 1});
    check(
        json!({"schemaVersion": 2, "config": config, "layers": []}),
        "not a SHA-256 digest",
    );
    let many = vec![descriptor(OCI_MANIFEST, ""); ENTRIES_MAX + 1];
    check(
        json!({"schemaVersion": 2, "manifests": many}),
        "more than 1024",
    );
}

#[test]
fn a_directory_names_more_images_than_an_image_has_machines_and_not_without_end() {
    let listing = |count: usize| {
        let entry = descriptor(OCI_MANIFEST, "");
        let value = json!({"schemaVersion": 2, "manifests": vec![entry; count]});
        parse_listing(value.to_string().as_bytes())
    };
    assert_eq!(listing(ENTRIES_MAX + 1).unwrap().len(), ENTRIES_MAX + 1);
    assert_eq!(
        listing(LISTING_ENTRIES_MAX).unwrap().len(),
        LISTING_ENTRIES_MAX
    );
    let refused = listing(LISTING_ENTRIES_MAX + 1).unwrap_err();
    assert!(refused.contains("more than 20000"), "{refused}");
    let image = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": descriptor(OCI_CONFIG, ""), "layers": []});
    let refused = parse_listing(image.to_string().as_bytes()).unwrap_err();
    assert!(refused.contains("no index"), "{refused}");
}

#[test]
fn the_entry_for_a_machine_is_found_among_others_and_attestations() {
    let platforms = [
        "unknown/unknown",
        "windows/amd64",
        "linux/arm64/v9",
        "linux/arm64/v8",
        "linux/amd64",
    ];
    let entries: Vec<Value> = platforms
        .iter()
        .map(|it| descriptor(OCI_MANIFEST, it))
        .collect();
    let Ok(Document::Index(entries)) =
        read(&json!({"schemaVersion": 2, "manifests": entries}), None)
    else {
        panic!("an index");
    };
    let chosen =
        |architecture| for_machine(&entries, architecture).map(|entry| entry.digest.clone());
    assert_eq!(chosen("amd64"), Some(Digest::of(b"linux/amd64")));
    assert_eq!(chosen("arm64"), Some(Digest::of(b"linux/arm64/v8")));
    assert_eq!(chosen("s390x"), None);
    assert_eq!(
        for_any_machine(&entries).unwrap().digest,
        Digest::of(b"windows/amd64")
    );
}

#[test]
fn layers_say_how_they_are_packed_or_are_refused() {
    let layer = |media_type: &str| {
        let raw: RawDescriptor = serde_json::from_value(descriptor(media_type, "")).unwrap();
        packing(&raw.check().unwrap())
    };
    assert_eq!(
        layer("application/vnd.oci.image.layer.v1.tar"),
        Ok(Packing::Plain)
    );
    assert_eq!(
        layer("application/vnd.docker.image.rootfs.diff.tar.gzip"),
        Ok(Packing::Gzip)
    );
    assert!(
        layer("application/vnd.oci.image.layer.v1.tar+zstd")
            .unwrap_err()
            .contains("gzip")
    );
    assert!(layer("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip").is_err());
}
