//! Who asks: passwords, tokens, certificates, and whom they are shown to.

use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use heddle_api::bundle_source::Fetch;
use heddle_api::evidence::{Credentials, Trouble};
use heddle_bundles::registries::Destination;
use heddle_rt::Clock;
use heddle_rt::net::rustls;
use http::Method;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use super::machine::{Fault, Proxy, Reader, Registry, Seen, call, known, registry_spec, words};
use super::made::bundle;

fn basic(password: &str) -> Credentials {
    Credentials::Basic {
        username: "me".to_owned(),
        password: password.to_owned(),
    }
}

/// A key, and a certificate that it signed itself.
fn key_pair(dir: &std::path::Path) -> (String, String) {
    let (key, certificate) = (dir.join("key.pem"), dir.join("certificate.pem"));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
        ])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    (
        key.to_str().unwrap().to_owned(),
        certificate.to_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn a_password_opens_a_registry_and_a_wrong_one_withdraws_nothing() {
    // `secret`, as htpasswd -B would write it.
    let line = "me:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
    let registry = Registry::with(|dir| {
        let path = dir.join("htpasswd");
        std::fs::write(&path, line).unwrap();
        json!({"auth": {"htpasswd": {"realm": "test", "path": path}}})
    })
    .await;
    let reader = Reader::new();
    let made = bundle("hello", "1.0.0");
    let authorization = format!("Basic {}", STANDARD.encode("me:secret"));
    for name in ["a", "b", "c", "d"] {
        registry
            .put_as(
                &format!("org/{name}"),
                "latest",
                &made,
                Some(&authorization),
            )
            .await;
    }
    let spec = json!({"url": registry.url()});
    let reading = reader.read_as(&spec, &[], basic("secret")).await;
    assert_eq!((reading.trouble, reading.sightings.len()), (None, 4));
    let known = [known("org/a:latest", &made.digest())];
    for credentials in [
        basic("wrong"),
        Credentials::None,
        Credentials::Token("secret".to_owned()),
    ] {
        let reading = reader.read_as(&spec, &known, credentials.clone()).await;
        assert!(
            matches!(reading.trouble, Some(Trouble::AuthenticationFailed(_))),
            "{credentials:?}: {reading:?}"
        );
        assert_eq!(words(&reading), ["org/a:latest unknown"], "{credentials:?}");
    }
    let to = Destination {
        url: registry.url(),
        repository: "org/pushed".to_owned(),
        tag: "v1".to_owned(),
        credentials: basic("secret"),
        skip_verify_tls: false,
    };
    let digest = reader.registries.push_to(&to, &made.image()).await.unwrap();
    assert_eq!(digest, made.digest());
    let refused = reader
        .registries
        .push_to(
            &Destination {
                credentials: Credentials::None,
                ..to
            },
            &made.image(),
        )
        .await;
    assert!(refused.unwrap_err().to_string().contains("401"));
}

/// A token as Debian's registry wants it: signed, with the certificate in its head.
fn token(key: &str, certificate: &str, access: &Value, now: i64) -> String {
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let head = json!({"typ": "JWT", "alg": "RS256", "x5c": [STANDARD.encode(&certificate)]});
    let claims = json!({"iss": "issuer", "sub": "me", "aud": "registry", "exp": now + 300, "nbf": now - 10,
        "iat": now, "jti": "1", "access": access});
    let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{head}.{claims}");
    let signer = key
        .choose_scheme(&[rustls::SignatureScheme::RSA_PKCS1_SHA256])
        .unwrap();
    let signature = signer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test]
async fn a_token_server_is_asked_once_for_each_scope() {
    let reader = Reader::new();
    let realm = Proxy::start(&reader.tasks, None).await;
    let mut keys = None;
    let registry = Registry::with(|dir| {
        let (key, certificate) = key_pair(dir);
        keys = Some((key, certificate.clone()));
        json!({"auth": {"token": {"realm": format!("{}/token", realm.url()), "service": "registry",
            "issuer": "issuer", "rootcertbundle": certificate}}})
    })
    .await;
    let (key, certificate) = keys.unwrap();
    let now = Clock::system().now().as_second();
    let grant = |kind: &str, name: &str, actions: &[&str]| {
        let access = json!([{"type": kind, "name": name, "actions": actions}]);
        token(&key, &certificate, &access, now)
    };
    let made = bundle("hello", "1.0.0");
    for name in ["org/a", "org/b"] {
        let bearer = format!("Bearer {}", grant("repository", name, &["pull", "push"]));
        registry.put_as(name, "latest", &made, Some(&bearer)).await;
    }
    let answer = |token: String| {
        Fault::Answer(
            200,
            Vec::new(),
            json!({"token": token, "expires_in": 300}).to_string(),
        )
    };
    let every = usize::MAX;
    realm.fault(
        None,
        "catalog",
        every,
        answer(grant("registry", "catalog", &["*"])),
    );
    realm.fault(
        None,
        "org%2Fa",
        every,
        answer(grant("repository", "org/a", &["pull"])),
    );
    realm.fault(
        None,
        "org%2Fb",
        every,
        answer(grant("repository", "org/b", &["pull"])),
    );
    let spec = json!({"url": registry.url()});
    let reading = reader.read_as(&spec, &[], basic("secret")).await;
    assert_eq!(reading.trouble, None);
    assert_eq!(
        words(&reading),
        ["org/a:latest present 1.0.0", "org/b:latest present 1.0.0"]
    );
    let asked = realm.seen();
    assert_eq!(asked.len(), 3, "one token for each scope: {asked:?}");
    for seen in &asked {
        assert_eq!(seen.authorization.as_deref(), Some("Basic bWU6c2VjcmV0"));
        assert!(seen.path.contains("service=registry"), "{seen:?}");
    }
    realm.calm();
    realm.status("/token", 401);
    let reading = reader
        .read_as(&spec, &[known("org/a:latest", "")], basic("wrong"))
        .await;
    assert!(
        matches!(reading.trouble, Some(Trouble::AuthenticationFailed(_))),
        "{reading:?}"
    );
    assert_eq!(words(&reading), ["org/a:latest unknown"]);
}

#[tokio::test]
async fn a_certificate_is_verified_unless_the_registry_says_otherwise() {
    let registry = Registry::with(|dir| {
        let (key, certificate) = key_pair(dir);
        json!({"http": {"tls": {"certificate": certificate, "key": key}}})
    })
    .await;
    let reader = Reader::new();
    let to = Destination {
        url: format!("https://127.0.0.1:{}", registry.port),
        repository: "org/hello".to_owned(),
        tag: "latest".to_owned(),
        credentials: Credentials::None,
        skip_verify_tls: true,
    };
    reader
        .registries
        .push_to(&to, &bundle("hello", "1.0.0").image())
        .await
        .unwrap();
    let reading = reader
        .read(&json!({"url": to.url, "skipVerifyTLS": true}), &[])
        .await;
    assert_eq!(words(&reading), ["org/hello:latest present 1.0.0"]);
    let reading = reader
        .read(&json!({"url": to.url}), &[known("org/hello:latest", "")])
        .await;
    assert!(
        matches!(&reading.trouble, Some(Trouble::Unreachable(why)) if why.contains("certificate")),
        "{reading:?}"
    );
    assert_eq!(words(&reading), ["org/hello:latest unknown"]);
}

#[tokio::test]
async fn a_redirect_is_followed_three_times_and_shows_nobody_the_password() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let made = bundle("hello", "1.0.0");
    registry.put("org/hello", "latest", &made).await;
    let proxy = reader.proxy(&registry).await;
    let elsewhere = reader.proxy(&registry).await;
    let wants = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
    proxy.fault(
        None,
        "_catalog",
        1,
        Fault::Answer(401, wants, String::new()),
    );
    let to = |place: String| Fault::Answer(307, vec![("location", place)], String::new());
    let blob = format!(
        "/v2/org/hello/blobs/{}",
        heddle_bundles::images::Digest::of(&made.blobs[0])
    );
    proxy.fault(
        None,
        "/blobs/",
        1,
        to(format!("{}{blob}?hop=1", elsewhere.url())),
    );
    let spec = json!({"url": proxy.url()});
    let reading = reader.read_as(&spec, &[], basic("secret")).await;
    assert_eq!(words(&reading), ["org/hello:latest present 1.0.0"]);
    assert!(
        proxy
            .seen()
            .iter()
            .skip(1)
            .all(|seen| seen.authorization.is_some()),
        "{:?}",
        proxy.seen()
    );
    let away = elsewhere.seen();
    assert_eq!((away.len(), away[0].authorization.as_ref()), (1, None));
    proxy.calm();
    proxy.fault(Some(Method::GET), "/blobs/", usize::MAX, to(blob));
    let reading = reader.read(&spec, &[]).await;
    assert_eq!(words(&reading), ["org/hello:latest unknown"]);
    assert_eq!(
        proxy
            .seen()
            .iter()
            .filter(|seen| seen.path.contains("/blobs/"))
            .count(),
        4
    );
}

