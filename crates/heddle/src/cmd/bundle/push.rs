//! `heddle bundle push`: from a directory to an image, and to where it is offered from.
//!
//! Without `--to` the image goes to the server itself, into a registry that it keeps, and is read at once. With `--to` it goes
//! to somebody's registry, and becomes an offering when that one is read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::evidence::Credentials;
use heddle_api::well_known::SYNC_ANNOTATION;
use heddle_api::{Bundle, Registry, names};
use heddle_bundles::images::Image;
use heddle_bundles::registries::{self, ClientDeps, Destination, Patience, PushError};
use heddle_rt::Tasks;
use heddle_rt::net::dial::Network;
use heddle_rt::net::egress::Egress;
use http::Request;
use kube::Resource as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::make;
use crate::bundles::{PUSH_PATH, parcel};
use crate::client::{ClientArgs, FIELD_MANAGER, Remote, objects};
use crate::failure::Failure;
use crate::files;
use crate::terminal::Terminal;
use crate::wire::World;

/// The registry that the server keeps for what is pushed to it.
const PUSHED: &str = "push";
/// How long a pushed image may take to be read.
const READ_WAIT_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  heddle bundle push my-db                       offered by this server at once
  heddle bundle push my-db --as acme/my-db:v2    under a name of its own
  heddle bundle push my-db --to http://127.0.0.1:5000/acme/my-db:v1
  heddle bundle push my-db --to https://registry.example/acme/my-db:v1 --username me --password-stdin";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct Args {
    /// Directory of the bundle
    directory: PathBuf,

    /// What the image is called on this server; the default is the name of the directory, and `latest`
    #[arg(long = "as", value_name = "REPOSITORY:TAG", conflicts_with = "to")]
    name: Option<String>,

    /// Push to this registry instead
    #[arg(long, value_name = "URL/REPOSITORY:TAG")]
    to: Option<String>,

    /// Who pushes, for a registry that asks
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    username: Option<String>,

    /// Read the password from standard input
    #[arg(long, requires = "username")]
    password_stdin: bool,

    /// Take the registry's certificate as it is
    #[arg(long, requires = "to")]
    skip_verify_tls: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn push(
    args: &Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let image = make::image(&args.directory)?;
    match &args.to {
        Some(to) => push_out(args, to, &image, world, terminal).await,
        None => push_in(args, &image, world, terminal).await,
    }
}

async fn push_out(
    args: &Args,
    to: &str,
    image: &Image,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let (url, repository, tag) = destination(to)?;
    let credentials = match &args.username {
        Some(username) => Credentials::Basic {
            username: username.clone(),
            password: files::read_stdin()?
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        },
        None => Credentials::None,
    };
    let tasks = Tasks::new("push");
    let deps = ClientDeps {
        tasks: tasks.clone(),
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        connect: Arc::new(Network::new(world.clock.clone(), Egress::default())),
        patience: Patience::default(),
    };
    let destination = Destination {
        url,
        repository,
        tag,
        credentials,
        skip_verify_tls: args.skip_verify_tls,
    };
    let pushed = registries::push_to(&deps, &destination, image).await;
    tasks.cancel();
    let digest = pushed.map_err(|error| match error {
        PushError::Invalid(text) => Failure::Usage(text),
        error @ PushError::Refused(_) => Failure::Refused(format!("{to}: {error}")),
        error @ PushError::Unavailable(_) => Failure::Unreachable(format!("{to}: {error}")),
    })?;
    Ok(terminal.say(&format!("pushed {to}, {digest}"))?)
}

