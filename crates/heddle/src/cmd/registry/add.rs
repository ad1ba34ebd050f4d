//! `heddle registry add`: a Registry, and the Secret that opens it.
//!
//! The Registry is tried first without storing it, so that one that the server refuses leaves no Secret behind.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_api::Registry;
use heddle_api::registry::{NamedTag, RegistryType};
use heddle_api::well_known::SYSTEM_NAMESPACE;
use heddle_bundles::registries::check_pattern;
use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource as _;
use kube::api::PostParams;
use kube::core::params::GetParams;
use serde_json::{Value, json};

use crate::asb;
use crate::client::{ClientArgs, FIELD_MANAGER, Remote};
use crate::failure::Failure;
use crate::output::ReportFormat;
use crate::registries::{self, RegistryObjects};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle registry add dh --type dockerhub --org ansibleplaybookbundle --allow '.*-apb$'
  heddle registry add lab --type apiv2 --url https://registry.example:5000 --allow 'team/.*' --deny '.*-test'
  heddle registry add lab --type apiv2 --url https://registry.example --allow '.*' --username ann --password-stdin
  heddle registry add dh --type dockerhub --org acme --named hello-apb:v1.0 --named hello-apb:v2.0
  heddle registry add files --type oci-layout --url /srv/bundles --allow '.*'
  heddle registry add charts --type helm --url https://charts.example/stable --runner ghcr.io/acme/helm-runner:v1 --network --allow redis
  heddle registry add -f broker-config.yaml  the `registry:` block of an Automation Service Broker

A repository is offered when it matches one of --allow and none of --deny; an expression is matched against all of the
repository's name. Tags given with --named need no --allow, and each is an offering of its own. Credentials go into a
Secret of namespace heddle-system, which stays when the registry is deleted.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct Args {
    /// Name of the registry; ids of its offerings are made from it
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,

    /// The `registry:` block of an Automation Service Broker, or its whole configuration; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    credentials: CredentialArgs,

    /// Replace a registry of that name and its credentials
    #[arg(long)]
    replace: bool,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// Where the registry is.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// How the registry is spoken to
    #[arg(long = "type", value_parser = clap::builder::PossibleValuesParser::new(registries::TYPES), required_unless_present = "file", conflicts_with = "file", value_name = "TYPE")]
    type_: Option<String>,

    /// Its address; of an oci-layout, the path of the directory
    #[arg(long, conflicts_with = "file")]
    url: Option<String>,

    /// Organisation whose repositories are looked at
    #[arg(long, conflicts_with = "file")]
    org: Option<String>,

    /// Image that carries out actions on charts, as HOST/REPOSITORY:TAG; for type helm
    #[arg(long, conflicts_with = "file", value_name = "IMAGE")]
    runner: Option<String>,

    /// Let actions connect to others, through a proxy and by the egress rules
    #[arg(long, conflicts_with = "file")]
    network: bool,

    /// Accept the registry's certificate unverified
    #[arg(long, conflicts_with = "file")]
    skip_verify_tls: bool,

    /// Seconds between two readings [default: 600]
    #[arg(long, conflicts_with = "file", value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1..))]
    refresh: Option<i32>,
}

/// What of it is offered.
#[derive(Debug, clap::Args)]
struct ChoiceArgs {
    /// Regular expression of repositories to offer; may be repeated
    #[arg(long, conflicts_with = "file", value_name = "REGEX")]
    allow: Vec<String>,

    /// Regular expression of repositories not to offer; may be repeated
    #[arg(long, conflicts_with = "file", value_name = "REGEX")]
    deny: Vec<String>,

    /// The tag that is looked at in every repository [default: latest]
    #[arg(long, conflicts_with = "file")]
    tag: Option<String>,

    /// A further tag of every repository, a form (`v1.*`) or a range of versions (`>=1.2, <2`); may be repeated
    #[arg(long, conflicts_with = "file", value_name = "TAGS")]
    select: Vec<String>,

    /// A further tag of one repository; may be repeated
    #[arg(long, conflicts_with = "file", value_name = "IMAGE:TAG")]
    named: Vec<String>,

