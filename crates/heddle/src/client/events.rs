//! Where events are published: the events listener, found by flag, environment or `endpoints.json`.
//!
//! A running server leaves `endpoints.json` beside its kubeconfig, so whoever can talk to the
//! resource API also knows where events go. Over TLS the listener must show a certificate of the kubeconfig's authority, if
//! that names one; only then is the kubeconfig's token sent, since any other address could be anybody's. A token that was
//! given for publishing goes wherever it was meant to go, but not over a network in the clear.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::{ClientArgs, Remote, configuration};
use crate::failure::Failure;
use crate::files;

const ENDPOINTS: &str = "endpoints.json";

/// Which events listener a command publishes to.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct EventsArgs {
    /// Address of the events listener; the default is the one in the server's `endpoints.json`
    #[arg(long, env = "HEDDLE_EVENTS", value_name = "URL")]
    pub(crate) events: Option<String>,

    /// Token to publish with, an Application's for example; the default is the kubeconfig's, where its authority is met
    #[arg(
        long,
        env = "HEDDLE_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
}

impl EventsArgs {
    /// The listener. Nothing is sent yet.
    pub(crate) async fn connect(&self, client: &ClientArgs) -> anyhow::Result<Remote> {
        let named = self.events.as_deref().filter(|url| !url.is_empty());
        let (url, place) = match named {
            Some(url) => (url.to_owned(), url.to_owned()),
            None => {
                let path = endpoints(client);
                let url = published(&path)?;
                let place = format!("{url} (from {})", path.display());
                (url, place)
            }
        };
        let uri = listener(&url)?;
        let token = self.token.as_deref().filter(|token| !token.is_empty());
        let mut config = kube::Config::new(uri.clone());
        if uri.scheme_str() == Some("https") {
            trust_the_kubeconfig(&mut config, client).await?;
        } else if token.is_some() && !is_this_machine(&uri) {
            let text = format!("a token is not sent to {url} in the clear; write https://");
            return Err(Failure::Usage(text).into());
        }
        if let Some(token) = token {
            config.auth_info.token = Some(token.to_owned().into());
        }
        Remote::once(config, place)
    }
}

/// The authority of the kubeconfig and, as only its own server can show a certificate of it, the token beside it. Without a
/// kubeconfig the authorities of this machine decide, and no token is known.
async fn trust_the_kubeconfig(
    config: &mut kube::Config,
    client: &ClientArgs,
) -> anyhow::Result<()> {
    if !client.kubeconfig_paths().iter().any(|path| path.exists()) {
        return Ok(());
    }
    let (known, _) = configuration(client).await?;
    trust(config, known);
    Ok(())
}

fn trust(config: &mut kube::Config, known: kube::Config) {
    if known.root_cert.is_some() && !known.accept_invalid_certs {
        config.auth_info.token = known.auth_info.token;
    }
    config.root_cert = known.root_cert;
    config.accept_invalid_certs = known.accept_invalid_certs;
}

fn is_this_machine(uri: &http::Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn listener(url: &str) -> anyhow::Result<http::Uri> {
    let wrong = |reason: &str| {
        Failure::Usage(format!(
            "`{url}` is no address of an events listener: {reason}; write for example http://127.0.0.1:4334"
        ))
    };
    let uri: http::Uri =
        (url.parse()).map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        return Err(wrong("it needs http:// or https:// and a host").into());
    }
    Ok(uri)
}

/// The file a server leaves beside its kubeconfig.
fn endpoints(client: &ClientArgs) -> PathBuf {
    let beside = |path: &PathBuf| {
        path.parent()
            .map(|folder| folder.join(ENDPOINTS))
            .filter(|path| path.exists())
    };
    (client.kubeconfig_paths().iter())
        .find_map(beside)
        .unwrap_or_else(|| client.data_dir.join(ENDPOINTS))
}

