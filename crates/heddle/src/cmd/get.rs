//! `heddle get`: show objects, as the server renders them or as they are.
//!
//! A list is read in pages, so that no answer grows without bound. `-w` is `get/follow.rs`.

mod follow;

use anyhow::Context as _;
use http::Request;
use http::header::{ACCEPT, HeaderValue};
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{NamespaceArgs, SelectorArgs};
use crate::client::catalog::{Catalog, Resource};
use crate::client::target::{self, Target};
use crate::client::{ClientArgs, Remote};
use crate::failure::{self, Failure};
use crate::output::{self, Format, Shown, Table};
use crate::terminal::Terminal;
use crate::wire::World;

/// How many objects one answer may hold; kubectl's figure too.
const PAGE_OBJECTS_MAX: u32 = 500;

const ACCEPT_TABLE: HeaderValue =
    HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io,application/json");

const EXAMPLES: &str = "\
Examples:
  heddle get applications                    every Application
  heddle get channel,trigger -n team-a       two kinds of one namespace
  heddle get channel/shop -o yaml            one object, complete
  heddle get triggers -A -l team=shop        by label, in all namespaces
  heddle get subscriptions.messaging.knative.dev
                                             a name that several groups use
  heddle get applications -w                 and then every change";

/// Show objects
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// RESOURCE [NAME…], RESOURCE,RESOURCE or RESOURCE/NAME…
    #[arg(required = true, value_name = "RESOURCE")]
    words: Vec<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    selector: SelectorArgs,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// Go on showing changes until interrupted
    #[arg(short, long)]
    watch: bool,

    /// Leave out the line with the column names
    #[arg(long)]
    no_headers: bool,

    /// Show which manager owns which field
    #[arg(long)]
    show_managed_fields: bool,

    /// An object that does not exist is no failure
    #[arg(long)]
    ignore_not_found: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let catalog = Catalog::discover(&remote).await?;
    let targets = target::parse(&catalog, &args.words)?;
    let namespace = args.namespace.chosen(&remote.namespace)?;
    let view = View {
        remote: &remote,
        args: &args,
        namespace,
    };
    view.check(&targets)?;
    if args.watch {
        return follow::run(&view, &targets[0], world, terminal).await;
    }
    if args.output.is_table() {
        view.tables(&targets, terminal).await
    } else {
        view.objects(&targets, terminal).await
    }
}

/// One run of `get`.
struct View<'a> {
    remote: &'a Remote,
    args: &'a Args,
    namespace: Option<&'a str>,
}