async fn push_in(
    args: &Args,
    image: &Image,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let (repository, tag) = name(args)?;
    let remote = Remote::connect(&args.client).await?;
    let body = parcel(&repository, &tag, image).to_string();
    let request = Request::post(format!("/heddle/v1{PUSH_PATH}"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.into_bytes())?;
    let answer = remote.send(request).await?;
    let said = answer.ok(&format!("image {repository}:{tag}"))?;
    let digest = said["digest"].as_str().unwrap_or_default().to_owned();
    ensure_registry(&remote).await?;
    let request = format!("{digest}-{}", world.chance.suffix(5));
    let _: Registry = objects::annotate(&remote, PUSHED, SYNC_ANNOTATION, Some(&request)).await?;
    terminal.say(&format!("pushed {repository}:{tag}, {digest}"))?;
    let image = (repository.as_str(), tag.as_str(), digest.as_str());
    until_read(&remote, &request, image, world, terminal).await
}

/// The registry of pushed images, made when it is first needed.
async fn ensure_registry(remote: &Remote) -> anyhow::Result<()> {
    let found: Option<Registry> = objects::one(remote, None, PUSHED).await?;
    if found.is_some() {
        return Ok(());
    }
    let registry = json!({
        "apiVersion": Registry::api_version(&()), "kind": Registry::kind(&()),
        "metadata": {"name": PUSHED},
        "spec": {"type": "push", "whiteList": [".*"]},
    });
    let path = Registry::url_path(&(), None);
    let params = PatchParams::apply(FIELD_MANAGER);
    let request = kube::core::Request::new(path).patch(PUSHED, &params, &Patch::Apply(registry))?;
    remote.send(request).await?.ok("registry push")?;
    Ok(())
}

async fn until_read(
    remote: &Remote,
    request: &str,
    image: (&str, &str, &str),
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let deadline = world.clock.monotonic() + READ_WAIT_MAX;
    loop {
        let registry: Option<Registry> = objects::one(remote, None, PUSHED).await?;
        let status = registry.and_then(|registry| registry.status);
        let answered = status.and_then(|status| status.answered_request);
        if answered.as_deref() == Some(request) && is_offered(remote, image).await? {
            terminal.note("`heddle catalog -A` shows it");
            return Ok(());
        }
        if world.clock.monotonic() >= deadline {
            let text = "the image is kept and not offered yet; `heddle registry ls` and `heddle bundle ls` say why";
            return Err(Failure::TimedOut(text.to_owned()).into());
        }
        world.clock.sleep(POLL).await;
    }
}

/// Whether the bundle of an image is offered in just this form.
async fn is_offered(remote: &Remote, image: (&str, &str, &str)) -> anyhow::Result<bool> {
    let (repository, tag, digest) = image;
    let name = names::bundle(PUSHED, repository, tag);
    let bundle: Option<Bundle> = objects::one(remote, None, &name).await?;
    let status = bundle.and_then(|bundle| bundle.status).unwrap_or_default();
    let current = status.current_revision.as_deref();
    Ok(current == Some(names::revision(&name, digest).as_str()))
}

/// Address, repository and tag out of `http://host:port/repository:tag`.
fn destination(to: &str) -> Result<(String, String, String), Failure> {
    let bad = || {
        let text = format!("`{to}` is no place to push to; write http://HOST/REPOSITORY:TAG");
        Failure::Usage(text)
    };
    let (scheme, rest) = to.split_once("://").ok_or_else(bad)?;
    let (host, image) = rest.split_once('/').ok_or_else(bad)?;
    let (repository, tag) = split(image);
    if host.is_empty() || repository.is_empty() || tag.is_empty() {
        return Err(bad());
    }
    Ok((format!("{scheme}://{host}"), repository, tag))
}

fn name(args: &Args) -> Result<(String, String), Failure> {
    // So that `.` has a name, too.
    let path = std::path::absolute(&args.directory).unwrap_or_else(|_| args.directory.clone());
    let last = path.file_name().and_then(|name| name.to_str());
    let Some(text) = args.name.as_deref().or(last) else {
        let text = "a name is needed: --as REPOSITORY:TAG";
        return Err(Failure::Usage(text.to_owned()));
    };
    Ok(split(text))
}

/// The tag is `latest` where none is named.
fn split(image: &str) -> (String, String) {
    let (repository, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    (repository.to_owned(), tag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_a_repository_and_a_tag() {
        let (url, repository, tag) = destination("http://127.0.0.1:5000/acme/db:v1").unwrap();
        assert_eq!(
            (url.as_str(), repository.as_str()),
            ("http://127.0.0.1:5000", "acme/db")
        );
        assert_eq!(tag, "v1");
        assert_eq!(destination("https://r/acme/db").unwrap().2, "latest");
        for bad in [
            "acme/db:v1",
            "http://host",
            "http:///db",
            "http://host/",
            "http://host/db:",
        ] {
            assert!(destination(bad).is_err(), "{bad}");
        }
    }
}
