//! The store: what is kept, what is let go, and what neither a crash nor a liar can do to it.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A plain archive of files, in order.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, text.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const PLAIN: &str = "application/vnd.oci.image.layer.v1.tar";
const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

fn descriptor(media_type: &str, bytes: &[u8]) -> serde_json::Value {
    json!({"mediaType": media_type, "digest": Digest::of(bytes).as_str(), "size": bytes.len()})
}

/// An image of layers, each with its media type.
pub(crate) fn image_of(layers: &[(&str, Vec<u8>)]) -> Image {
    let config = json!({"config": {"Entrypoint": ["/bin/entrypoint"], "Cmd": null, "Env": ["PATH=/bin"],
        "WorkingDir": "/srv", "Labels": {"a": "b"}}});
    let config = Bytes::from(config.to_string());
    let manifest = json!({"schemaVersion": 2, "mediaType": manifest::OCI_MANIFEST,
        "config": descriptor(manifest::OCI_CONFIG, &config),
        "layers": layers.iter().map(|(media_type, bytes)| descriptor(media_type, bytes)).collect::<Vec<_>>()});
    Image {
        manifest: manifest.to_string().into(),
        config,
        layers: layers
            .iter()
            .map(|(_, bytes)| bytes.clone().into())
            .collect(),
    }
}

fn image(files: &[(&str, &str)]) -> Image {
    image_of(&[(GZIP, gzip(&archive(files)))])
}

fn keep(store: &Store, image: &Image) -> Result<String, Error> {
    let hold = store.hold();
    let digest = Digest::of(&image.manifest);
    hold.put(&digest, &image.manifest)?;
    for blob in image.layers.iter().chain([&image.config]) {
        hold.put(&Digest::of(blob), blob)?;
    }
    hold.seal(&digest)?;
    Ok(digest.to_string())
}

fn store(limits: Limits) -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), limits).unwrap();
    (dir, store)
}

fn count(dir: &Path, part: &str) -> usize {
    tree::names(&dir.join(part)).unwrap().len()
}

#[test]
fn what_is_kept_is_there_after_a_restart_and_can_be_unpacked() {
    let (dir, store) = store(Limits::default());
    let layers = [
        (PLAIN, archive(&[("etc/motd", "one"), ("etc/gone", "x")])),
        (
            GZIP,
            gzip(&archive(&[("etc/motd", "two"), ("etc/.wh.gone", "")])),
        ),
    ];
    let digest = keep(&store, &image_of(&layers)).unwrap();
    drop(store);
    let store = Store::open(dir.path(), Limits::default()).unwrap();
    assert!(store.is_kept(&digest) && !store.is_kept("sha256:00"));
    let config = store.config(&digest).unwrap();
    assert_eq!(config.entrypoint, ["/bin/entrypoint"]);
    assert_eq!((config.cmd.len(), config.working_dir.as_str()), (0, "/srv"));
    assert_eq!(config.labels["a"], "b");
    let root = store.unpack(&digest).unwrap();
    assert_eq!(std::fs::read(root.join("etc/motd")).unwrap(), b"two");
    assert!(!root.join("etc/gone").exists());
    assert_eq!(
        store.unpack(&digest).unwrap(),
        root,
        "the second time it is there"
    );
    let (used, _) = store.usage();
    let reopened = Store::open(dir.path(), Limits::default()).unwrap();
    assert_eq!(reopened.usage().0, used, "what is counted is what is there");
}

#[test]
fn an_index_leads_to_the_image_for_this_machine() {
    let (_dir, store) = store(Limits::default());
    let image = image(&[("a", "1")]);
    let mut entry = descriptor(manifest::OCI_MANIFEST, &image.manifest);
    entry["platform"] = json!({"os": "linux", "architecture": manifest::architecture()});
    let mut other = descriptor(manifest::OCI_MANIFEST, b"elsewhere");
    other["platform"] = json!({"os": "linux", "architecture": "s390x"});
    let index =
        json!({"schemaVersion": 2, "mediaType": manifest::OCI_INDEX, "manifests": [other, entry]})
            .to_string();
    let inner = keep(&store, &image).unwrap();
    let digest = Digest::of(index.as_bytes());
    let hold = store.hold();
    hold.put(&digest, index.as_bytes()).unwrap();
    hold.seal(&digest).unwrap();
    drop(hold);
    assert!(store.unpack(digest.as_str()).unwrap().join("a").is_file());
    store.keep_only(&[digest.to_string()]).unwrap();
    assert!(!store.is_kept(&inner) && store.is_kept(digest.as_str()));
    assert!(
        store.config(digest.as_str()).is_ok(),
        "what the index needs stays"
    );
}

