//! Every row of the evidence table, against the real registry.

use heddle_api::evidence::{ImageEvidence, Trouble};
use http::Method;
use serde_json::{Value, json};

use super::machine::{Fault, Proxy, Reader, Registry, known, learned, words};
use super::made::{Family, bundle, bundle_of, index, labelled, layer};

/// A registry with two bundles, of which the first is in trouble and the second tells that the others are not.
async fn stage() -> (Registry, Reader, Proxy, Value) {
    let (registry, reader) = (Registry::start().await, Reader::new());
    registry
        .put("org/hello", "latest", &bundle("hello", "1.0.0"))
        .await;
    registry
        .put("org/other", "latest", &bundle("other", "1.0.0"))
        .await;
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    (registry, reader, proxy, spec)
}

#[tokio::test]
async fn four_kinds_of_images_are_present_and_then_unchanged_for_one_question_each() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    for (name, family) in [("oci", Family::Oci), ("docker", Family::Docker)] {
        let plain = bundle_of(family, name, "1.0.0");
        registry.put(&format!("org/{name}"), "latest", &plain).await;
        registry
            .put(
                &format!("org/{name}-index"),
                "latest",
                &index(family, plain),
            )
            .await;
    }
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    let first = reader.read(&spec, &[]).await;
    assert_eq!(first.trouble, None);
    let present = ["org/docker-index", "org/docker", "org/oci-index", "org/oci"];
    assert_eq!(
        words(&first),
        present.map(|name| format!("{name}:latest present 1.0.0"))
    );
    for sighting in &first.sightings {
        let ImageEvidence::Present(found) = &sighting.verdict else {
            panic!("{sighting:?}")
        };
        assert_eq!(
            found.location,
            format!("127.0.0.1:{}/{}", proxy.port, sighting.image.repository)
        );
    }
    proxy.calm();
    let second = reader.read(&spec, &learned(&first)).await;
    assert_eq!(
        words(&second),
        present.map(|name| format!("{name}:latest unchanged"))
    );
    let gets = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.method == Method::GET)
        .map(|seen| seen.path);
    assert_eq!(gets.collect::<Vec<_>>(), ["/v2/_catalog?n=100"]);
    assert_eq!(second.requests, 5);
}

#[tokio::test]
async fn a_tag_that_is_gone_is_absent_although_its_repository_is_still_listed() {
    let (registry, reader, _proxy, spec) = stage().await;
    let digest = bundle("hello", "1.0.0").digest();
    registry.delete("org/hello", &digest).await;
    let known = [
        known("org/hello:latest", &digest),
        known("org/never:latest", ""),
    ];
    let reading = reader.read(&spec, &known).await;
    assert_eq!(reading.trouble, None);
    assert_eq!(
        words(&reading),
        [
            "org/hello:latest absent TagRemoved",
            "org/never:latest absent RemovedFromRegistry",
            "org/other:latest present 1.0.0"
        ]
    );
}