    /// A repository to look at although the registry does not list it; may be repeated
    #[arg(long = "image", conflicts_with = "file", value_name = "REPOSITORY")]
    images: Vec<String>,
}

/// Who asks the registry.
#[derive(Debug, clap::Args)]
struct CredentialArgs {
    /// User name; the password is read from standard input
    #[arg(long, conflicts_with = "file", requires = "password_stdin")]
    username: Option<String>,

    /// Read the password from standard input
    #[arg(long, requires = "username")]
    password_stdin: bool,

    /// Read a token from standard input
    #[arg(long, conflicts_with_all = ["username", "file"])]
    token_stdin: bool,
}

impl Args {
    /// The objects that the command line means. `read` answers what a file holds, `-` being standard input.
    pub(super) fn wanted(
        &self,
        read: impl Fn(&str) -> anyhow::Result<Vec<u8>>,
    ) -> anyhow::Result<RegistryObjects> {
        if let Some(file) = &self.file {
            let text = String::from_utf8(read(file)?)
                .with_context(|| format!("{file} is not UTF-8 text"))?;
            return asb::import(&text).with_context(|| format!("cannot use {file}"));
        }
        let name = self.name.as_deref().unwrap_or_default();
        if !registries::is_name(name) {
            let text = format!(
                "`{name}` is no name for a registry: use small letters, digits, `-` and `.`"
            );
            return Err(Failure::Usage(text).into());
        }
        let mut registry = self.registry(name)?;
        let secrets: Vec<Secret> = match self.credentials.data(&read)? {
            Some(data) => vec![registries::secret(name, data)],
            None => Vec::new(),
        };
        registry.spec.auth_secret_name = secrets.first().and_then(|s| s.metadata.name.clone());
        Ok(RegistryObjects {
            registries: vec![registry],
            secrets,
            warnings: Vec::new(),
        })
    }

    fn registry(&self, name: &str) -> Result<Registry, Failure> {
        let (place, choice) = (&self.place, &self.choice);
        let word = place.type_.as_deref().unwrap_or_default();
        let type_ = registries::registry_type(word).unwrap_or(RegistryType::ApiV2);
        if registries::needs_url(type_) && place.url.is_none() {
            let text = format!("a registry of type {word} needs --url");
            return Err(Failure::Usage(text));
        }
        for pattern in choice.allow.iter().chain(&choice.deny) {
            check_pattern(pattern).map_err(|why| {
                Failure::Usage(format!("`{pattern}` is no regular expression: {why}"))
            })?;
        }
        if (type_ == RegistryType::Helm) != place.runner.is_some() {
            let text = "a registry of type helm needs --runner, and no other has one";
            return Err(Failure::Usage(text.to_owned()));
        }
        let mut spec = registries::blank(type_);
        spec.url.clone_from(&place.url);
        spec.org.clone_from(&place.org);
        spec.runner.clone_from(&place.runner);
        spec.actions.network = place.network;
        spec.skip_verify_tls = place.skip_verify_tls;
        spec.white_list.clone_from(&choice.allow);
        spec.black_list.clone_from(&choice.deny);
        spec.images.clone_from(&choice.images);
        if let Some(seconds) = place.refresh {
            spec.refresh_interval_seconds = seconds;
        }
        if let Some(tag) = &choice.tag {
            spec.tags.default.clone_from(tag);
        }
        spec.tags.select.clone_from(&choice.select);
        let named = choice.named.iter().map(|word| named(word));
        spec.tags.named = named.collect::<Result<_, _>>()?;
        Ok(Registry::new(name, spec))
    }
}

impl CredentialArgs {
    fn data(
        &self,
        read: impl Fn(&str) -> anyhow::Result<Vec<u8>>,
    ) -> anyhow::Result<Option<BTreeMap<&'static str, String>>> {
        if !self.password_stdin && !self.token_stdin {
            return Ok(None);
        }
        let text = String::from_utf8(read("-")?).context("standard input is not UTF-8 text")?;
        let text = text.trim_end_matches(['\n', '\r']).to_owned();
        if text.is_empty() {
            return Err(Failure::Usage("standard input is empty".to_owned()).into());
        }
        Ok(Some(match &self.username {
            Some(user) => BTreeMap::from([("username", user.clone()), ("password", text)]),
            None => BTreeMap::from([("token", text)]),
        }))
    }
}

