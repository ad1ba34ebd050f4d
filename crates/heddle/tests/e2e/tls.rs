//! One port, two languages: TLS for whoever holds the authority, plain HTTP on loopback.

use std::path::Path;

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::harness::{Outcome, Server, heddle, read, write};

async fn version(client: &kube::Client) -> Result<StatusCode, kube::Error> {
    let response = client
        .send(Request::get("/version").body(Body::empty()).unwrap())
        .await?;
    let code = response.status();
    response.into_body().collect().await.unwrap();
    Ok(code)
}

/// A client made from a kubeconfig after `change`.
async fn client(server: &Server, change: impl FnOnce(&mut kube::Config)) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
    assert_eq!(config.cluster_url.scheme_str(), Some("https"));
    change(&mut config);
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn the_kubeconfig_gives_access_over_tls_by_every_local_name() {
    let server = Server::start().await;
    assert_eq!(
        version(&server.client().await).await.unwrap(),
        StatusCode::OK
    );
    let port = server.control.rsplit_once(':').unwrap().1;
    let by_name = client(&server, |config| {
        config.cluster_url = format!("https://localhost:{port}").parse().unwrap()
    })
    .await;
    assert_eq!(version(&by_name).await.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn plain_http_on_the_same_port_still_asks_for_the_token() {
    let server = Server::start().await;
    assert!(server.control.starts_with("http://127.0.0.1:"));
    assert_eq!(server.get("/version").await.code, StatusCode::UNAUTHORIZED);
    let request = Request::get("/version").body(Vec::new()).unwrap();
    assert_eq!(server.admin(request).await.code, StatusCode::OK);
}

/// Lists namespaces with this kubeconfig.
fn namespaces_with(kubeconfig: &Path) -> Outcome {
    let mut command = heddle();
    command.args(["get", "ns"]).env("KUBECONFIG", kubeconfig);
    Outcome::of(command.output().unwrap())
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (server, stranger) = (Server::start().await, Server::start().await);
    let authority = |server: &Server| {
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
        kubeconfig.clusters[0]
            .cluster
            .clone()
            .unwrap()
            .certificate_authority_data
            .unwrap()
    };
    // Our address and token, somebody else's authority.
    let mixed = read(&server.kubeconfig()).replace(&authority(&server), &authority(&stranger));
    let path = server.data().join("mixed.kubeconfig");
    write(&path, &mixed);
    let outcome = namespaces_with(&path);
    assert_eq!(outcome.code, Some(6), "{outcome:?}");
    assert!(outcome.err.contains("certificate"), "{}", outcome.err);
}

#[tokio::test]
async fn a_wrong_token_over_tls_is_refused_with_the_remedy() {
    let server = Server::start().await;
    let path = server.data().join("wrong.kubeconfig");
    write(
        &path,
        &read(&server.kubeconfig()).replace(&server.token(), "wrong"),
    );
    let outcome = namespaces_with(&path);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(outcome.err.contains("token"), "{}", outcome.err);
}

#[tokio::test]
async fn a_restart_keeps_the_authority_so_old_kubeconfigs_work() {
    let mut server = Server::start().await;
    let port = server.control.rsplit_once(':').unwrap().1.to_owned();
    let before = server.client().await;
    assert_eq!(version(&before).await.unwrap(), StatusCode::OK);
    server.kill();
    server.launch_on(&port).await;
    // The same client: its pinned authority must still vouch for the new certificate.
    assert_eq!(
        version(&client(&server, |_| {}).await).await.unwrap(),
        StatusCode::OK
    );
    assert_eq!(version(&before).await.unwrap(), StatusCode::OK);
}