impl View<'_> {
    /// Combinations that cannot be answered are refused before anything is asked.
    fn check(&self, targets: &[Target<'_>]) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        let named = targets.iter().any(|target| !target.names.is_empty());
        let selects =
            self.args.selector.selector.is_some() || self.args.selector.field_selector.is_some();
        if named && selects {
            return usage("names and selectors cannot be combined; use one of them");
        }
        if named
            && self.args.namespace.all_namespaces
            && targets.iter().any(|target| target.resource.namespaced)
        {
            return usage("an object cannot be found by name in all namespaces; name one with -n");
        }
        if self.args.watch && (targets.len() != 1 || targets[0].names.len() > 1) {
            return usage("-w follows one resource or one object");
        }
        Ok(())
    }

    async fn tables(&self, targets: &[Target<'_>], terminal: &mut Terminal) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        let mut shown_any = false;
        for target in targets {
            let answers = self.fetch(target, &mut failed).await?;
            let prefix = target.resource.kind_and_group();
            let shown = self.shown(
                target.resource,
                (targets.len() > 1).then_some(prefix.as_str()),
            );
            let mut table = Table::default();
            for answer in &answers {
                let page = Table::from_server(answer, columns(answer), shown);
                table.headers = page.headers;
                table.rows.extend(page.rows);
            }
            if table.rows.is_empty() {
                continue;
            }
            if std::mem::replace(&mut shown_any, true) {
                terminal.say("")?;
            }
            let text = table.render(
                &table.widths(&[]),
                !self.args.no_headers,
                terminal.colour_out,
            );
            terminal.print(&text)?;
        }
        if !shown_any && failed.is_empty() {
            terminal.note(&self.nothing(targets));
        }
        self.settle(failed, terminal)
    }

    async fn objects(&self, targets: &[Target<'_>], terminal: &mut Terminal) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        let mut objects = Vec::new();
        for target in targets {
            for answer in self.fetch(target, &mut failed).await? {
                objects.extend(objects_of(answer, target.resource));
            }
        }
        let single = targets.len() == 1 && targets[0].names.len() == 1;
        let text = self.format(objects, single);
        terminal.print(&text)?;
        self.settle(failed, terminal)
    }

    fn format(&self, mut objects: Vec<Value>, single: bool) -> String {
        if !self.args.show_managed_fields {
            objects.iter_mut().for_each(output::hide_managed_fields);
        }
        if self.args.output == Format::Name {
            return objects
                .iter()
                .map(|object| output::object_name(object) + "\n")
                .collect();
        }
        let value = match (single, objects.pop()) {
            (true, Some(object)) => object,
            (true, None) => return String::new(),
            (false, last) => {
                objects.extend(last);
                json!({"apiVersion": "v1", "kind": "List", "items": objects})
            }
        };
        if self.args.output == Format::Yaml {
            output::yaml(&value)
        } else {
            output::json(&value)
        }
    }

    /// Every answer for a target: its pages, or one per name. Objects that do not exist are
    /// gathered, so that the others are still shown.
    async fn fetch(
        &self,
        target: &Target<'_>,
        failed: &mut Vec<anyhow::Error>,
    ) -> anyhow::Result<Vec<Value>> {
        let resource = target.resource;
        if target.names.is_empty() {
            return self.list(resource).await;
        }
        let mut answers = Vec::new();
        for name in &target.names {
            let request = resource
                .requests(self.namespace)
                .get(name, &Default::default())?;
            let answer = self
                .remote
                .send(self.negotiate(request))
                .await?
                .ok(&resource.object(name));
            match answer {
                Ok(answer) => answers.push(answer),
                Err(error) if failure::exit_code(&error) == 3 => {
                    if !self.args.ignore_not_found {
                        failed.push(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn list(&self, resource: &Resource) -> anyhow::Result<Vec<Value>> {
        let mut params = self.list_params();
        params.limit = Some(PAGE_OBJECTS_MAX);
        let mut pages = Vec::new();
        loop {
            let request = resource.requests(self.namespace).list(&params)?;
            let page = self
                .remote
                .send(self.negotiate(request))
                .await?
                .ok(&resource.full_name())?;
            let next = page["metadata"]["continue"]
                .as_str()
                .filter(|token| !token.is_empty())
                .map(str::to_owned);
            pages.push(page);
            match next {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(pages),
            }
        }
    }

    fn list_params(&self) -> ListParams {
        ListParams {
            label_selector: self.args.selector.selector.clone(),
            field_selector: self.args.selector.field_selector.clone(),
            ..ListParams::default()
        }
    }

    fn negotiate(&self, mut request: Request<Vec<u8>>) -> Request<Vec<u8>> {
        let accept = if self.args.output.is_table() {
            ACCEPT_TABLE
        } else {
            HeaderValue::from_static("application/json")
        };
        request.headers_mut().insert(ACCEPT, accept);
        request
    }

    fn shown<'b>(&self, resource: &Resource, prefix: Option<&'b str>) -> Shown<'b> {
        let namespaces = self.args.namespace.all_namespaces && resource.namespaced;
        Shown {
            wide: self.args.output == Format::Wide,
            namespaces,
            prefix,
        }
    }

    fn nothing(&self, targets: &[Target<'_>]) -> String {
        let namespaced = targets.iter().any(|target| target.resource.namespaced);
        match self.namespace.filter(|_| namespaced) {
            Some(namespace) => {
                format!("nothing found in namespace {namespace} (use -A for all namespaces)")
            }
            None => "nothing found".to_owned(),
        }
    }

    /// Complains about all but one missing object; the last one decides the exit code.
    fn settle(
        &self,
        mut failed: Vec<anyhow::Error>,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let last = failed.pop();
        for error in &failed {
            terminal.complain(error);
        }
        last.map_or(Ok(()), Err)
    }
}

fn columns(table: &Value) -> &[Value] {
    table["columnDefinitions"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// The objects of a list or the object itself, each saying what it is.
fn objects_of(mut answer: Value, resource: &Resource) -> Vec<Value> {
    let Value::Array(mut items) = answer["items"].take() else {
        if let Some(object) = answer.as_object_mut() {
            object.remove("items");
        }
        return vec![answer];
    };
    for item in &mut items {
        item["apiVersion"] = resource.api.api_version.clone().into();
        item["kind"] = resource.api.kind.clone().into();
    }
    items
}

/// The resourceVersion a list was taken at.
fn version_of(list: &Value) -> anyhow::Result<String> {
    list["metadata"]["resourceVersion"]
        .as_str()
        .map(str::to_owned)
        .context("the server's list has no resourceVersion")
}
