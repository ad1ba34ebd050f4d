//! `heddle get -w`: the list, then every change, for as long as somebody looks.
//!
//! A watch that ends or breaks is opened again from the last version seen, so nothing is missed.
//! When the server no longer remembers that version (410) the list is read anew and only what is
//! different is shown. A server that went away is waited for, with one note on standard error.

use std::collections::HashMap;

use anyhow::Context as _;
use futures::TryStreamExt as _;
use http_body_util::BodyExt as _;
use kube::api::{ListParams, WatchParams};
use serde_json::Value;

use super::{Target, View, columns, objects_of, version_of};
use crate::client::{self, reconnect::Reconnect};
use crate::failure::Failure;
use crate::output::{self, Format, Table};
use crate::terminal::Terminal;
use crate::wire::World;

/// A line longer than this is no watch event: objects are limited to 1.5 MiB by the server.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// How a stream of changes came to its end.
enum End {
    /// Open it again from the last version.
    Over,
    /// The server forgot that version.
    Expired,
}

pub(super) async fn run(
    view: &View<'_>,
    target: &Target<'_>,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let mut follower = Follower {
        view,
        target,
        printer: Printer::default(),
        version: String::new(),
    };
    let mut reconnect = Reconnect::new(world);
    follower.list(terminal).await?;
    loop {
        match follower.stream(terminal).await {
            Ok(End::Over) => reconnect.arrived(),
            Ok(End::Expired) => follower.list(terminal).await?,
            Err(error) => reconnect.after(error, world, terminal).await?,
        }
    }
}

struct Follower<'a> {
    view: &'a View<'a>,
    target: &'a Target<'a>,
    printer: Printer,
    version: String,
}

impl Follower<'_> {
    /// Shows what is there now, without what was shown before in the same version.
    async fn list(&mut self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let resource = self.target.resource;
        let mut params = ListParams {
            limit: None,
            ..self.view.list_params()
        };
        params.field_selector = self.field_selector();
        let request = resource.requests(self.view.namespace).list(&params)?;
        let list = self
            .view
            .remote
            .send(self.view.negotiate(request))
            .await?
            .ok(&resource.full_name())?;
        self.version = version_of(&list)?;
        if let Some(name) = self.target.names.first()
            && list["rows"]
                .as_array()
                .or_else(|| list["items"].as_array())
                .is_some_and(Vec::is_empty)
            && !self.view.args.ignore_not_found
            && self.printer.seen.is_empty()
        {
            return Err(
                Failure::NotFound(format!("{} does not exist", resource.object(name))).into(),
            );
        }
        self.show(list, terminal)
    }

    async fn stream(&mut self, terminal: &mut Terminal) -> anyhow::Result<End> {
        let resource = self.target.resource;
        let params = WatchParams {
            label_selector: self.view.args.selector.selector.clone(),
            field_selector: self.field_selector(),
            ..WatchParams::default()
        };
        let request = resource
            .requests(self.view.namespace)
            .watch(&params, &self.version)?;
        let response = self.view.remote.open(self.view.negotiate(request)).await?;
        let code = response.status();
        if !code.is_success() {
            let body = response
                .into_body()
                .collect()
                .await
                .context("the answer broke off")?
                .to_bytes();
            if code == http::StatusCode::GONE {
                return Ok(End::Expired);
            }
            return Err(client::refusal(&resource.full_name(), code, &body).into());
        }
        let mut chunks = response.into_body().into_data_stream();
        let mut pending = Vec::new();
        // A connection that breaks in the middle is as good as one that ends: we resume.
        while let Ok(Some(chunk)) = chunks.try_next().await {
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                pending.extend_from_slice(piece);
                anyhow::ensure!(
                    pending.len() <= EVENT_BYTES_MAX,
                    "the server sent a watch event without end"
                );
                if pending.ends_with(b"\n") {
                    let event = serde_json::from_slice(&pending)
                        .context("the server sent a watch event that is not JSON")?;
                    pending.clear();
                    if let Some(end) = self.event(event, terminal)? {
                        return Ok(end);
                    }
                }
            }
        }
        Ok(End::Over)
    }

    fn event(&mut self, mut event: Value, terminal: &mut Terminal) -> anyhow::Result<Option<End>> {
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ERROR") if object["code"] == 410 => return Ok(Some(End::Expired)),
            Some("ERROR") => {
                let text = object["message"].as_str().unwrap_or("no reason given");
                return Err(
                    Failure::Rejected(format!("the server ended the watch: {text}")).into(),
                );
            }
            _ => {}
        }
        if let Some(version) = newest_version(&object) {
            self.version = version;
        }
        if event["type"] != "BOOKMARK" {
            self.show(object, terminal)?;
        }
        Ok(None)
    }

    /// A single object is followed with a field selector: watches know no names.
    fn field_selector(&self) -> Option<String> {
        let name = self
            .target
            .names
            .first()
            .map(|name| format!("metadata.name={name}"));
        name.or_else(|| self.view.args.selector.field_selector.clone())
    }

    /// Shows changes in the chosen format.
    fn show(&mut self, answer: Value, terminal: &mut Terminal) -> anyhow::Result<()> {
        if self.view.args.output.is_table() {
            self.show_table(answer, terminal)
        } else {
            self.show_objects(answer, terminal)
        }
    }

    fn show_table(&mut self, mut table: Value, terminal: &mut Terminal) -> anyhow::Result<()> {
        let printer = &mut self.printer;
        if !columns(&table).is_empty() {
            printer.columns = columns(&table).to_vec();
        }
        if let Some(rows) = table["rows"].as_array_mut() {
            rows.retain(|row| printer.is_new(&row["object"]));
        }
        let shown = self.view.shown(self.target.resource, None);
        let table = Table::from_server(&table, &printer.columns, shown);
        if table.rows.is_empty() {
            return Ok(());
        }
        printer.widths = table.widths(&printer.widths);
        let headers =
            !self.view.args.no_headers && !std::mem::replace(&mut printer.headers_done, true);
        let text = table.render(&printer.widths, headers, terminal.colour_out);
        Ok(terminal.print(&text)?)
    }

    fn show_objects(&mut self, answer: Value, terminal: &mut Terminal) -> anyhow::Result<()> {
        for object in objects_of(answer, self.target.resource) {
            if !self.printer.is_new(&object) {
                continue;
            }
            if self.view.args.output == Format::Yaml {
                terminal.say("---")?;
            }
            let text = match self.view.args.output {
                Format::Name => output::object_name(&object) + "\n",
                _ => self.view.format(vec![object], true),
            };
            terminal.print(&text)?;
        }
        Ok(())
    }
}

/// The version of an object, or of the one row of a Table.
fn newest_version(object: &Value) -> Option<String> {
    let rows = object["rows"].as_array().into_iter().flatten();
    let row = rows
        .filter_map(|row| row["object"]["metadata"]["resourceVersion"].as_str())
        .next_back();
    let own = || {
        object["metadata"]["resourceVersion"]
            .as_str()
            .filter(|version| !version.is_empty())
    };
    row.or_else(own).map(str::to_owned)
}

/// What was shown, and how.
#[derive(Default)]
struct Printer {
    columns: Vec<Value>,
    widths: Vec<usize>,
    headers_done: bool,
    /// By uid, the version shown last.
    seen: HashMap<String, String>,
}

impl Printer {
    fn is_new(&mut self, object: &Value) -> bool {
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let version = text("resourceVersion");
        self.seen
            .insert(text("uid"), version.clone())
            .is_none_or(|earlier| earlier != version)
    }
}
