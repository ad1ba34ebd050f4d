//! Where events are published: the events listener, found by flag, environment or `endpoints.json`.
//!
//! A running server leaves `endpoints.json` beside its kubeconfig, so whoever can talk to the
//! resource API also knows where events go. Publishing on loopback needs no credentials, and none
//! are ever sent: an address on the command line could be anybody's.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::{ClientArgs, Remote};
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
}

impl EventsArgs {
    /// The listener. Nothing is sent yet.
    pub(crate) fn connect(&self, client: &ClientArgs) -> anyhow::Result<Remote> {
        let named = self.events.as_deref().filter(|url| !url.is_empty());
        if let Some(url) = named {
            return at(url, url.to_owned());
        }
        let path = endpoints(client);
        let url = published(&path)?;
        at(&url, format!("{url} (from {})", path.display()))
    }
}

fn at(url: &str, place: String) -> anyhow::Result<Remote> {
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
    Remote::anonymous(uri, place)
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

    fn place(events: Option<&str>, client: &ClientArgs) -> Result<String, String> {
        let args = EventsArgs {
            events: events.map(str::to_owned),
        };
        let remote = args.connect(client);
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
                .unwrap()
                .starts_with("http://127.0.0.1:2 (from ")
        );
        write(
            &served.path().join(ENDPOINTS),
            r#"{"events": "http://127.0.0.1:1"}"#,
        );
        assert!(
            place(None, &named)
                .unwrap()
                .starts_with("http://127.0.0.1:1 (from ")
        );
        assert!(
            place(None, &client(None, default.path()))
                .unwrap()
                .starts_with("http://127.0.0.1:2 (from ")
        );
        assert_eq!(
            place(Some("http://127.0.0.1:3"), &named).unwrap(),
            "http://127.0.0.1:3"
        );
        assert!(
            place(Some(""), &named).unwrap().contains(":1 (from "),
            "an empty variable means none"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_an_address_is_refused_with_an_example() {
        let folder = tempfile::tempdir().unwrap();
        let client = client(None, folder.path());
        for wrong in ["127.0.0.1:4334", "/events", "ftp://a"] {
            let said = place(Some(wrong), &client).unwrap_err();
            assert!(said.contains("http://127.0.0.1:4334"), "{said}");
        }
        let said = place(None, &client).unwrap_err();
        assert!(said.contains("does not exist; start a server"), "{said}");
        write(
            &folder.path().join(ENDPOINTS),
            r#"{"control": "http://127.0.0.1:1"}"#,
        );
        let said = place(None, &client).unwrap_err();
        assert!(said.contains("names no events listener"), "{said}");
    }
}
