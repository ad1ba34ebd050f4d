//! `heddle delete`: take objects away, and wait until they are gone.
//!
//! Deletion is a request: controllers with finalizers finish first. So the command waits unless
//! told not to, and says for whom when it takes long.

use std::collections::BTreeMap;
use std::time::Duration;

use heddle_api::what_if::ChangedObject;
use http::StatusCode;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};
use kube::core::params::GetParams;
use serde_json::Value;

use super::apply::what_if;
use super::{NamespaceArgs, SelectorArgs};
use crate::client::catalog::{Catalog, Resource};
use crate::client::{ClientArgs, Remote, target};
use crate::failure::{self, Failure};
use crate::manifest;
use crate::terminal::Terminal;
use crate::wire::World;

const POLL_FIRST: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_secs(1);
/// Silence for longer than this makes people wonder.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  heddle delete application shop             one object
  heddle delete -f examples/                 what these files declared
  heddle delete triggers --all -n team-a     all of a kind in a namespace
  heddle delete channels -A -l team=shop     by label
  heddle delete app shop --wait=false        do not wait for finalizers
  heddle delete trigger orders --what-if     which stored events who would not have got, delete nothing";

/// Delete objects and wait until they are gone
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// RESOURCE NAME… or RESOURCE/NAME…
    #[arg(
        value_name = "RESOURCE",
        required_unless_present = "filenames",
        conflicts_with = "filenames"
    )]
    words: Vec<String>,

    /// File, folder (read recursively) or `-` with the objects to delete
    #[arg(short, long = "filename", value_name = "FILE")]
    filenames: Vec<String>,

    /// Every object of the resource
    #[arg(long, conflicts_with_all = ["filenames", "selector", "field_selector"])]
    all: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    selector: SelectorArgs,

    /// Wait until the objects are gone
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    wait: bool,

    /// Give up waiting after so many seconds; 0 waits for ever
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    timeout: u64,

    /// What becomes of objects that belong to a deleted one
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    cascade: Cascade,

    /// An object that does not exist is no failure
    #[arg(long)]
    ignore_not_found: bool,

    /// Let the server check everything, and delete nothing
    #[arg(long)]
    dry_run: bool,

    /// Delete nothing, and tell which of the stored events consumers would have got more or fewer
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Cascade {
    /// They are deleted afterwards
    #[default]
    Background,
    /// They are deleted first
    Foreground,
    /// They stay
    Orphan,
}

/// One object to delete.
#[derive(Clone, Debug)]
struct Doomed {
    resource: Resource,
    namespace: Option<String>,
    name: String,
}

impl Doomed {
    fn shown(&self) -> String {
        self.resource.object(&self.name)
    }

    fn requests(&self) -> kube::core::Request {
        self.resource.requests(self.namespace.as_deref())
    }
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let catalog = Catalog::discover(&remote).await?;
    let run = Run {
        remote,
        args,
        world,
    };
    let doomed = run.choose(&catalog, terminal).await?;
    if doomed.is_empty() {
        terminal.note("nothing to delete");
        return Ok(());
    }
    if run.args.what_if {
        return run.what_if(doomed, terminal).await;
    }
    let mut failures = Vec::new();
    let mut going = Vec::new();
    for object in &doomed {
        match run.delete(object, terminal).await {
            Ok(uid) => going.extend(uid.map(|uid| (object, uid))),
            Err(error) if failure::exit_code(&error) == 6 => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    if run.args.wait && !run.args.dry_run {
        run.wait(going, terminal).await?;
    }
    // A single failure keeps its own exit code.
    let last = failures.pop();
    for error in &failures {
        terminal.complain(error);
    }
    last.map_or(Ok(()), Err)
}

struct Run<'a> {
    remote: Remote,
    args: Args,
    world: &'a World,
}

impl Run<'_> {
    /// What it would do to events, without doing it.
    async fn what_if(&self, doomed: Vec<Doomed>, terminal: &mut Terminal) -> anyhow::Result<()> {
        let mut gone = Vec::new();
        for object in doomed {
            let kind = object.resource.api.kind.clone();
            if what_if::is_compared(&kind, &object.name, terminal) {
                gone.push(ChangedObject {
                    kind,
                    namespace: object.namespace.unwrap_or_default(),
                    name: object.name,
                });
            }
        }
        what_if::tell_of_deletions(gone, &self.remote, self.args.last, terminal).await
    }

    /// The objects the command line means.
    async fn choose(
        &self,
        catalog: &Catalog,
        terminal: &mut Terminal,
    ) -> anyhow::Result<Vec<Doomed>> {
        if !self.args.filenames.is_empty() {
            return self.of_files(catalog, terminal);
        }
        let selects = self.args.all
            || self.args.selector.selector.is_some()
            || self.args.selector.field_selector.is_some();
        let namespace = self.args.namespace.chosen(&self.remote.namespace)?;
        let mut doomed = Vec::new();
        for target in target::parse(catalog, &self.args.words)? {
            let resource = target.resource;
            match (target.names.is_empty(), selects) {
                (true, true) => doomed.extend(self.list(resource, namespace).await?),
                (true, false) => {
                    let text = format!(
                        "which {}? name them, or select with -l, or pass --all",
                        resource.api.plural
                    );
                    return Err(Failure::Usage(text).into());
                }
                (false, true) => {
                    return Err(Failure::Usage(
                        "names cannot be combined with -l or --all".to_owned(),
                    )
                    .into());
                }
                (false, false) if namespace.is_none() && resource.namespaced => {
                    return Err(Failure::Usage(
                        "an object cannot be named in all namespaces; name one with -n".to_owned(),
                    )
                    .into());
                }
                (false, false) => {
                    let namespace = namespace.filter(|_| resource.namespaced).map(str::to_owned);
                    doomed.extend(target.names.into_iter().map(|name| Doomed {
                        resource: resource.clone(),
                        namespace: namespace.clone(),
                        name,
                    }));
                }
            }
        }
        Ok(doomed)
    }

