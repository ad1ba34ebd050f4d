//! The way to a server: which one, how to talk to it, and what to say when it does not answer.
//!
//! The kubeconfig decides: `--kubeconfig`, else the one in `--data-dir`, else `KUBECONFIG`, else the one `heddle serve` left
//! in the default data directory: what is on the command line beats what lies in the environment. A [`Remote`] then sends requests and turns every refusal into a
//! [`Failure`] that names the object. Which resources exist is `catalog.rs`; which of them a
//! command line means is `target.rs`; what is asked about events is `ledger.rs`, what is told as it
//! changes is `stream.rs`, where events are published is `events.rs`, and what is provisioned is `osb.rs`.

pub mod catalog;
pub mod events;
pub mod ledger;
pub mod objects;
pub mod osb;
pub mod reconnect;
#[cfg(test)]
pub mod stand_in;
pub mod stream;
pub mod target;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use clap::parser::ValueSource;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use serde_json::Value;

use crate::config::DATA_DIR_DEFAULT;
use crate::failure::Failure;

/// Under this name the fields we apply are owned.
pub const FIELD_MANAGER: &str = heddle_api::well_known::field_manager::CLI;

/// Which server a client command talks to.
#[derive(Clone, Debug)]
pub struct ClientArgs {
    pub kubeconfig: Option<std::ffi::OsString>,
    pub context: Option<String>,
    pub data_dir: PathBuf,
}

/// The same as it stands on the command line, or in the environment.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
struct ClientWords {
    /// Kubeconfig of the server; the default is the one `heddle serve` wrote
    #[arg(long, env = "KUBECONFIG", value_name = "FILE", hide_env_values = true)]
    kubeconfig: Option<std::ffi::OsString>,

    /// Context of the kubeconfig to use instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Where a local server keeps its files; `admin.kubeconfig` is looked up there, also when KUBECONFIG is set
    #[arg(long, env = "HEDDLE_DATA_DIR", value_name = "DIR", default_value = DATA_DIR_DEFAULT)]
    data_dir: PathBuf,
}

impl clap::Args for ClientArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        ClientWords::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        ClientWords::augment_args_for_update(command)
    }
}

