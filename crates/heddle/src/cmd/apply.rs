//! `heddle apply`: make the server hold what the files say.
//!
//! Server-side apply under the field manager `heddle`: what another manager owns is a conflict,
//! not a silent change. An object that fails does not stop the others; the exit code tells.

pub(super) mod what_if;

use std::time::Duration;

use http::StatusCode;
use kube::api::{Patch, PatchParams, ValidationDirective};
use kube::core::params::GetParams;
use serde_json::Value;

use crate::client::catalog::{Catalog, Resource};
use crate::client::{ClientArgs, FIELD_MANAGER, Remote, target};
use crate::failure::Failure;
use crate::manifest::{self, Document};
use crate::output::{self, Format};
use crate::terminal::Terminal;
use crate::wire::World;

/// How long a kind whose definition was applied a moment ago may take to be served.
const KIND_WAIT_MAX: Duration = Duration::from_secs(10);
const KIND_POLL: Duration = Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  heddle apply -f shop.yaml                  one file, any number of documents
  heddle apply -f examples/                  a folder and its subfolders
  heddle get app shop -o yaml | heddle apply -f -
  heddle apply -f shop.yaml --dry-run        ask the server, change nothing
  heddle apply -f trigger.yaml --what-if     which stored events who would have got, change nothing";

/// Create or change objects to match files
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// File, folder (read recursively) or `-` for standard input; may be repeated
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    filenames: Vec<String>,

    #[command(flatten)]
    manner: Manner,

    /// Store nothing, and tell which of the stored events consumers would have got more or fewer
    #[arg(long, conflicts_with = "dry_run")]
    what_if: bool,

    /// With --what-if, how many of the newest events are looked at
    #[arg(
        long,
        default_value_t = 10_000,
        value_name = "COUNT",
        requires = "what_if"
    )]
    last: u64,

    #[command(flatten)]
    client: ClientArgs,
}

/// How objects are applied, whoever declared them.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Manner {
    /// Namespace for objects that name none
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// Take over fields that another manager owns
    #[arg(long)]
    force_conflicts: bool,

    /// Let the server check everything, and store nothing
    #[arg(long)]
    dry_run: bool,

    /// `json` and `yaml` show the objects as the server holds them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let documents = manifest::read(&args.filenames)?;
    let remote = Remote::connect(&args.client).await?;
    if args.what_if {
        return what_if::tell(
            &documents,
            remote,
            (args.manner, args.last),
            world,
            terminal,
        )
        .await;
    }
    all(&documents, remote, args.manner, world, terminal).await
}

/// Applies every document, and fails at the end when one could not be applied.
pub(super) async fn all(
    documents: &[Document],
    remote: Remote,
    manner: Manner,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let mut run = Run::begin(remote, manner, world).await?;
    let mut failures = Vec::new();
    let total = documents.len();
    for document in documents {
        if let Err(error) = run.one(document, terminal).await {
            let error = error.context(document.origin.clone());
            // Without a server every further document fails alike.
            if crate::failure::exit_code(&error) == 6 {
                return Err(error);
            }
            terminal.complain(&error);
            failures.push(error);
        }
    }
    match failures.len() {
        0 => Ok(()),
        failed => anyhow::bail!("{failed} of {total} objects could not be applied"),
    }
}

struct Run<'a> {
    remote: Remote,
    manner: Manner,
    world: &'a World,
    catalog: Catalog,
    /// New kinds may appear only after their definitions were applied.
    definitions_applied: bool,
}

/// What applying an object changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Created,
    Configured,
    Unchanged,
}

/// An object that the server took.
struct AppliedObject {
    object: String,
    outcome: Outcome,
    after: Value,
}

impl<'a> Run<'a> {
    async fn begin(remote: Remote, manner: Manner, world: &'a World) -> anyhow::Result<Self> {
        if let Some(namespace) = &manner.namespace {
            target::check_name(namespace)?;
        }
        Ok(Self {
            catalog: Catalog::discover(&remote).await?,
            remote,
            manner,
            world,
            definitions_applied: false,
        })
    }

    async fn one(&mut self, document: &Document, terminal: &mut Terminal) -> anyhow::Result<()> {
        let applied = self.apply(document, terminal).await?;
        self.report(applied, terminal)
    }