    /// What files declare, last first: an object goes before the namespace it lives in.
    fn of_files(&self, catalog: &Catalog, terminal: &mut Terminal) -> anyhow::Result<Vec<Doomed>> {
        let mut doomed = Vec::new();
        for document in manifest::read(&self.args.filenames)?.iter().rev() {
            let Some(resource) = catalog.of_manifest(document.api_version(), document.kind())
            else {
                terminal.warn(&format!(
                    "{}: the server has no kind {} in {}",
                    document.origin,
                    document.kind(),
                    document.api_version()
                ));
                continue;
            };
            let default = self
                .args
                .namespace
                .namespace
                .as_deref()
                .unwrap_or(&self.remote.namespace);
            let namespace = resource
                .namespaced
                .then(|| document.namespace().unwrap_or(default).to_owned());
            target::check_name(document.name())?;
            doomed.push(Doomed {
                resource: resource.clone(),
                namespace,
                name: document.name().to_owned(),
            });
        }
        Ok(doomed)
    }

    async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> anyhow::Result<Vec<Doomed>> {
        let params = ListParams {
            label_selector: self.args.selector.selector.clone(),
            field_selector: self.args.selector.field_selector.clone(),
            ..ListParams::default()
        };
        let request = resource.requests(namespace).list_metadata(&params)?;
        let list = self.remote.send(request).await?.ok(&resource.full_name())?;
        let text = |item: &Value, field: &str| item["metadata"][field].as_str().map(str::to_owned);
        let items = list["items"].as_array().into_iter().flatten();
        Ok(items
            .map(|item| Doomed {
                resource: resource.clone(),
                namespace: text(item, "namespace"),
                name: text(item, "name").unwrap_or_default(),
            })
            .collect())
    }

    /// Asks for the deletion. Answers the uid when there is something left to wait for.
    async fn delete(
        &self,
        object: &Doomed,
        terminal: &mut Terminal,
    ) -> anyhow::Result<Option<String>> {
        let policy = match self.args.cascade {
            Cascade::Background => PropagationPolicy::Background,
            Cascade::Foreground => PropagationPolicy::Foreground,
            Cascade::Orphan => PropagationPolicy::Orphan,
        };
        let params = DeleteParams {
            dry_run: self.args.dry_run,
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        let answer = self
            .remote
            .send(object.requests().delete(&object.name, &params)?)
            .await?;
        if answer.code == StatusCode::NOT_FOUND && self.args.ignore_not_found {
            return Ok(None);
        }
        let shown = object.shown();
        let body = answer.ok(&shown)?;
        terminal.say(&format!(
            "{shown} deleted{}",
            if self.args.dry_run { " (dry run)" } else { "" }
        ))?;
        // A Status names the uid in its details, an object that still has finalizers in its metadata.
        let uid = body["metadata"]["uid"]
            .as_str()
            .or_else(|| body["details"]["uid"].as_str());
        Ok(uid.map(str::to_owned))
    }

    /// Waits until none of the objects exists any more.
    async fn wait(
        &self,
        going: Vec<(&Doomed, String)>,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let started = self.world.clock.monotonic();
        let mut told: BTreeMap<String, String> = BTreeMap::new();
        for (object, uid) in going {
            let mut pause = POLL_FIRST;
            while let Some(holds) = self.remains(object, &uid).await? {
                let waited = self.world.clock.monotonic().saturating_sub(started);
                let shown = object.shown();
                if self.args.timeout > 0 && waited >= Duration::from_secs(self.args.timeout) {
                    let text = format!(
                        "{shown} is still there after {} s: {holds}",
                        self.args.timeout
                    );
                    return Err(Failure::TimedOut(text).into());
                }
                if waited >= PROGRESS_AFTER && told.get(&shown) != Some(&holds) {
                    terminal.note(&format!("waiting for {shown}: {holds}"));
                    told.insert(shown, holds);
                }
                self.world.clock.sleep(pause).await;
                pause = (pause * 2).min(POLL_MAX);
            }
        }
        Ok(())
    }

    /// Why the object is still there, or nothing when it is gone (or another has its name).
    async fn remains(&self, object: &Doomed, uid: &str) -> anyhow::Result<Option<String>> {
        let answer = self
            .remote
            .send(object.requests().get(&object.name, &GetParams::default())?)
            .await?;
        if answer.code == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let current = answer.ok(&object.shown())?;
        Ok((current["metadata"]["uid"] == uid).then(|| holds(&current)))
    }
}

/// Who keeps a deleted object from going.
fn holds(object: &Value) -> String {
    let names = |list: &Value| {
        list.as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut finalizers = names(&object["metadata"]["finalizers"]);
    finalizers.extend(names(&object["spec"]["finalizers"]));
    if finalizers.is_empty() {
        return "it is being removed".to_owned();
    }
    format!(
        "finalizer {} is still held; its controller has to let go",
        finalizers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_one_who_holds_is_named() {
        let held = json!({"metadata": {"finalizers": ["heddle.dev/channel", "x/y"]}});
        assert_eq!(
            holds(&held),
            "finalizer heddle.dev/channel, x/y is still held; its controller has to let go"
        );
        assert_eq!(
            holds(&json!({"spec": {"finalizers": ["kubernetes"]}})),
            "finalizer kubernetes is still held; its controller has to let go"
        );
        assert_eq!(holds(&json!({"metadata": {}})), "it is being removed");
    }
}
