//! Who may publish where, as a matrix: everybody at every door.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use kube::client::Body;
use kube::config::Kubeconfig;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::stage::{self, TEAM, broker, event};
use super::wire::Wire;
use crate::harness::{Server, eventually, write};

/// What is published to, and two questions, which are for the administrator alone.
const DOORS: [&str; 9] = [
    "/shop/events",
    "/crm/events",
    "/channel/kyma-integration/shop",
    "/channel/kyma-integration/crm",
    "/broker/team-a/default",
    "/broker/team-a/second",
    "/channel/team-a/own",
    "/heddle/v1/trace?id=1",
    "/heddle/v1/dead-letters",
];

/// An authority for publishers' certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// The certificate and the key of somebody.
    fn issue(&self, name: &str, tenant: Option<&str>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(tenant) = tenant {
            params
                .distinguished_name
                .push(DnType::OrganizationName, tenant);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn application(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn policy(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
        "metadata": {"namespace": TEAM, "name": name}, "spec": spec,
    })
}

/// Two applications, two brokers, a channel, and policies: the shop may publish to one broker, the CRM pings to the channel.
async fn set_up(server: Server) -> Server {
    stage::set_up(&server).await;
    server.apply(&broker("second")).await;
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "metadata": {"namespace": TEAM, "name": "own"},
    });
    server.apply(&channel).await;
    server.apply(&application("shop", json!({}))).await;
    server
        .apply(&application("crm", json!({"tenant": "acme"})))
        .await;
    let to = |kind: &str, name: &str| json!([{"ref": {"kind": kind, "name": name}}]);
    let shop = json!({"to": to("Broker", "default"), "from": [{"sub": "application/shop"}]});
    let crm = json!({
        "to": to("Channel", "own"), "from": [{"ref": {"kind": "Application", "name": "crm"}}],
        "filters": [{"exact": {"type": "ping"}}],
    });
    server.apply(&policy("shop", shop)).await;
    server.apply(&policy("crm", crm)).await;
    for (plural, name) in [
        ("brokers", "second"),
        ("channels", "own"),
        ("applications", "shop"),
        ("applications", "crm"),
    ] {
        server.until_ready(plural, name).await;
    }
    server
}

/// The token of an Application, and that the listener knows it.
async fn token_of(server: &Server, application: &str, but_not: &str) -> String {
    let path = format!("/api/v1/namespaces/kyma-integration/secrets/{application}-publisher");
    eventually("a token that the listener knows", async || {
        let secret = server.ask("GET", &path, &[], b"").await.json();
        let token = BASE64_STANDARD
            .decode(secret["data"]["token"].as_str()?)
            .unwrap();
        let token = String::from_utf8(token).unwrap();
        let door = format!("/{application}/events");
        let known = publish(server, &door, "ping", Some(&token)).await == 202;
        (known && token != but_not).then_some(token)
    })
    .await
}

async fn publish(server: &Server, door: &str, type_: &str, token: Option<&str>) -> u16 {
    let url = if door.starts_with("/heddle") {
        &server.control
    } else {
        &server.events
    };
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = event("1", type_).to_vec();
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let method = if door.starts_with("/heddle") {
        "GET"
    } else {
        "POST"
    };
    let answer = Wire::to(url)
        .ask(method, door, &headers, b"")
        .await
        .unwrap();
    let status = answer.status();
    if status == 401 || status == 403 {
        let code = if status == 401 {
            "unauthorized"
        } else {
            "forbidden"
        };
        assert_eq!(answer.json()["code"], code, "{}", answer.text());
    }
    status
}

/// What one identity is answered at every door.
async fn row(server: &Server, token: Option<&str>) -> [u16; 9] {
    let mut row = [0; 9];
    for (status, door) in row.iter_mut().zip(DOORS) {
        *status = publish(server, door, "ping", token).await;
    }
    row
}

