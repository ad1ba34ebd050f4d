//! Pages: all of them, or nothing is withdrawn.

use futures::{StreamExt as _, stream};
use heddle_api::evidence::Trouble;
use heddle_bundles::registries::Patience;
use http::Method;
use serde_json::json;

use super::machine::{Fault, Proxy, Reader, Registry, known, learned, words};
use super::made::bundle;

async fn many(registry: &Registry, count: usize) {
    let made = bundle("many", "1.0.0");
    let puts = (0..count).map(|number| {
        let made = &made;
        async move {
            registry
                .put(&format!("org/bundle-{number:03}"), "latest", made)
                .await
        }
    });
    stream::iter(puts)
        .buffer_unordered(8)
        .collect::<Vec<()>>()
        .await;
}

#[tokio::test]
async fn a_listing_is_read_to_its_last_page_with_links_and_without() {
    let registry = Registry::start().await;
    many(&registry, 5).await;
    let reader = Reader::patient(Patience::default(), 2);
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    assert_eq!(reader.read(&spec, &[]).await.sightings.len(), 5);
    let pages = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.path.contains("_catalog"))
        .count();
    assert_eq!(pages, 3);
    // The same pages from a server that knows no links.
    proxy.calm();
    for body in [
        ["org/bundle-000", "org/bundle-001"].as_slice(),
        &["org/bundle-002", "org/bundle-003"],
        &["org/bundle-004"],
    ] {
        let body = json!({"repositories": body}).to_string();
        proxy.fault(None, "_catalog", 1, Fault::Answer(200, Vec::new(), body));
    }
    let reading = reader.read(&spec, &[]).await;
    assert_eq!((reading.sightings.len(), reading.trouble), (5, None));
}

#[tokio::test]
async fn a_page_that_cannot_be_read_withdraws_nothing() {
    let registry = Registry::start().await;
    many(&registry, 6).await;
    let reader = Reader::patient(Patience::default(), 1);
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    let gone = known("org/gone:latest", "");
    for fault in [
        Fault::HangUp,
        Fault::Truncate,
        Fault::Answer(500, Vec::new(), String::new()),
        Fault::Answer(200, Vec::new(), "{".to_owned()),
        Fault::Answer(
            200,
            vec![(
                "link",
                r#"<http://127.0.0.1:1/v2/_catalog>; rel="next""#.to_owned(),
            )],
            r#"{"repositories":["x"]}"#.to_owned(),
        ),
    ] {
        proxy.fault(None, "last=org%2Fbundle-002", usize::MAX, fault.clone());
        proxy.fault(None, "last=org/bundle-002", usize::MAX, fault.clone());
        let reading = reader.read(&spec, std::slice::from_ref(&gone)).await;
        assert!(
            matches!(reading.trouble, Some(Trouble::ListingIncomplete(_))),
            "{fault:?}: {:?}",
            reading.trouble
        );
        let words = words(&reading);
        assert!(
            words.contains(&"org/gone:latest unknown".to_owned()),
            "{fault:?}: {words:?}"
        );
        assert_eq!(
            words
                .iter()
                .filter(|word| word.ends_with("present 1.0.0"))
                .count(),
            3,
            "{fault:?}"
        );
        proxy.calm();
    }
    let reading = reader.read(&spec, &[gone]).await;
    assert!(words(&reading).contains(&"org/gone:latest absent RemovedFromRegistry".to_owned()));
}

#[tokio::test]
async fn a_registry_without_a_listing_is_read_by_name() {
    let registry = Registry::start().await;
    many(&registry, 2).await;
    let reader = Reader::new();
    let proxy = reader.proxy(&registry).await;
    proxy.status("_catalog", 404);
    let by_name = json!({"url": proxy.url(), "images": ["org/bundle-000", "org/gone"]});
    let reading = reader.read(&by_name, &[known("org/gone:latest", "")]).await;
    assert_eq!(reading.trouble, None);
    assert_eq!(
        words(&reading),
        [
            "org/bundle-000:latest present 1.0.0",
            "org/gone:latest absent TagRemoved"
        ]
    );
    let reading = reader
        .read(
            &json!({"url": proxy.url()}),
            &[known("org/gone:latest", "")],
        )
        .await;
    assert!(matches!(
        reading.trouble,
        Some(Trouble::ListingIncomplete(_))
    ));
    assert_eq!(words(&reading), ["org/gone:latest unknown"]);
}

#[tokio::test]
async fn five_hundred_unchanged_repositories_cost_one_question_each() {
    let registry = Registry::start().await;
    many(&registry, 500).await;
    let reader = Reader::new();
    let proxy = reader.proxy(&registry).await;
    let spec = json!({"url": proxy.url()});
    let first = reader.read(&spec, &[]).await;
    let known = learned(&first);
    assert_eq!((known.len(), first.trouble), (500, None));
    proxy.calm();
    let second = reader.read(&spec, &known).await;
    assert!(
        words(&second)
            .iter()
            .all(|word| word.ends_with("unchanged"))
            && second.sightings.len() == 500
    );
    let seen = proxy.seen();
    let gets = |what: &str| {
        seen.iter()
            .filter(|it| it.method == Method::GET && it.path.contains(what))
            .count()
    };
    assert_eq!((gets("/manifests/"), gets("/blobs/")), (0, 0));
    assert_eq!(
        seen.iter().filter(|it| it.method == Method::HEAD).count(),
        500
    );
}

#[tokio::test]
async fn public_registries_are_listed_in_their_own_ways() {
    let registry = Registry::start().await;
    many(&registry, 2).await;
    let reader = Reader::new();
    let named = ["org/bundle-000", "org/bundle-001"];
    let page = |kind: &str, name: &str, next: bool, proxy: &Proxy| {
        let short = name.strip_prefix("org/").unwrap();
        match kind {
            "dockerhub" => json!({"results": [{"name": short, "namespace": "org"}],
                "next": next.then(|| format!("{}/v2/repositories/org/?page=2&page_size=100", proxy.url()))}),
            "quay" => json!({"repositories": [{"namespace": "org", "name": short}],
                "next_page": next.then_some("token")}),
            _ => {
                json!({"num_pages": 2, "page": if next { 1 } else { 2 }, "results": [{"name": name}]})
            }
        }
    };
    for (kind, path) in [
        ("dockerhub", "/v2/repositories/"),
        ("quay", "/api/v1/repository?"),
        ("rhcc", "/v1/search?"),
    ] {
        let proxy = reader.proxy(&registry).await;
        for (name, next) in named.iter().zip([true, false]) {
            let body = page(kind, name, next, &proxy).to_string();
            proxy.fault(None, path, 1, Fault::Answer(200, Vec::new(), body));
        }
        let spec = json!({"type": kind, "url": proxy.url(), "org": "org"});
        let reading = reader.read(&spec, &[]).await;
        assert_eq!(reading.trouble, None, "{kind}");
        assert_eq!(
            words(&reading),
            named.map(|name| format!("{name}:latest present 1.0.0")),
            "{kind}"
        );
        let pages: Vec<String> = proxy
            .seen()
            .into_iter()
            .map(|it| it.path)
            .filter(|it| it.contains(path))
            .collect();
        assert_eq!(pages.len(), 2, "{kind}: {pages:?}");
    }
}