#[test]
fn only_what_is_needed_stays() {
    let (dir, store) = store(Limits::default());
    let shared = (GZIP, gzip(&archive(&[("shared", "1")])));
    let one = keep(
        &store,
        &image_of(&[shared.clone(), (GZIP, gzip(&archive(&[("one", "1")])))]),
    )
    .unwrap();
    let two = keep(
        &store,
        &image_of(&[shared, (GZIP, gzip(&archive(&[("two", "1")])))]),
    )
    .unwrap();
    store.unpack(&one).unwrap();
    let root = store.unpack(&two).unwrap();
    assert_eq!(
        (count(dir.path(), BLOBS), count(dir.path(), ROOTS)),
        (7 - 1, 2),
        "one configuration, one shared layer"
    );
    store.keep_only(std::slice::from_ref(&two)).unwrap();
    assert!(!store.is_kept(&one) && store.is_kept(&two));
    assert!(root.join("shared").is_file());
    assert_eq!(
        (
            count(dir.path(), BLOBS),
            count(dir.path(), ROOTS),
            count(dir.path(), TMP)
        ),
        (4, 1, 0)
    );
    assert!(matches!(store.unpack(&one), Err(Error::NotKept(_))));
    store.keep_only(&[]).unwrap();
    assert_eq!(
        (
            store.usage().0,
            count(dir.path(), BLOBS),
            count(dir.path(), KEPT)
        ),
        (0, 0, 0)
    );
}

#[test]
fn what_is_being_fetched_is_not_let_go() {
    let (_dir, store) = store(Limits::default());
    let image = image(&[("a", "1")]);
    let hold = store.hold();
    for blob in image.layers.iter().chain([&image.config, &image.manifest]) {
        hold.put(&Digest::of(blob), blob).unwrap();
        store.keep_only(&[]).unwrap();
    }
    let digest = Digest::of(&image.manifest);
    hold.seal(&digest).unwrap();
    drop(hold);
    assert!(store.unpack(digest.as_str()).is_ok());
}

#[test]
fn content_that_is_not_what_its_digest_says_never_gets_that_name() {
    let (dir, store) = store(Limits::default());
    let hold = store.hold();
    let digest = Digest::of(b"right");
    for wrong in ["wrong", "righ", "rightly"] {
        let mut writer = hold.writer(&digest, 5).unwrap();
        let ended = writer
            .write(wrong.as_bytes())
            .and_then(|()| writer.finish());
        assert!(matches!(ended, Err(Error::Mismatch { .. })), "{wrong}");
        assert!(!hold.has(&digest));
    }
    assert_eq!(
        (
            store.usage().0,
            count(dir.path(), BLOBS),
            count(dir.path(), TMP)
        ),
        (0, 0, 0)
    );
    assert!(
        hold.seal(&digest).is_err(),
        "an image without its parts is not kept"
    );
}

#[test]
fn what_a_crash_left_is_removed_and_a_half_image_is_not_kept() {
    let (dir, store) = store(Limits::default());
    let image = image(&[("a", "1")]);
    let digest = keep(&store, &image).unwrap();
    std::fs::write(dir.path().join(TMP).join("17"), "half").unwrap();
    std::fs::create_dir(dir.path().join(TMP).join("18")).unwrap();
    std::fs::remove_file(store.blob_path(&Digest::of(&image.config))).unwrap();
    drop(store);
    let store = Store::open(dir.path(), Limits::default()).unwrap();
    assert_eq!(count(dir.path(), TMP), 0);
    assert!(!store.is_kept(&digest));
    assert_eq!(
        keep(&store, &image).unwrap(),
        digest,
        "fetched again, it is kept"
    );
    assert!(store.is_kept(&digest));
}

#[test]
fn sizes_are_bounded_for_blobs_images_and_the_whole() {
    let zeroes = "\0".repeat(1 << 20);
    let bomb = image(&[("zeroes", &zeroes)]);
    let default = Limits::default();
    let refused = |limits: Limits| {
        let (dir, store) = store(limits);
        let ended = keep(&store, &bomb).and_then(|digest| store.unpack(&digest));
        assert_eq!(count(dir.path(), ROOTS), 0);
        assert_eq!(count(dir.path(), TMP), 0, "nothing half is left");
        ended.unwrap_err()
    };
    let small = |max| Limits {
        blob_bytes_max: max,
        ..default
    };
    assert!(matches!(refused(small(100)), Error::Refused(_)));
    let image = |max| Limits {
        image_bytes_max: max,
        ..default
    };
    let text = refused(image(100_000)).to_string();
    assert!(text.contains("larger unpacked"), "{text}");
    let full = refused(Limits {
        total_bytes_max: 1000,
        ..default
    });
    assert!(
        matches!(full, Error::Full { .. }),
        "no room for the blobs: {full}"
    );
    let full = refused(Limits {
        total_bytes_max: 100_000,
        ..default
    });
    assert!(
        matches!(full, Error::Full { max: 100_000, .. }),
        "no room to unpack: {full}"
    );
    let text = refused(Limits {
        entries_max: 0,
        ..default
    })
    .to_string();
    assert!(text.contains("more files"), "{text}");
}