/// What a stranger may answer to learn the password.
fn lures(stranger: &str) -> Vec<Fault> {
    let wants = |text: String| Fault::Answer(401, vec![("www-authenticate", text)], String::new());
    vec![
        wants("Basic realm=\"x\"".to_owned()),
        wants(format!("Bearer realm=\"{stranger}/token\",service=\"s\"")),
        wants("Bearer realm=\"/token\",service=\"s\"".to_owned()),
    ]
}

#[tokio::test]
async fn whoever_a_redirect_leads_to_cannot_ask_for_the_password_or_name_who_may() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let made = bundle("hello", "1.0.0");
    registry.put("org/hello", "latest", &made).await;
    let proxy = reader.proxy(&registry).await;
    let stranger = reader.proxy(&registry).await;
    let count = lures("").len();
    // Every sort of question that a reading asks: the listing, a manifest, a blob.
    for path in ["_catalog", "/manifests/", "/blobs/"] {
        for lure in 0..count {
            for credentials in [basic("secret"), Credentials::Token("secret".to_owned())] {
                proxy.calm();
                stranger.calm();
                let away = vec![("location", format!("{}/v2/stolen", stranger.url()))];
                let away = Fault::Answer(307, away, String::new());
                proxy.fault(None, path, usize::MAX, away);
                let answer = lures(&stranger.url()).swap_remove(lure);
                stranger.fault(None, "/v2/stolen", usize::MAX, answer);
                if matches!(credentials, Credentials::Basic { .. }) {
                    // That a password is wanted is known by then.
                    let wants = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
                    proxy.fault(None, "/v2/", 1, Fault::Answer(401, wants, String::new()));
                }
                let spec = json!({"url": proxy.url()});
                let known = [known("org/hello:latest", "")];
                let reading = reader.read_as(&spec, &known, credentials).await;
                let seen = stranger.seen();
                assert!(!seen.is_empty(), "{path}, {lure}: it was led there");
                for seen in &seen {
                    assert_eq!(seen.authorization, None, "{path}, {lure}: {seen:?}");
                    assert!(
                        seen.path.starts_with("/v2/stolen"),
                        "{path}, {lure}: {seen:?}"
                    );
                }
                // What a listing does not tell may be asked for by name.
                if path != "_catalog" {
                    assert_eq!(words(&reading), ["org/hello:latest unknown"]);
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_stranger_sends_back_to_the_registry_brings_no_password() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let made = bundle("hello", "1.0.0");
    registry.put("org/hello", "latest", &made).await;
    let proxy = reader.proxy(&registry).await;
    let stranger = reader.proxy(&registry).await;
    let to = |place: String| Fault::Answer(307, vec![("location", place)], String::new());
    let detour = format!("{}/v2/detour", stranger.url());
    proxy.fault(None, "/blobs/", usize::MAX, to(detour));
    // Where it leads then is the stranger's choice: to have something deleted or paid for, say.
    let back = format!("{}/v2/chosen-by-a-stranger", proxy.url());
    stranger.fault(None, "/v2/detour", usize::MAX, to(back));
    let token = Credentials::Token("secret".to_owned());
    reader
        .read_as(&json!({"url": proxy.url()}), &[], token)
        .await;
    let seen = proxy.seen();
    let (back, own): (Vec<_>, Vec<_>) = seen
        .iter()
        .partition(|seen| seen.path.contains("chosen-by-a-stranger"));
    assert!(!back.is_empty(), "it was led there: {seen:?}");
    assert!(back.iter().all(|seen| seen.authorization.is_none()));
    assert!(own.iter().any(|seen| seen.authorization.is_some()));
}

#[tokio::test]
async fn a_password_goes_to_no_token_server_that_can_be_listened_in_on() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let proxy = reader.proxy(&registry).await;
    let wants = "Bearer realm=\"http://169.254.169.254/token\",service=\"s\"".to_owned();
    let wants = Fault::Answer(401, vec![("www-authenticate", wants)], String::new());
    proxy.fault(None, "/v2/", usize::MAX, wants);
    let spec = json!({"url": proxy.url()});
    let reading = reader.read_as(&spec, &[], basic("secret")).await;
    let trouble = format!("{:?}", reading.trouble);
    assert!(trouble.contains("token server without TLS"), "{trouble}");
    // Without a password there is nothing to be overheard; that the address is not allowed is another matter.
    let reading = reader.read(&spec, &[]).await;
    let trouble = format!("{:?}", reading.trouble);
    assert!(!trouble.contains("without TLS"), "{trouble}");
}

#[tokio::test]
async fn a_registry_with_tls_leads_nobody_to_a_place_without() {
    let reader = Reader::new();
    let realm = Proxy::start(&reader.tasks, None).await;
    let registry = Registry::with(|dir| {
        let (key, certificate) = key_pair(dir);
        json!({
            "http": {"tls": {"certificate": certificate, "key": key}},
            "auth": {"token": {"realm": format!("{}/token", realm.url()), "service": "registry",
                "issuer": "issuer", "rootcertbundle": certificate}},
        })
    })
    .await;
    let url = format!("https://127.0.0.1:{}", registry.port);
    let spec = json!({"url": url, "skipVerifyTLS": true});
    let reading = reader.read_as(&spec, &[], basic("secret")).await;
    let trouble = format!("{:?}", reading.trouble);
    assert!(trouble.contains("token server without TLS"), "{trouble}");
    assert_eq!(realm.seen(), []);
}

/// A server that proves to be itself only to those who take its word for it.
fn by_its_own_word() -> Arc<rustls::ServerConfig> {
    let directory = tempfile::tempdir().unwrap();
    let (key, certificate) = key_pair(directory.path());
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

#[tokio::test]
async fn what_is_said_of_a_registrys_certificate_is_said_of_nobody_it_leads_to() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    registry
        .put("org/hello", "latest", &bundle("hello", "1.0.0"))
        .await;
    let secured = || Proxy::secured(&reader.tasks, Some(registry.port), by_its_own_word());
    let (home, secured_stranger) = (secured().await, secured().await);
    let plain_stranger = reader.proxy(&registry).await;
    let url = |proxy: &Proxy| format!("https://127.0.0.1:{}", proxy.port);
    let spec = json!({"url": url(&home), "skipVerifyTLS": true});
    let reading = reader.read(&spec, &[]).await;
    assert_eq!(words(&reading), ["org/hello:latest present 1.0.0"]);
    // Neither to whom nobody vouched for, nor away from TLS.
    for (stranger, leads_to) in [
        (&secured_stranger, url(&secured_stranger)),
        (&plain_stranger, plain_stranger.url()),
    ] {
        for path in ["_catalog", "/manifests/", "/blobs/"] {
            home.calm();
            let away = vec![("location", format!("{leads_to}/v2/elsewhere"))];
            home.fault(
                None,
                path,
                usize::MAX,
                Fault::Answer(307, away, String::new()),
            );
            // Known by another digest, so that it is looked at again.
            let known = [known("org/hello:latest", "")];
            reader.read(&spec, &known).await;
            let asked = |seen: &Seen| seen.path.contains(path);
            assert!(home.seen().iter().any(asked), "{path} is asked for");
            assert_eq!(stranger.seen(), [], "{leads_to}, {path}");
        }
    }
}

#[tokio::test]
async fn an_upload_that_is_sent_elsewhere_takes_no_password_along() {
    let (registry, reader) = (Registry::start().await, Reader::new());
    let proxy = reader.proxy(&registry).await;
    let stranger = Proxy::start(&reader.tasks, None).await;
    for answer in lures(&stranger.url()) {
        proxy.calm();
        stranger.calm();
        let wants = vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
        proxy.fault(None, "/v2/", 1, Fault::Answer(401, wants, String::new()));
        let away = vec![("location", format!("{}/v2/stolen", stranger.url()))];
        let away = Fault::Answer(202, away, String::new());
        proxy.fault(Some(Method::POST), "/uploads/", usize::MAX, away);
        stranger.fault(None, "/v2/stolen", usize::MAX, answer);
        let to = Destination {
            url: proxy.url(),
            repository: "org/pushed".to_owned(),
            tag: "v1".to_owned(),
            credentials: basic("secret"),
            skip_verify_tls: false,
        };
        let made = bundle("hello", "1.0.0");
        let pushed = reader.registries.push_to(&to, &made.image()).await;
        assert!(pushed.unwrap_err().to_string().contains("401"));
        let seen = stranger.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].authorization, None);
    }
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_not_connected_to() {
    let reader = Reader::new();
    let reading = reader
        .read(
            &json!({"url": "http://169.254.169.254"}),
            &[known("a:latest", "")],
        )
        .await;
    assert!(
        matches!(&reading.trouble, Some(Trouble::Unreachable(why)) if why.contains("not allowed")),
        "{reading:?}"
    );
    let fetch = Fetch {
        registry: "r".to_owned(),
        spec: Arc::new(registry_spec(&json!({"url": "http://169.254.169.254"}))),
        credentials: Credentials::None,
        repository: "a".to_owned(),
        location: "169.254.169.254/a".to_owned(),
        manifest_digest: bundle("a", "1").digest(),
    };
    assert!(
        reader
            .registries
            .keep(fetch)
            .await
            .unwrap_err()
            .to_string()
            .contains("not allowed")
    );
    let (registry, _) = (Registry::start().await, ());
    let alive = call(
        registry.port,
        Method::GET,
        "/v2/".to_owned(),
        None,
        None,
        Bytes::new(),
    )
    .await;
    assert_eq!(alive.0, 200);
}
