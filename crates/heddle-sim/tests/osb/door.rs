//! What comes before any verb: who, which version, which path, what syntax.

use heddle_front::Settings;
use heddle_front::auth::CREDENTIALS_LABEL;
use heddle_front::settings::MissingVersion;
use http::{HeaderName, HeaderValue, Method};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::world::{BASIC, IDS, Reply, World, ask, request, tell, tell_with, wanted};

const I: &str = "/v2/service_instances/i";

/// Every route, with the method that it is for.
fn routes() -> Vec<(Method, String)> {
    let b = format!("{I}/service_bindings/b");
    vec![
        (Method::GET, "/v2/catalog".to_owned()),
        (Method::GET, I.to_owned()),
        (Method::PUT, I.to_owned()),
        (Method::PATCH, I.to_owned()),
        (Method::DELETE, I.to_owned()),
        (Method::GET, format!("{I}/last_operation")),
        (Method::GET, b.clone()),
        (Method::PUT, b.clone()),
        (Method::DELETE, b.clone()),
        (Method::GET, format!("{b}/last_operation")),
    ]
}

/// Asks with other headers than usual; `None` takes one away.
async fn with(
    world: &World,
    method: &Method,
    path: &str,
    headers: &[(&'static str, Option<&str>)],
) -> Reply {
    let mut request = request(method.clone(), path, Some(json!({})));
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        request.headers_mut().remove(&name);
        if let Some(value) = value {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    ask(&world.front, request).await
}

#[test]
fn credentials_come_before_everything_and_identities_come_back_with_everything() {
    tell(|world| async move {
        for (method, path) in routes() {
            for shown in [
                None,
                Some("Basic aGVkZGxlOndyb25n"),
                Some("Bearer x"),
                Some("garbage"),
            ] {
                let headers = [
                    ("authorization", shown),
                    ("x-broker-api-version", Some("garbage")),
                    ("x-broker-api-request-identity", Some("r-1")),
                ];
                let reply = with(&world, &method, &path, &headers).await;
                assert_eq!(reply.status, 401, "{method} {path}");
                assert!(
                    reply.headers["www-authenticate"]
                        .to_str()
                        .unwrap()
                        .starts_with("Basic")
                );
                assert_eq!(reply.headers["x-broker-api-request-identity"], "r-1");
            }
            let headers = [("x-broker-api-request-identity", Some("r-2"))];
            let reply = with(&world, &method, &path, &headers).await;
            assert_eq!(
                reply.headers["x-broker-api-request-identity"], "r-2",
                "{method} {path}: {}",
                reply.status
            );
        }
        let admin = with(
            &world,
            &Method::GET,
            "/v2/catalog",
            &[("authorization", Some("Bearer administrator"))],
        )
        .await;
        assert_eq!(admin.status, 200);
    });
}

#[test]
fn a_version_is_demanded_before_the_path_is_looked_at() {
    for (setting, status) in [
        (MissingVersion::BadRequest, 400),
        (MissingVersion::PreconditionFailed, 412),
        (MissingVersion::Accept, 404),
    ] {
        let settings = Settings {
            missing_version: setting,
            ..Settings::default()
        };
        tell_with(settings, |world| async move {
            let reply = with(
                &world,
                &Method::GET,
                "/v2/nothing",
                &[("x-broker-api-version", None)],
            )
            .await;
            assert_eq!(reply.status, status);
            let reply = with(
                &world,
                &Method::GET,
                "/v2/nothing",
                &[("x-broker-api-version", Some("1.0"))],
            )
            .await;
            assert_eq!(reply.status, 412);
        });
    }
}

#[test]
fn other_methods_are_told_which_ones_are_allowed() {
    tell(|world| async move {
        for (_, path) in routes() {
            for method in [Method::POST, Method::TRACE] {
                let reply = with(&world, &method, &path, &[]).await;
                assert_eq!(reply.status, 405, "{method} {path}");
                assert!(reply.headers["allow"].to_str().unwrap().contains("GET"));
            }
        }
    });
}

#[test]
fn a_catalog_that_is_known_is_not_sent_again() {
    tell(|world| async move {
        let first = world.get("/v2/catalog").await;
        assert_eq!((first.status, &first.body["for"]), (200, &json!("2.17")));
        let etag = first.headers["etag"].to_str().unwrap().to_owned();
        for (known, status) in [
            (etag.clone(), 304),
            (format!("W/{etag}"), 304),
            (format!("\"x\", {etag}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
        ] {
            let reply = with(
                &world,
                &Method::GET,
                "/v2/catalog",
                &[("if-none-match", Some(&known))],
            )
            .await;
            assert_eq!(reply.status, status, "{known}");
            assert_eq!(reply.headers["etag"], etag);
        }
        let older = [
            ("x-broker-api-version", Some("2.14")),
            ("if-none-match", Some(etag.as_str())),
        ];
        assert_eq!(
            with(&world, &Method::GET, "/v2/catalog", &older).await.body["for"],
            "2.14"
        );
    });
}

#[test]
fn a_catalog_is_compressed_for_those_who_take_that_and_known_in_either_form() {
    tell(|world| async move {
        let ask = async |accepted: Option<&str>, known: Option<&str>| {
            let headers = [("accept-encoding", accepted), ("if-none-match", known)];
            let reply = with(&world, &Method::GET, "/v2/catalog", &headers).await;
            assert_eq!(reply.headers["vary"], "accept-encoding");
            reply
        };
        let coding = |reply: &Reply| reply.headers.get("content-encoding").cloned();
        let tag = |reply: &Reply| reply.headers["etag"].to_str().unwrap().to_owned();
        let plain = ask(None, None).await;
        assert_eq!(coding(&plain), None);
        let gzip = ask(Some("gzip"), None).await;
        assert_eq!(coding(&gzip).unwrap(), "gzip");
        assert_eq!(gzip.body, plain.body);
        assert_ne!(tag(&gzip), tag(&plain));
        for refusing in ["identity", "gzip;q=0, *", "br"] {
            let reply = ask(Some(refusing), None).await;
            assert_eq!(
                (coding(&reply), tag(&reply)),
                (None, tag(&plain)),
                "{refusing}"
            );
        }
        for accepted in [None, Some("gzip")] {
            for known in [tag(&plain), tag(&gzip)] {
                let reply = ask(accepted, Some(&format!("W/{known}"))).await;
                assert_eq!((reply.status, coding(&reply)), (304, None));
                assert_eq!(tag(&reply), known, "a cache renews what it has");
            }
            let reply = ask(accepted, Some("\"-gzip\", \"x\"")).await;
            assert_eq!(reply.status, 200);
        }
    });
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    tell(|world| async move {
        world.ask_for(I).await;
        world.end_instance("default", "i", "succeeded").await;
        let version = world.version().await;
        let b = format!("{I}/service_bindings/b?accepts_incomplete=true");
        let other = "/v2/service_instances/j?accepts_incomplete=true".to_owned();
        let i = format!("{I}?accepts_incomplete=true");
        let refusals = [
            (Method::PUT, &other, json!([]), 400),
            (Method::PUT, &other, json!({"service_id": "svc"}), 400),
            (Method::PUT, &other, wanted("nothing", json!({})), 400),
            (
                Method::PUT,
                &other,
                wanted("patient", json!({"size": "x"})),
                400,
            ),
            (Method::PUT, &other, wanted("patient", json!([])), 400),
            (
                Method::PUT,
                &"/v2/service_instances/j".to_owned(),
                wanted("patient", json!({})),
                422,
            ),
            (Method::PUT, &i, wanted("patient", json!({"size": 5})), 409),
            (Method::PATCH, &other, json!({"service_id": "svc"}), 404),
            (Method::PATCH, &i, json!({"service_id": "other"}), 400),
            (
                Method::PATCH,
                &i,
                json!({"service_id": "svc", "plan_id": "nothing"}),
                400,
            ),
            (
                Method::PATCH,
                &I.to_owned(),
                json!({"service_id": "svc"}),
                422,
            ),
            (
                Method::PATCH,
                &i,
                json!({"service_id": "svc", "maintenance_info": {"version": "9"}}),
                422,
            ),
            (Method::DELETE, &i, json!({}), 400),
            (Method::DELETE, &format!("{other}&{IDS}"), json!({}), 410),
            (Method::PUT, &b, json!({"service_id": "svc"}), 400),
            (
                Method::PUT,
                &b,
                json!({"service_id": "svc", "plan_id": "prompt"}),
                400,
            ),
            (Method::PUT, &b, json!({"predecessor_binding_id": "a"}), 400),
            (Method::DELETE, &format!("{b}&{IDS}"), json!({}), 410),
            (Method::GET, &b, json!({}), 404),
            (Method::GET, &other, json!({}), 404),
        ];
        for (method, path, body, status) in refusals {
            let reply = ask(
                &world.front,
                request(method.clone(), path, Some(body.clone())),
            )
            .await;
            assert_eq!(
                reply.status, status,
                "{method} {path} {body}: {}",
                reply.body
            );
            assert_eq!(world.version().await, version, "{method} {path} {body}");
        }
        let identity = [("x-broker-api-originating-identity", Some("nonsense"))];
        assert_eq!(with(&world, &Method::GET, I, &identity).await.status, 400);
        assert_eq!(
            with(
                &world,
                &Method::PUT,
                I,
                &[("content-type", Some("text/plain"))]
            )
            .await
            .status,
            400
        );
        assert_eq!(world.version().await, version);
    });
}

#[test]
fn who_asked_is_kept_with_what_was_asked() {
    tell(|world| async move {
        let mut asked = request(
            Method::PUT,
            &format!("{I}?accepts_incomplete=true"),
            Some(wanted("patient", json!({}))),
        );
        // {"username":"jo"}
        let identity = HeaderValue::from_static("kubernetes eyJ1c2VybmFtZSI6ImpvIn0=");
        asked
            .headers_mut()
            .insert("x-broker-api-originating-identity", identity);
        assert_eq!(ask(&world.front, asked).await.status, 202);
        let identity = world
            .instance("default", "i")
            .await
            .spec
            .originating_identity
            .unwrap();
        assert_eq!(
            (identity.platform.as_str(), &identity.value["username"]),
            ("kubernetes", &json!("jo"))
        );
    });
}

#[test]
fn a_secret_lets_a_platform_in_from_when_it_is_there_until_it_is_gone() {
    tell(|world| async move {
        let api: Api<Secret> = Api::namespaced(world.users.clone(), "heddle-system");
        // `cf:old` and `cf:new`.
        let (old, new) = ("Basic Y2Y6b2xk", "Basic Y2Y6bmV3");
        let status = async |shown: &str| {
            world.clock.sleep(std::time::Duration::from_secs(1)).await;
            with(
                &world,
                &Method::GET,
                "/v2/catalog",
                &[("authorization", Some(shown))],
            )
            .await
            .status
        };
        let put = async |password: &str| {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
                "metadata": {"name": "cf", "labels": {CREDENTIALS_LABEL: "true"}},
                "stringData": {"username": "cf", "password": password},
            });
            api.patch(
                "cf",
                &PatchParams::apply("test").force(),
                &Patch::Apply(&secret),
            )
            .await
            .unwrap();
        };
        assert_eq!(status(old).await, 401);
        put("old").await;
        assert_eq!(status(old).await, 200);
        put("new").await;
        assert_eq!(
            (status(old).await, status(new).await, status(BASIC).await),
            (401, 200, 200)
        );
        api.delete("cf", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        assert_eq!((status(new).await, status(BASIC).await), (401, 200));
    });
}

#[test]
fn requests_are_counted_by_what_they_asked_and_how_they_were_answered() {
    tell(|world| async move {
        world.get("/v2/catalog").await;
        world.get(I).await;
        world.get(I).await;
        let text = world.front.metrics_text();
        assert!(
            text.contains(r#"heddle_osb_requests_total{route="catalog",code="200"} 1"#),
            "{text}"
        );
        assert!(
            text.contains(r#"heddle_osb_requests_total{route="fetch_instance",code="404"} 2"#),
            "{text}"
        );
    });
}
