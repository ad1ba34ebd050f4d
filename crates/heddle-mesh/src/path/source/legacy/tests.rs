//! Paths, by table, and b3 headers.

use http::HeaderMap;

use super::*;

#[test]
fn a_path_is_one_apis_or_the_others() {
    let in_cluster = LegacyCall::Publish(BodyForm::V1, None);
    assert_eq!(call("/v1/events"), Some(in_cluster));
    for (path, expected) in [
        (
            "/shop/v1/events",
            LegacyCall::Publish(BodyForm::V1, Some("shop")),
        ),
        (
            "/shop/v2/events",
            LegacyCall::Publish(BodyForm::V2, Some("shop")),
        ),
        (
            "/v1/v1/events",
            LegacyCall::Publish(BodyForm::V1, Some("v1")),
        ),
        (
            "/v2/v1/events",
            LegacyCall::Publish(BodyForm::V1, Some("v2")),
        ),
        ("/v2/events", LegacyCall::Publish(BodyForm::V2, None)),
        ("/shop/v1/events/subscribed", LegacyCall::Subscribed("shop")),
        ("/v1/v1/events/subscribed", LegacyCall::Subscribed("v1")),
        ("/v1/health", LegacyCall::Health),
        ("/v1/status/ready", LegacyCall::Ready),
        ("/v1/health/", LegacyCall::Nowhere),
        ("/v1/status", LegacyCall::Nowhere),
        ("/v1/events/", LegacyCall::Nowhere),
        ("/v1/events/subscribed", LegacyCall::Nowhere),
        ("/shop/v1/events/", LegacyCall::Nowhere),
        ("/shop/v1/events/subscribed/", LegacyCall::Nowhere),
        ("/shop/v2/events/subscribed", LegacyCall::Nowhere),
    ] {
        assert_eq!(call(path), Some(expected), "{path}");
        assert_eq!(crate::path::source::path(path), None, "{path}");
    }
    for native in [
        "",
        "/",
        "//v1/events",
        "/shop/events",
        "/shop/v3/events",
        "/shop/v1",
        "/v1x/events",
        "/broker/v1/events",
        "/channel/v2/events",
        "/broker/v1/events/subscribed",
        "/heddle/v1/webhook-consent/x",
    ] {
        assert_eq!(call(native), None, "{native}");
    }
}

#[test]
fn b3_headers_become_a_traceparent() {
    let context = |headers: &[(&'static str, &str)]| {
        let headers = headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).expect("plain");
            (http::HeaderName::from_static(name), value)
        });
        let headers: HeaderMap = headers.collect();
        b3_context(&headers).map(|context| context.parent.to_string())
    };
    let (trace, span) = ("80f198ee56343ba864fe8b2a57d3eff7", "e457b5a2e4d86bd1");
    let parent = |flags: &str| Some(format!("00-{trace}-{span}-{flags}"));
    for (b3, flags) in [
        (format!("{trace}-{span}-1-05e3ac9a4f6e3b90"), "01"),
        (format!("{trace}-{span}-d"), "01"),
        (format!("{trace}-{span}-0"), "00"),
        (format!("{trace}-{span}"), "01"),
    ] {
        assert_eq!(context(&[("b3", &b3)]), parent(flags), "{b3}");
    }
    let ids = [("x-b3-traceid", trace), ("x-b3-spanid", span)];
    assert_eq!(context(&ids), parent("01"));
    let unsampled = [ids[0], ids[1], ("x-b3-sampled", "0")];
    assert_eq!(context(&unsampled), parent("00"));
    let debug = [ids[0], ids[1], ("x-b3-sampled", "0"), ("x-b3-flags", "1")];
    assert_eq!(context(&debug), parent("01"));
    for bad in [&[][..], &[("b3", "0")], &[("b3", "x-y-1")], &ids[..1]] {
        assert_eq!(context(bad), None, "{bad:?}");
    }
}