#[tokio::test]
async fn no_answer_but_a_registrys_own_word_proves_absence() {
    let (_registry, reader, proxy, spec) = stage().await;
    let digest = bundle("hello", "1.0.0").digest();
    let known = [
        known("org/hello:latest", &digest),
        known("org/other:latest", ""),
    ];
    let manifest = "/v2/org/hello/manifests/latest";
    let answer = |status, body: &str| Fault::Answer(status, Vec::new(), body.to_owned());
    let envelope = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
    let mut faults = vec![
        ("404 of a proxy", answer(404, "404 page not found")),
        ("404 of a web server", answer(404, "<html>not here</html>")),
        (
            "404 with other errors",
            answer(404, r#"{"errors":[{"code":"DENIED"}]}"#),
        ),
        ("hangs up", Fault::HangUp),
        ("410 with the right words", answer(410, envelope)),
    ];
    for status in [400, 401, 403, 408, 500] {
        faults.push(("a status", answer(status, envelope)));
    }
    for (name, fault) in faults {
        proxy.fault(None, manifest, usize::MAX, fault.clone());
        let reading = reader.read(&spec, &known).await;
        let expected = ["org/hello:latest unknown", "org/other:latest present 1.0.0"];
        assert_eq!(words(&reading), expected, "{name}: {fault:?}");
        assert_eq!(
            reading.trouble, None,
            "{name}: one image is not the registry"
        );
        proxy.calm();
    }
    proxy.fault(None, manifest, usize::MAX, answer(404, envelope));
    let reading = reader.read(&spec, &known).await;
    assert_eq!(
        words(&reading)[0],
        "org/hello:latest absent TagRemoved",
        "only this one proves it"
    );
}

#[tokio::test]
async fn a_body_that_is_cut_or_is_not_what_its_digest_says_proves_nothing() {
    let (registry, reader, proxy, spec) = stage().await;
    // All of the other image is there, so that nothing but its digest gives it away.
    let evil = bundle("evil", "6.6.6");
    registry.put("org/hello", "evil", &evil).await;
    let known = [
        known("org/hello:latest", "sha256:00"),
        known("org/other:latest", ""),
    ];
    let other = String::from_utf8(evil.manifest.to_vec()).unwrap();
    for (path, fault) in [
        ("/v2/org/hello/manifests/latest", Fault::Truncate),
        ("/v2/org/hello/manifests/latest", Fault::Swap(other)),
        (
            "/v2/org/hello/manifests/latest",
            Fault::Swap("{".to_owned()),
        ),
        ("/v2/org/hello/blobs/", Fault::Truncate),
        ("/v2/org/hello/blobs/", Fault::Swap("{}".to_owned())),
        (
            "/v2/org/hello/blobs/",
            Fault::Answer(
                404,
                Vec::new(),
                r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#.to_owned(),
            ),
        ),
    ] {
        proxy.fault(Some(Method::GET), path, usize::MAX, fault.clone());
        let reading = reader.read(&spec, &known).await;
        assert_eq!(
            words(&reading),
            ["org/hello:latest unknown", "org/other:latest present 1.0.0"],
            "{path} {fault:?}"
        );
        proxy.calm();
    }
}

#[tokio::test]
async fn a_registry_that_denies_an_image_because_of_its_kind_proves_nothing() {
    let (_registry, reader, proxy, spec) = stage().await;
    // Debian's registry says 404 MANIFEST_UNKNOWN for an OCI image that nobody asked for by kind.
    proxy.fault(
        None,
        "/v2/org/hello/manifests/latest",
        usize::MAX,
        Fault::WithoutAccept,
    );
    let known = [known("org/hello:latest", "sha256:00")];
    let reading = reader.read(&spec, &known).await;
    assert_eq!(words(&reading)[0], "org/hello:latest unknown");
}

#[tokio::test]
async fn an_image_that_is_no_bundle_any_more_is_absent_and_a_bad_description_is_rejected() {
    let (registry, reader, proxy, spec) = stage().await;
    let plain = labelled(Family::Oci, &json!({}), layer("a", "1"));
    registry.put("org/hello", "latest", &plain).await;
    registry.put("org/stranger", "latest", &plain).await;
    let bad = labelled(
        Family::Docker,
        &json!({"com.redhat.apb.spec": "bm90OiBhIGJ1bmRsZQ=="}),
        layer("a", "2"),
    );
    registry.put("org/other", "latest", &bad).await;
    let before = [
        known("org/hello:latest", "sha256:00"),
        known("org/other:latest", "sha256:00"),
    ];
    for _ in 0..2 {
        let reading = reader.read(&spec, &before).await;
        assert_eq!(
            words(&reading),
            [
                "org/hello:latest absent NotABundle",
                "org/other:latest rejected"
            ]
        );
        let other = reading
            .sightings
            .iter()
            .find(|it| it.image.repository == "org/other")
            .unwrap();
        assert!(
            matches!(&other.verdict, ImageEvidence::Rejected { digest, .. } if *digest == bad.digest()),
            "{other:?}"
        );
    }
    proxy.calm();
    let known = [known("org/other:latest", &bad.digest())];
    let reading = reader.read(&spec, &known).await;
    assert_eq!(words(&reading), ["org/other:latest unchanged"]);
    let read = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.method == Method::GET && !seen.path.contains("_catalog"));
    assert_eq!(read.count(), 0, "strangers are not looked into twice");
}

#[tokio::test]
async fn what_the_settings_do_not_admit_any_more_is_absent_without_a_question() {
    let (registry, reader, proxy, _spec) = stage().await;
    registry
        .put("org/hello", "v1.0", &bundle("hello", "1.0.0"))
        .await;
    let known = [
        known("org/hello:v1.0", ""),
        known("org/hello:latest", ""),
        known("org/other:latest", ""),
    ];
    let named = json!({"default": "latest", "named": [{"image": "hello", "tag": "v1.0"}, {"image": "org/hello", "tag": "v9"}]});
    let spec = json!({"url": proxy.url(), "whiteList": ["other"], "tags": named});
    let reading = reader.read(&spec, &known).await;
    assert_eq!(
        words(&reading),
        [
            "org/hello:latest absent Filtered",
            "org/hello:v1.0 present 1.0.0",
            "org/hello:v9 absent TagRemoved",
            "org/other:latest present 1.0.0"
        ],
        "a named tag that is missing is told"
    );
    assert!(
        !proxy
            .seen()
            .iter()
            .any(|seen| seen.path.contains("hello/manifests/latest"))
    );
    let reading = reader
        .read(
            &json!({"url": proxy.url(), "whiteList": ["br(oken"]}),
            &known,
        )
        .await;
    assert!(
        matches!(&reading.trouble, Some(Trouble::Misconfigured(why)) if why.contains("br(oken"))
    );
    assert!(
        words(&reading).iter().all(|word| word.ends_with("unknown"))
            && reading.sightings.len() == 3
    );
}
