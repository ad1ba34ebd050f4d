//! Pages as the public registries write them.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::*;

fn answer(body: &str, link: Option<&str>) -> RegistryResponse {
    let mut headers = HeaderMap::new();
    if let Some(link) = link {
        headers.insert("link", HeaderValue::from_str(link).unwrap());
    }
    RegistryResponse {
        status: StatusCode::OK,
        headers,
        body: Bytes::from(body.to_owned()),
    }
}

#[test]
fn a_catalog_goes_on_by_link_or_while_pages_are_full() {
    let two = r#"{"repositories":["a","b"]}"#;
    let next = |body, link, size| read_catalog(&answer(body, link), size).unwrap().next;
    let link = r#"</v2/_catalog?last=b&n=2>; rel="next""#;
    assert_eq!(
        next(two, Some(link), 2),
        Some(Next::Link("/v2/_catalog?last=b&n=2".to_owned()))
    );
    assert_eq!(
        next(two, Some(link), 100),
        Some(Next::Link("/v2/_catalog?last=b&n=2".to_owned())),
        "a cap of its own"
    );
    assert_eq!(next(two, None, 2), Some(Next::After("b".to_owned())));
    assert_eq!(next(two, None, 3), None);
    assert_eq!(next(r#"{"repositories":null}"#, None, 2), None);
    assert_eq!(
        next(two, Some(r#"</x>; rel="prev", </y>; rel=next"#), 9),
        Some(Next::Link("/y".to_owned()))
    );
    assert!(read_catalog(&answer("<html>", None), 2).is_err());
    assert!(read_catalog(&answer(&two[..10], None), 2).is_err());
}

#[test]
fn the_listings_of_public_registries_are_understood() {
    let hub = r#"{"count":3,"next":"https://hub.docker.com/v2/repositories/org/?page=2","previous":null,
        "results":[{"name":"a","namespace":"org","is_private":false},{"name":"b"}]}"#;
    let page = read_hub(hub.as_bytes(), Some("org")).unwrap();
    assert_eq!(page.names, ["org/a", "org/b"]);
    assert!(matches!(page.next, Some(Next::Link(_))));
    let quay = r#"{"repositories":[{"namespace":"org","name":"a","is_public":true,"state":"NORMAL"}],"next_page":"gAAA"}"#;
    let page = read_quay(quay.as_bytes()).unwrap();
    assert_eq!(
        (page.names, page.next),
        (
            vec!["org/a".to_owned()],
            Some(Next::Token("gAAA".to_owned()))
        )
    );
    assert_eq!(
        read_quay(br#"{"repositories":[]}"#).unwrap(),
        Page::default()
    );
    let search = r#"{"num_pages":2,"num_results":26,"page":1,"page_size":25,"query":"\"*-apb\"",
        "results":[{"name":"openshift3/postgresql-apb","description":""}]}"#;
    let page = read_rhcc(search.as_bytes()).unwrap();
    assert_eq!(
        (page.names, page.next),
        (
            vec!["openshift3/postgresql-apb".to_owned()],
            Some(Next::Number(2))
        )
    );
    assert!(
        read_hub(b"{}", None).is_err() && read_quay(b"{}").is_err() && read_rhcc(b"{}").is_err()
    );
}

#[test]
fn a_listing_does_not_go_on_at_another_server() {
    let lister = Lister {
        kind: Kind::Catalog,
        org: None,
        page: 2,
        elsewhere: None,
    };
    let base = Address::configured("https://registry.example").unwrap();
    let first = lister.first(&base);
    assert_eq!(
        first.to_string(),
        "https://registry.example/v2/_catalog?n=2"
    );
    let next = |next| {
        lister
            .next(&first, &first, next)
            .map(|address| address.to_string())
    };
    assert!(next(Next::Link("https://evil.example/v2/_catalog".to_owned())).is_err());
    assert!(
        next(Next::Link("http://registry.example/v2/_catalog".to_owned())).is_err(),
        "nor without TLS"
    );
    assert_eq!(
        next(Next::After("a/b".to_owned())).unwrap(),
        "https://registry.example/v2/_catalog?n=2&last=a%2Fb"
    );
}
