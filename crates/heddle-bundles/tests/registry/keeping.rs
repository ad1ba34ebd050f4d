//! Keeping images: what was pinned can be unpacked when the registry has forgotten it.

use std::sync::Arc;

use heddle_api::bundle_source::{Fetch, FetchError};
use heddle_api::evidence::Credentials;
use serde_json::{Value, json};

use super::machine::{Fault, Reader, Registry, known, registry_spec, words};
use super::made::{Family, bundle, bundle_of, index};

pub(crate) fn fetch(spec: &Value, repository: &str, digest: &str) -> Fetch {
    Fetch {
        registry: "r".to_owned(),
        spec: Arc::new(registry_spec(spec)),
        credentials: Credentials::None,
        repository: repository.to_owned(),
        location: format!("anywhere.example/{repository}"),
        manifest_digest: digest.to_owned(),
    }
}

#[tokio::test]
async fn a_kept_image_survives_a_new_tag_garbage_collection_and_the_registry() {
    let (mut registry, reader) = (Registry::start().await, Reader::new());
    let (old, new) = (bundle("hello", "1.0.0"), bundle("hello", "2.0.0"));
    let spec = json!({"url": registry.url()});
    registry.put("org/hello", "latest", &old).await;
    reader
        .registries
        .keep(fetch(&spec, "org/hello", &old.digest()))
        .await
        .unwrap();
    registry.put("org/hello", "latest", &new).await;
    registry.collect_garbage().await;
    let reading = reader
        .read(&spec, &[known("org/hello:latest", &old.digest())])
        .await;
    assert_eq!(words(&reading), ["org/hello:latest present 2.0.0"]);
    let other = Reader::new();
    let late = other
        .registries
        .keep(fetch(&spec, "org/hello", &old.digest()))
        .await
        .unwrap_err();
    assert!(
        matches!(&late, FetchError::Unavailable(why) if why.contains("MANIFEST_UNKNOWN")),
        "{late:?}"
    );
    registry.stop();
    let root = reader.store.unpack(&old.digest()).unwrap();
    assert_eq!(
        std::fs::read_to_string(root.join("bin/entrypoint")).unwrap(),
        "1.0.0"
    );
    reader
        .registries
        .keep(fetch(&spec, "org/hello", &old.digest()))
        .await
        .unwrap();
}

#[tokio::test]
async fn every_kind_of_image_is_kept_whole() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    for family in [Family::Oci, Family::Docker] {
        let plain = bundle_of(family, "hello", "1.0.0");
        let both = index(family, plain.clone());
        for made in [plain, both] {
            registry.put("org/hello", "latest", &made).await;
            let fetch = fetch(&json!({"url": registry.url()}), "org/hello", &made.digest());
            assert!(!reader.store.is_kept(&made.digest()));
            reader.registries.keep(fetch).await.unwrap();
            assert!(reader.store.is_kept(&made.digest()), "{family:?}");
            assert!(
                reader
                    .store
                    .unpack(&made.digest())
                    .unwrap()
                    .join("bin/entrypoint")
                    .is_file()
            );
            assert!(
                reader
                    .store
                    .config(&made.digest())
                    .unwrap()
                    .labels
                    .contains_key("com.redhat.apb.spec")
            );
        }
    }
}

#[tokio::test]
async fn content_that_was_changed_or_cut_on_its_way_is_not_kept() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let made = bundle("hello", "1.0.0");
    registry.put("org/hello", "latest", &made).await;
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    let other = String::from_utf8(bundle("evil", "6.6.6").manifest.to_vec()).unwrap();
    for (path, fault, mismatch) in [
        ("/manifests/", Fault::Swap(other), true),
        ("/manifests/", Fault::Truncate, false),
        ("/blobs/", Fault::Swap("evil".to_owned()), true),
        ("/blobs/", Fault::Swap("x".repeat(100_000)), true),
        ("/blobs/", Fault::Truncate, false),
        ("/blobs/", Fault::HangUp, false),
    ] {
        proxy.fault(None, path, usize::MAX, fault.clone());
        let refused = reader
            .registries
            .keep(fetch(&spec, "org/hello", &made.digest()))
            .await
            .unwrap_err();
        assert_eq!(
            matches!(refused, FetchError::Mismatch(_)),
            mismatch,
            "{path} {fault:?}: {refused}"
        );
        assert!(!reader.store.is_kept(&made.digest()));
        proxy.calm();
    }
    reader
        .registries
        .keep(fetch(&spec, "org/hello", &made.digest()))
        .await
        .unwrap();
    assert!(reader.store.unpack(&made.digest()).is_ok());
}
