//! What is pushed, replaced and removed.

use bytes::Bytes;
use heddle_rt::MemoryVfs;

use super::*;

fn image(version: &str) -> Image {
    let text = format!(
        "version: 1.0\nname: hello\ndescription: hi\nbundleVersion: {version}\nplans:\n- name: default\n  description: x\n"
    );
    let spec = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let config = json!({"config": {"Labels": {"io.heddle.bundle.spec": spec}}}).to_string();
    let layer = format!("layer of {version}");
    let descriptor = |media_type: &str, text: &str| json!({"mediaType": media_type, "digest": Digest::of(text.as_bytes()).as_str(), "size": text.len()});
    let manifest = json!({"schemaVersion": 2, "mediaType": manifest::OCI_MANIFEST,
        "config": descriptor(manifest::OCI_CONFIG, &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)]});
    Image {
        manifest: manifest.to_string().into(),
        config: config.into(),
        layers: vec![Bytes::from(layer)],
    }
}

fn pushed() -> (Arc<dyn Vfs>, PushStore) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::default());
    let pushed = PushStore::open(vfs.clone(), Path::new("/pushed")).unwrap();
    (vfs, pushed)
}

fn named(pushed: &PushStore) -> Vec<String> {
    pushed
        .entries()
        .unwrap()
        .iter()
        .filter_map(image_name)
        .map(|name| name.to_string())
        .collect()
}

#[test]
fn a_push_replaces_what_had_the_name_and_keeps_it_for_a_while() {
    let (vfs, pushed) = pushed();
    let blobs = || vfs.list(Path::new("/pushed/blobs/sha256")).unwrap().len();
    let first = pushed.put("me/hello", "latest", &image("1.0.0")).unwrap();
    assert_eq!(first, Digest::of(&image("1.0.0").manifest).as_str());
    pushed.put("me/other", "latest", &image("1.0.0")).unwrap();
    assert_eq!(
        (named(&pushed).len(), blobs()),
        (2, 3),
        "the same content is there once"
    );
    for number in 1..=9 {
        pushed
            .put("me/hello", "latest", &image(&format!("1.0.{number}")))
            .unwrap();
    }
    assert_eq!(named(&pushed), ["me/other:latest", "me/hello:latest"]);
    assert_eq!(
        blobs(),
        3 * (1 + REPLACED_MAX + 1),
        "the current one, those it replaced, and the other name"
    );
    let again = PushStore::open(vfs.clone(), Path::new("/pushed")).unwrap();
    assert!(
        again.remove("me/hello", "latest").unwrap() && !again.remove("me/hello", "latest").unwrap()
    );
    assert_eq!(named(&again), ["me/other:latest"]);
}

#[test]
fn what_could_not_be_offered_is_refused_at_once() {
    let (_vfs, pushed) = pushed();
    let refused =
        |repository: &str, tag: &str, image: &Image| match pushed.put(repository, tag, image) {
            Err(Error::Invalid(why)) => why,
            other => panic!("{other:?}"),
        };
    let good = image("1.0.0");
    assert!(refused("../x", "latest", &good).contains("../x"));
    assert!(refused("x", "a b", &good).contains("a b"));
    let swapped = Image {
        layers: vec![Bytes::from_static(b"other")],
        ..good.clone()
    };
    assert!(refused("x", "latest", &swapped).contains("does not describe"));
    let index = Image {
        manifest: index_of(&[]).into(),
        ..good
    };
    assert!(refused("x", "latest", &index).contains("index"));
    assert!(named(&pushed).is_empty());
}
