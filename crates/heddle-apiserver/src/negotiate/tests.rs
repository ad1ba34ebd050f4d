use http::{HeaderMap, HeaderValue, header};

use super::*;

fn accept(value: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_str(value).unwrap());
    headers
}

#[test]
fn the_first_form_we_can_give_wins() {
    let check = |value: &str, expected: Option<Form>| {
        assert_eq!(form(&accept(value)).ok(), expected, "{value}");
    };
    check("application/json", Some(Form::Object));
    check("*/*", Some(Form::Object));
    check(
        "application/json;without=managedFields,application/json",
        Some(Form::Lean),
    );
    check("application/json;without=status", Some(Form::Object));
    check(
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        Some(Form::Table),
    );
    check(
        "application/json;as=Table;g=meta.k8s.io;v=v1beta1, application/json",
        Some(Form::Object),
    );
    check(
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        Some(Form::Metadata),
    );
    check(
        "application/vnd.kubernetes.protobuf,application/json",
        Some(Form::Object),
    );
    check("application/vnd.kubernetes.protobuf", None);
    check("text/html", None);
    assert_eq!(form(&HeaderMap::new()).ok(), Some(Form::Object));
}

#[test]
fn discovery_is_aggregated_only_for_a_client_that_puts_it_before_plain_json() {
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert_eq!(
        aggregated_discovery(&accept(&format!("{v2},application/json"))),
        Some("v2")
    );
    assert_eq!(
        aggregated_discovery(&accept(&format!("application/json,{v2}"))),
        None
    );
    assert_eq!(aggregated_discovery(&accept("application/json")), None);
    assert_eq!(
        aggregated_discovery(&accept(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
        )),
        None
    );
}

#[test]
fn a_strategic_patch_is_refused_where_no_built_in_type_backs_it() {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/strategic-merge-patch+json"),
    );
    assert_eq!(patch_type(&headers, true).ok(), Some(PatchType::Strategic));
    let refusal = patch_type(&headers, false).unwrap_err();
    assert_eq!(refusal.code.as_u16(), 415);
    assert!(
        !refusal.message.contains("strategic"),
        "{}",
        refusal.message
    );
}