/// What the file says about events.
fn published(path: &Path) -> anyhow::Result<String> {
    let remedy = "name the listener with --events or HEDDLE_EVENTS";
    if !path.exists() {
        let text = format!(
            "no events listener is known: {} does not exist; start a server with `heddle serve`, or {remedy}",
            path.display()
        );
        return Err(Failure::Unreachable(text).into());
    }
    let endpoints: Value = serde_json::from_str(&files::read_text(path)?)
        .with_context(|| format!("{} is not JSON", path.display()))?;
    let Some(url) = endpoints["events"].as_str() else {
        let text = format!("{} names no events listener; {remedy}", path.display());
        return Err(Failure::Unreachable(text).into());
    };
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use heddle_rt::{DiskVfs, Vfs as _};

    use super::*;

    fn client(kubeconfig: Option<&Path>, data_dir: &Path) -> ClientArgs {
        ClientArgs {
            kubeconfig: kubeconfig.map(Into::into),
            context: None,
            data_dir: data_dir.to_path_buf(),
        }
    }

    fn write(path: &Path, text: &str) {
        DiskVfs.write_atomic(path, text.as_bytes(), 0o644).unwrap();
    }

    async fn place(events: Option<&str>, client: &ClientArgs) -> Result<String, String> {
        let args = EventsArgs {
            events: events.map(str::to_owned),
            token: None,
        };
        let remote = args.connect(client).await;
        remote
            .map(|remote| remote.place().to_owned())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_listener_is_the_flag_then_the_file_beside_the_kubeconfig_then_the_data_directory()
    {
        let (served, default) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kubeconfig = served.path().join("admin.kubeconfig");
        let named = client(Some(&kubeconfig), default.path());
        write(
            &default.path().join(ENDPOINTS),
            r#"{"events": "http://127.0.0.1:2"}"#,
        );
        assert!(
            place(None, &named)
                .await
                .unwrap()
                .starts_with("http://127.0.0.1:2 (from ")
        );
        write(
            &served.path().join(ENDPOINTS),
            r#"{"events": "http://127.0.0.1:1"}"#,
        );
        assert!(
            place(None, &named)
                .await
                .unwrap()
                .starts_with("http://127.0.0.1:1 (from ")
        );
        assert!(
            place(None, &client(None, default.path()))
                .await
                .unwrap()
                .starts_with("http://127.0.0.1:2 (from ")
        );
        assert_eq!(
            place(Some("http://127.0.0.1:3"), &named).await.unwrap(),
            "http://127.0.0.1:3"
        );
        assert!(
            place(Some(""), &named).await.unwrap().contains(":1 (from "),
            "an empty variable means none"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_an_address_is_refused_with_an_example() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(None, folder.path());
        for wrong in ["127.0.0.1:4334", "/events", "ftp://a"] {
            let said = place(Some(wrong), &client).await.unwrap_err();
            assert!(said.contains("http://127.0.0.1:4334"), "{said}");
        }
        let said = place(None, &client).await.unwrap_err();
        assert!(said.contains("does not exist; start a server"), "{said}");
        write(
            &folder.path().join(ENDPOINTS),
            r#"{"control": "http://127.0.0.1:1"}"#,
        );
        let said = place(None, &client).await.unwrap_err();
        assert!(said.contains("names no events listener"), "{said}");
    }

    #[test]
    fn the_token_of_a_kubeconfig_is_lent_only_to_whom_its_authority_vouches_for() {
        let anybody = || kube::Config::new("https://heddle.example:4334".parse().unwrap());
        let authority = || Some(vec![vec![1, 2, 3]]);
        for (root_cert, accept_invalid_certs, lent) in [
            (authority(), false, true),
            (authority(), true, false),
            (None, false, false),
            (None, true, false),
        ] {
            let mut known = anybody();
            known.auth_info.token = Some("secret".to_owned().into());
            (known.root_cert, known.accept_invalid_certs) =
                (root_cert.clone(), accept_invalid_certs);
            let mut config = anybody();
            trust(&mut config, known);
            assert_eq!(
                config.auth_info.token.is_some(),
                lent,
                "{root_cert:?} {accept_invalid_certs}"
            );
            assert_eq!(config.root_cert, root_cert);
        }
    }

    #[tokio::test]
    async fn a_token_does_not_cross_a_network_in_the_clear() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(None, folder.path());
        let to = async |url: &str| {
            let args = EventsArgs {
                events: Some(url.to_owned()),
                token: Some("secret".to_owned()),
            };
            args.connect(&client).await.map(drop)
        };
        for fine in [
            "http://127.0.0.1:4334",
            "http://[::1]:4334",
            "http://localhost:4334",
            "https://heddle.example:4334",
        ] {
            to(fine).await.unwrap();
        }
        for wrong in [
            "http://heddle.example:4334",
            "http://127.0.0.1.example:4334",
        ] {
            let said = to(wrong).await.unwrap_err().to_string();
            assert!(said.contains("write https://"), "{said}");
        }
    }
}