impl clap::FromArgMatches for ClientArgs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        // Somebody who typed where the server is does not mean another one that a variable happens to name.
        let data_dir_decides = typed("data_dir") && !typed("kubeconfig");
        let words = ClientWords::from_arg_matches(matches)?;
        Ok(Self {
            kubeconfig: words.kubeconfig.filter(|_| !data_dir_decides),
            context: words.context,
            data_dir: words.data_dir,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl ClientArgs {
    /// The kubeconfig files in effect, first one first.
    pub fn kubeconfig_paths(&self) -> Vec<PathBuf> {
        let named = self
            .kubeconfig
            .as_deref()
            .map(std::env::split_paths)
            .into_iter()
            .flatten();
        let named: Vec<PathBuf> = named.filter(|path| !path.as_os_str().is_empty()).collect();
        if named.is_empty() {
            vec![self.data_dir.join("admin.kubeconfig")]
        } else {
            named
        }
    }
}

/// A server we can send requests to.
#[derive(Clone)]
pub struct Remote {
    client: kube::Client,
    /// The address, without a slash at the end.
    url: String,
    /// The address and where we have it from, for messages.
    place: String,
    /// The namespace of the kubeconfig's context.
    pub namespace: String,
}

/// What came back, before anybody looked at the body.
#[derive(Debug)]
pub struct ClientResponse {
    pub code: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Remote {
    /// Reads the kubeconfig. Nothing is sent yet. A server that asks for patience (429, 503) gets it.
    pub async fn connect(args: &ClientArgs) -> anyhow::Result<Self> {
        Self::connect_with(args, true).await
    }

    /// The same, but a server that is not ready is an answer and not a reason to ask again.
    pub async fn connect_once(args: &ClientArgs) -> anyhow::Result<Self> {
        Self::connect_with(args, false).await
    }

    /// A server at an address, without credentials. Each request is sent once.
    pub fn anonymous(url: http::Uri, place: String) -> anyhow::Result<Self> {
        Self::once(kube::Config::new(url), place)
    }

    /// A server that a configuration tells everything about. Each request is sent once.
    pub fn once(mut config: kube::Config, place: String) -> anyhow::Result<Self> {
        config.default_retry = false;
        Self::with(config, place)
    }

    async fn connect_with(args: &ClientArgs, patient: bool) -> anyhow::Result<Self> {
        let (mut config, shown) = configuration(args).await?;
        config.default_retry = patient;
        let place = format!("{} (from {shown})", address(&config));
        Self::with(config, place)
    }

    fn with(config: kube::Config, place: String) -> anyhow::Result<Self> {
        let url = address(&config);
        let namespace = config.default_namespace.clone();
        let client =
            kube::Client::try_from(config).with_context(|| format!("cannot use {place}"))?;
        Ok(Self {
            client,
            url,
            place,
            namespace,
        })
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where requests go, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The client itself, for code that speaks kube.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Sends and reads the whole answer, whatever its status.
    pub async fn send(&self, request: Request<impl Into<Body>>) -> anyhow::Result<ClientResponse> {
        let response = self.open(request).await?;
        let (parts, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .with_context(|| format!("the answer of {} broke off", self.place))?
            .to_bytes();
        Ok(ClientResponse {
            code: parts.status,
            headers: parts.headers,
            body,
        })
    }

    /// Sends and hands out the answer as it arrives, for watches.
    pub async fn open(&self, request: Request<impl Into<Body>>) -> anyhow::Result<Response<Body>> {
        let response = self.client.send(request.map(Into::into)).await;
        Ok(
            response
                .map_err(|error| Failure::Unreachable(unreachable_text(&self.place, &error)))?,
        )
    }
}

impl ClientResponse {
    /// The body, or what the server said about `object`.
    pub fn ok(self, object: &str) -> anyhow::Result<Value> {
        if self.code.is_success() {
            return serde_json::from_slice(&self.body)
                .with_context(|| format!("{object}: the answer is not JSON"));
        }
        Err(self.refusal(object).into())
    }

    /// What the server said about `object`, for an answer that is no success.
    pub fn refusal(&self, object: &str) -> Failure {
        refusal(object, self.code, &self.body)
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// One header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as text, for the few paths that answer in words.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The texts of `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all(http::header::WARNING).iter();
        values
            .filter_map(|value| value.to_str().ok())
            .map(warning_text)
            .collect()
    }
}

/// What a refused request means for `object`.
pub fn refusal(object: &str, code: StatusCode, body: &[u8]) -> Failure {
    let status = serde_json::from_slice::<Status>(body).unwrap_or_else(|_| {
        // Something that is no API server answered: show a little of it.
        let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
        Status::failure(text.trim(), "")
    });
    Failure::from_status(object, code, &status)
}

/// What the kubeconfig says, and from where it is.
pub async fn configuration(args: &ClientArgs) -> anyhow::Result<(kube::Config, String)> {
    let paths = args.kubeconfig_paths();
    let mut kubeconfig = Kubeconfig::default();
    for path in &paths {
        if !path.exists() {
            return Err(no_kubeconfig(path).into());
        }
        let next = Kubeconfig::read_from(path)
            .with_context(|| format!("cannot use kubeconfig {}", path.display()))?;
        kubeconfig = kubeconfig
            .merge(next)
            .with_context(|| format!("cannot merge kubeconfig {}", path.display()))?;
    }
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..Default::default()
    };
    let shown: Vec<String> = (paths.iter())
        .map(|path| path.display().to_string())
        .collect();
    let shown = shown.join(", ");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .with_context(|| format!("cannot use kubeconfig {shown}"))?;
    Ok((config, shown))
}

fn address(config: &kube::Config) -> String {
    config
        .cluster_url
        .to_string()
        .trim_end_matches('/')
        .to_owned()
}

fn no_kubeconfig(path: &Path) -> Failure {
    Failure::Unreachable(format!(
        "no server is known: {} does not exist; start one with `heddle serve`, or name a kubeconfig with --kubeconfig or KUBECONFIG",
        path.display()
    ))
}

/// The innermost cause says what happened (`connection refused`); the layers above repeat it.
fn unreachable_text(place: &str, error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    format!("no answer from {place}: {cause}; is `heddle serve` running there?")
}

/// `299 - "text"` as `text`.
fn warning_text(header: &str) -> String {
    let quoted = header
        .split_once('"')
        .and_then(|(_, rest)| rest.rsplit_once('"'));
    quoted
        .map_or(header, |(text, _)| text)
        .replace("\\\"", "\"")
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kubeconfig: Option<&str>) -> ClientArgs {
        ClientArgs {
            kubeconfig: kubeconfig.map(Into::into),
            context: None,
            data_dir: "here".into(),
        }
    }

    #[test]
    fn an_empty_kubeconfig_variable_means_none() {
        assert_eq!(
            args(Some("")).kubeconfig_paths(),
            [PathBuf::from("here/admin.kubeconfig")]
        );
        assert_eq!(
            args(None).kubeconfig_paths(),
            [PathBuf::from("here/admin.kubeconfig")]
        );
        assert_eq!(
            args(Some("a:b")).kubeconfig_paths(),
            [PathBuf::from("a"), PathBuf::from("b")]
        );
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        client: ClientArgs,
    }

    /// The variable cannot be set in a test, so a flag stands for it: clap tells them apart only by where they are from.
    #[test]
    fn a_data_directory_that_was_typed_beats_a_kubeconfig_that_was_not() {
        use clap::Parser as _;
        let paths = |words: &[&str]| {
            let words = ["heddle"].iter().chain(words);
            Line::try_parse_from(words)
                .unwrap()
                .client
                .kubeconfig_paths()
        };
        let in_dir = [PathBuf::from("d/admin.kubeconfig")];
        assert_eq!(paths(&["--data-dir", "d"]), in_dir);
        let both = paths(&["--data-dir", "d", "--kubeconfig", "k"]);
        assert_eq!(both, [PathBuf::from("k")]);
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_names_the_file_and_the_remedy() {
        let error = Remote::connect(&args(Some("/nowhere/config")))
            .await
            .unwrap_err();
        assert_eq!(crate::failure::exit_code(&error), 6);
        assert!(
            error
                .to_string()
                .contains("/nowhere/config does not exist; start one with `heddle serve`"),
            "{error}"
        );
    }

    #[test]
    fn warnings_lose_their_wrapping() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.x\"""#),
            r#"unknown field "spec.x""#
        );
        assert_eq!(warning_text("plain"), "plain");
    }

    #[test]
    fn an_answer_that_is_no_status_is_shown_in_part() {
        let failure = refusal(
            "secret/a",
            StatusCode::BAD_GATEWAY,
            b"<html>no upstream</html>",
        );
        assert_eq!(failure.to_string(), "secret/a: <html>no upstream</html>");
    }
}