    async fn apply(
        &mut self,
        document: &Document,
        terminal: &mut Terminal,
    ) -> anyhow::Result<AppliedObject> {
        let resource = self.resource(document).await?;
        target::check_name(document.name())?;
        let namespace = self.namespace(document, &resource)?;
        let object = resource.object(document.name());
        let requests = resource.requests(namespace.as_deref());
        let get = requests.get(document.name(), &GetParams::default())?;
        let before = self.remote.send(get).await?;
        let before = if before.code == StatusCode::NOT_FOUND {
            None
        } else {
            Some(before.ok(&object)?)
        };

        let mut wanted = document.object.clone();
        if let Some(namespace) = &namespace {
            wanted["metadata"]["namespace"] = namespace.clone().into();
        }
        let params = PatchParams {
            dry_run: self.manner.dry_run,
            force: self.manner.force_conflicts,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let answer = self
            .remote
            .send(requests.patch(document.name(), &params, &Patch::Apply(&wanted))?)
            .await?;
        for warning in answer.warnings() {
            terminal.warn(&format!("{object}: {warning}"));
        }
        if answer.code == StatusCode::CONFLICT {
            let said = answer.refusal(&object);
            return Err(Failure::Conflict(format!(
                "{said}; pass --force-conflicts to take these fields over"
            ))
            .into());
        }
        let created = answer.code == StatusCode::CREATED;
        let after = answer.ok(&object)?;
        self.definitions_applied |=
            document.kind() == "CustomResourceDefinition" && !self.manner.dry_run;
        Ok(AppliedObject {
            object,
            outcome: outcome(created, before.as_ref(), &after),
            after,
        })
    }

    /// The resource of a document. A kind that was defined a moment ago may need a moment.
    async fn resource(&mut self, document: &Document) -> anyhow::Result<Resource> {
        let started = self.world.clock.monotonic();
        loop {
            if let Some(resource) = self
                .catalog
                .of_manifest(document.api_version(), document.kind())
            {
                return Ok(resource.clone());
            }
            let waited = self.world.clock.monotonic().saturating_sub(started);
            if !self.definitions_applied || waited >= KIND_WAIT_MAX {
                let (kind, version) = (document.kind(), document.api_version());
                return Err(Failure::NotFound(format!(
                    "{kind} {}: the server has no kind {kind} in {version}; check apiVersion and kind",
                    document.name()
                ))
                .into());
            }
            self.world.clock.sleep(KIND_POLL).await;
            self.catalog = Catalog::discover(&self.remote).await?;
        }
    }

    /// Where the object goes: its own namespace, `-n`, or the context's.
    fn namespace(
        &self,
        document: &Document,
        resource: &Resource,
    ) -> anyhow::Result<Option<String>> {
        if !resource.namespaced {
            return Ok(None);
        }
        if let (Some(own), Some(asked)) = (document.namespace(), &self.manner.namespace)
            && own != asked
        {
            let object = resource.object(document.name());
            let text = format!(
                "{object} says namespace {own}, the command line says {asked}; drop one of them"
            );
            return Err(Failure::Usage(text).into());
        }
        let chosen = document
            .namespace()
            .or(self.manner.namespace.as_deref())
            .unwrap_or(&self.remote.namespace);
        target::check_name(chosen)?;
        Ok(Some(chosen.to_owned()))
    }

    fn report(&self, applied: AppliedObject, terminal: &mut Terminal) -> anyhow::Result<()> {
        let AppliedObject {
            object,
            outcome,
            mut after,
        } = applied;
        output::hide_managed_fields(&mut after);
        let text = match self.manner.output {
            Format::Json => output::json(&after),
            Format::Yaml => format!("---\n{}", output::yaml(&after)),
            Format::Name => format!("{object}\n"),
            Format::Table | Format::Wide => {
                let word = match outcome {
                    Outcome::Created => "created",
                    Outcome::Configured => "configured",
                    Outcome::Unchanged => "unchanged",
                };
                format!(
                    "{object} {word}{}\n",
                    if self.manner.dry_run {
                        " (dry run)"
                    } else {
                        ""
                    }
                )
            }
        };
        Ok(terminal.print(&text)?)
    }
}

/// The server keeps the version when nothing changed; a dry run never has a new version, so there
/// the content is compared.
fn outcome(created: bool, before: Option<&Value>, after: &Value) -> Outcome {
    let Some(before) = before.filter(|_| !created) else {
        return Outcome::Created;
    };
    let content = |object: &Value| {
        let mut object = object.clone();
        // A controller may have written its own part between the two looks.
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        for field in ["managedFields", "resourceVersion", "generation"] {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove(field);
            }
        }
        object
    };
    if content(before) == content(after) {
        Outcome::Unchanged
    } else {
        Outcome::Configured
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bookkeeping_alone_is_no_change() {
        let object = |version: &str, value: u8| json!({"metadata": {"name": "a", "resourceVersion": version, "managedFields": [version]}, "spec": {"x": value}});
        assert_eq!(outcome(true, None, &object("1", 1)), Outcome::Created);
        assert_eq!(outcome(false, None, &object("1", 1)), Outcome::Created);
        assert_eq!(
            outcome(false, Some(&object("1", 1)), &object("2", 1)),
            Outcome::Unchanged
        );
        let mut meanwhile = object("2", 1);
        meanwhile["status"] = json!({"conditions": []});
        assert_eq!(
            outcome(false, Some(&object("1", 1)), &meanwhile),
            Outcome::Unchanged
        );
        assert_eq!(
            outcome(false, Some(&object("1", 1)), &object("1", 2)),
            Outcome::Configured
        );
    }
}