/// A client that shows a certificate and trusts the server, and what it is answered.
async fn with_certificate(
    server: &Server,
    (certificate, key): &(String, String),
    door: &str,
) -> u16 {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.auth_info.token = None;
    config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
    config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(key).into());
    config.cluster_url = server
        .events
        .replace("http://", "https://")
        .parse()
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let mut request = Request::post(door);
    for (name, value) in event("1", "ping") {
        request = request.header(name, value);
    }
    let response = client.send(request.body(Body::empty()).unwrap()).await;
    response.unwrap().status().as_u16()
}

#[tokio::test]
async fn everybody_at_every_door_is_answered_as_the_matrix_says() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.pem");
    write(&path, &authority.pem);
    let path: &'static str = Box::leak(path.display().to_string().into_boxed_str());
    let args = vec!["--events-require-identity", "--events-client-ca", path];
    let server =
        set_up(Server::start_with("debug", Box::leak(args.into_boxed_slice())).await).await;
    let shop = token_of(&server, "shop", "").await;
    let crm = token_of(&server, "crm", "").await;
    let admin = server.token();
    assert_eq!(row(&server, None).await, [401; 9]);
    assert_eq!(row(&server, Some("nobody's")).await, [401; 9]);
    assert_eq!(
        row(&server, Some(&admin)).await,
        [202, 202, 202, 202, 202, 202, 202, 200, 200]
    );
    assert_eq!(
        row(&server, Some(&shop)).await,
        [202, 403, 202, 403, 202, 403, 403, 401, 401]
    );
    assert_eq!(
        row(&server, Some(&crm)).await,
        [403, 202, 403, 202, 403, 403, 202, 401, 401]
    );
    assert_eq!(
        publish(&server, "/channel/team-a/own", "pong", Some(&crm)).await,
        403
    );
    // Whether something exists is not told to who may not publish there.
    assert_eq!(
        publish(&server, "/none/events", "ping", Some(&shop)).await,
        403
    );
    assert_eq!(
        publish(&server, "/broker/none/none", "ping", Some(&shop)).await,
        403
    );

    let of_shop = authority.issue("shop", None);
    let expected = [202, 403, 202, 403, 202, 403, 403];
    for (door, expected) in DOORS.into_iter().zip(expected) {
        assert_eq!(
            with_certificate(&server, &of_shop, door).await,
            expected,
            "{door}"
        );
    }
    let of_crm = authority.issue("crm", Some("acme"));
    assert_eq!(with_certificate(&server, &of_crm, "/crm/events").await, 202);
    for stranger in [
        authority.issue("crm", None),
        authority.issue("nobody", None),
    ] {
        assert_eq!(
            with_certificate(&server, &stranger, "/crm/events").await,
            401
        );
    }
}

#[tokio::test]
async fn on_this_machine_nobody_is_asked_and_who_says_something_must_be_right() {
    let server = set_up(Server::start().await).await;
    assert_eq!(
        row(&server, None).await,
        [202, 202, 202, 202, 202, 202, 202, 401, 401]
    );
    assert_eq!(row(&server, Some("nobody's")).await, [401; 9]);
    let shop = token_of(&server, "shop", "").await;
    assert_eq!(
        row(&server, Some(&shop)).await,
        [202, 403, 202, 403, 202, 403, 403, 401, 401]
    );
    // The policies say what they are worth here.
    let condition = server
        .until_condition("eventpolicies", "shop", "AuthenticationEnabled", "False")
        .await;
    assert_eq!(condition["reason"], "AuthenticationDisabled");
}

#[tokio::test]
async fn deleting_the_secret_gives_an_application_another_token() {
    let server = set_up(Server::start().await).await;
    let first = token_of(&server, "shop", "").await;
    let path = "/api/v1/namespaces/kyma-integration/secrets/shop-publisher";
    assert_eq!(server.ask("DELETE", path, &[], b"").await.status(), 200);
    let second = token_of(&server, "shop", &first).await;
    assert_ne!(first, second);
    eventually("the old token to count no longer", async || {
        let status = publish(&server, "/shop/events", "ping", Some(&first)).await;
        (status == 401).then_some(())
    })
    .await;
}