/// `IMAGE:TAG`.
fn named(word: &str) -> Result<NamedTag, Failure> {
    let parts = word.rsplit_once(':');
    let parts = parts.filter(|(image, tag)| !image.is_empty() && !tag.is_empty());
    let Some((image, tag)) = parts else {
        let text = format!("`{word}` names no tag; write IMAGE:TAG");
        return Err(Failure::Usage(text));
    };
    Ok(NamedTag {
        image: image.to_owned(),
        tag: tag.to_owned(),
    })
}

/// An object on its way to the server.
struct Parcel {
    path: String,
    shown: String,
    object: Value,
    /// As the server holds it.
    existing: Option<Value>,
}

pub(super) async fn add(
    args: &Args,
    wanted: RegistryObjects,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    for warning in &wanted.warnings {
        terminal.warn(&warning.to_string());
    }
    if wanted.registries.is_empty() {
        let text = "there is no registry left to add".to_owned();
        return Err(Failure::Usage(text).into());
    }
    if args.file.is_none() {
        for registry in &wanted.registries {
            if let Some(why) = registries::offers_nothing(&registry.spec) {
                terminal.warn(&format!("{why}; give --allow"));
            }
        }
    }
    let mut parcels = Vec::new();
    for secret in &wanted.secrets {
        let path = Secret::url_path(&(), Some(SYSTEM_NAMESPACE));
        parcels.push(Parcel::new(path, "secret", json!(secret)));
    }
    let secrets = parcels.len();
    for registry in &wanted.registries {
        let path = Registry::url_path(&(), None);
        parcels.push(Parcel::new(
            path,
            "registry",
            registries::manifest(registry),
        ));
    }
    for parcel in &mut parcels {
        parcel.look(remote, args.replace).await?;
    }
    // Refused before anything is stored.
    for parcel in &parcels[secrets..] {
        parcel.send(remote, true).await?;
    }
    for parcel in &parcels {
        parcel.send(remote, false).await?;
    }
    let registries = &parcels[secrets..];
    let report: Vec<Value> = registries.iter().map(Parcel::to_json).collect();
    let text = args.output.render(&report, |_| {
        let line = |parcel: &Parcel| format!("{} {}\n", parcel.shown, parcel.word());
        parcels.iter().map(line).collect()
    });
    Ok(terminal.print(&text)?)
}

impl Parcel {
    fn new(path: String, kind: &str, object: Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Self {
            path,
            shown: format!("{kind}/{name}"),
            object,
            existing: None,
        }
    }

    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn word(&self) -> &'static str {
        match self.existing {
            Some(_) => "replaced",
            None => "added",
        }
    }

    fn to_json(&self) -> Value {
        json!({"registry": self.name(), "state": self.word(), "spec": self.object["spec"]})
    }

    /// Whether it is there already, which only somebody who replaces it may want.
    async fn look(&mut self, remote: &Remote, replace: bool) -> anyhow::Result<()> {
        let request = kube::core::Request::new(&*self.path);
        let request = request.get(self.name(), &GetParams::default())?;
        let answer = remote.send(request).await?;
        if answer.code == StatusCode::NOT_FOUND {
            return Ok(());
        }
        let existing = answer.ok(&self.shown)?;
        if !replace {
            let text = format!(
                "{} exists already; pass --replace to replace it",
                self.shown
            );
            return Err(Failure::Conflict(text).into());
        }
        self.existing = Some(existing);
        Ok(())
    }

    /// Creates it, or puts it in the place of exactly what was there.
    async fn send(&self, remote: &Remote, dry_run: bool) -> anyhow::Result<()> {
        let params = PostParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let requests = kube::core::Request::new(&*self.path);
        let request = match &self.existing {
            None => requests.create(&params, serde_json::to_vec(&self.object)?)?,
            Some(existing) => {
                let mut object = self.object.clone();
                object["metadata"] = existing["metadata"].clone();
                requests.replace(self.name(), &params, serde_json::to_vec(&object)?)?
            }
        };
        let answer = remote.send(request).await?;
        answer.ok(&self.shown)?;
        Ok(())
    }
}
