//! What the commands about instances share: which one is meant, with which parameters, and waiting for it.

use std::time::Duration;

use anyhow::Context as _;
use heddle_api::{ServiceInstance, names};
use kube::Resource as _;
use kube::core::params::GetParams;
use serde_json::{Map, Value, json};

use crate::client::osb::{Choice, Osb, Progress, Reply};
use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote};
use crate::failure::Failure;
use crate::output::ReportFormat;
use crate::terminal::Terminal;
use crate::wire::World;

/// Whoever waits longer than this without news is told what is waited for.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// Where an instance is, and whether to wait for it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct InstanceArgs {
    /// Namespace; the default is the one of the kubeconfig's context
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

impl InstanceArgs {
    /// The namespace that is meant.
    pub(super) fn namespace(&self, remote: &Remote) -> Result<String, Failure> {
        let namespace = self.namespace.as_deref().unwrap_or(&remote.namespace);
        check_name(namespace)?;
        Ok(namespace.to_owned())
    }
}

/// Whether to wait, and how long.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct WaitArgs {
    /// Wait until it is done; what it waits for is told meanwhile
    #[arg(long)]
    pub(super) wait: bool,

    /// Give up waiting after so many seconds; the work goes on
    #[arg(long, default_value_t = 300, value_name = "SECONDS", requires = "wait")]
    pub(super) timeout: u64,
}

/// What every request about an instance is asked with.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RequestArgs {
    #[command(flatten)]
    wait: WaitArgs,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) instance: InstanceArgs,
}

impl RequestArgs {
    /// What is said of the end of a request, which is waited for if that is wanted. Nothing when it was only accepted.
    pub(super) async fn ended(
        &self,
        osb: &Osb<'_>,
        id: &str,
        reply: Reply,
        world: &World,
        terminal: &mut Terminal,
    ) -> anyhow::Result<Option<String>> {
        let operation = match reply {
            Reply::Done(_) => return Ok(Some(String::new())),
            Reply::Accepted(_) if !self.wait.wait => return Ok(None),
            Reply::Accepted(operation) => operation,
        };
        let awaited = Awaited {
            id,
            binding: None,
            operation: operation.as_deref(),
            limit: Duration::from_secs(self.wait.timeout),
        };
        let progress = settle(osb, awaited, world, terminal).await?;
        Ok(Some(progress.description))
    }

    /// Shows what was made or changed: `done` is its state and what is said of it, `accepted` what is said of it until then.
    pub(super) fn show_instance(
        &self,
        (id, namespace): (&str, &str),
        ended: Option<String>,
        done: (&str, String),
        accepted: &str,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let (state, words) = match ended {
            Some(_) => done,
            None => {
                let advice = format!("`heddle explain instance {id} -n {namespace}`");
                let words = format!("{accepted} is accepted; {advice} says how far it is\n");
                ("accepted", words)
            }
        };
        let report = json!({"instance": id, "namespace": namespace, "state": state});
        self.show(&report, words, terminal)
    }

    /// Shows the result, in words unless another form is wanted.
    pub(super) fn show(
        &self,
        report: &Value,
        words: String,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let text = self.output.render(report, |_| words);
        Ok(terminal.print(&text)?)
    }
}

/// Parameters, as people give them.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ParameterArgs {
    /// One parameter; the value is JSON if it can be read as such, and text otherwise
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    param: Vec<String>,

    /// All parameters, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "param")]
    params: Option<String>,
}

impl ParameterArgs {
    /// What was given; nothing when nothing was, which is not the same as no parameters.
    pub(super) fn given(&self) -> Result<Option<Value>, Failure> {
        match self.param.is_empty() && self.params.is_none() {
            true => Ok(None),
            false => self.value().map(Some),
        }
    }

    pub(super) fn value(&self) -> Result<Value, Failure> {
        if let Some(text) = &self.params {
            return match serde_json::from_str(text) {
                Ok(object @ Value::Object(_)) => Ok(object),
                Ok(_) => Err(Failure::Usage("--params is no JSON object".to_owned())),
                Err(error) => Err(Failure::Usage(format!("--params is no JSON: {error}"))),
            };
        }
        let mut object = Map::new();
        for pair in &self.param {
            let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                let text = format!("`{pair}` is no parameter; write NAME=VALUE");
                return Err(Failure::Usage(text));
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            if object.insert(name.to_owned(), value).is_some() {
                return Err(Failure::Usage(format!("parameter {name} is given twice")));
            }
        }
        Ok(Value::Object(object))
    }
}

/// Says so when a namespace does not exist, which otherwise looks like one that has nothing.
pub(super) async fn check_namespace(namespace: &str, remote: &Remote) -> anyhow::Result<()> {
    let request = http::Request::get(format!("/api/v1/namespaces/{namespace}")).body(Vec::new())?;
    if remote.send(request).await?.code == http::StatusCode::NOT_FOUND {
        let text = format!("there is no namespace {namespace}; `heddle get namespaces` lists all");
        return Err(Failure::NotFound(text).into());
    }
    Ok(())
}

/// The object behind an instance id.
pub(super) async fn fetch(id: &str, namespace: &str, remote: &Remote) -> anyhow::Result<Value> {
    let path = ServiceInstance::url_path(&(), Some(namespace));
    let request =
        kube::core::Request::new(path).get(&names::instance(id), &GetParams::default())?;
    let answer = remote.send(request).await?;
    if answer.code == http::StatusCode::NOT_FOUND {
        check_namespace(namespace, remote).await?;
        let text = format!(
            "namespace {namespace} has no instance {id}; `heddle get serviceinstances -A` lists all"
        );
        return Err(Failure::NotFound(text).into());
    }
    answer.ok(&format!("instance {id}"))
}

/// The offering and plan of an existing instance, which may have left the catalog.
pub(super) fn choice_of(instance: &Value) -> anyhow::Result<Choice> {
    let text = |key: &str| instance["spec"][key].as_str().map(str::to_owned);
    Ok(Choice {
        service_id: text("serviceID").context("the instance names no service")?,
        plan_id: text("planID").context("the instance names no plan")?,
    })
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited<'a> {
    pub(super) id: &'a str,
    pub(super) binding: Option<&'a str>,
    pub(super) operation: Option<&'a str>,
    pub(super) limit: Duration,
}

impl Awaited<'_> {
    fn name(&self) -> String {
        match self.binding {
            Some(binding) => format!("binding {binding}"),
            None => format!("instance {}", self.id),
        }
    }
}

/// Asks until the operation has ended, and tells what it does meanwhile.
pub(super) async fn settle(
    osb: &Osb<'_>,
    awaited: Awaited<'_>,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<Progress> {
    let started = world.clock.monotonic();
    let mut told = String::new();
    loop {
        let progress = osb
            .progress(awaited.id, awaited.binding, awaited.operation)
            .await?;
        match progress.state.as_str() {
            "succeeded" => return Ok(progress),
            "failed" => {
                let text = format!("{} failed: {}", awaited.name(), progress.description);
                return Err(Failure::Rejected(text).into());
            }
            _ => {}
        }
        let waited = world.clock.monotonic().saturating_sub(started);
        if waited >= awaited.limit {
            return Err(Failure::TimedOut(format!(
                "{} is not done after {} s: {}; the work goes on",
                awaited.name(),
                awaited.limit.as_secs(),
                progress.description
            ))
            .into());
        }
        let news = without_times(&progress.description);
        if waited >= PROGRESS_AFTER && told != news {
            told = news;
            terminal.note(&told);
        }
        world.clock.sleep(progress.pause).await;
    }
}

/// Without ` since TIME`: who waits knows since when, and wants to see what is new.
fn without_times(text: &str) -> String {
    let mut pieces = text.split(" since ");
    let mut news = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(' ').unwrap_or(piece.len());
        let (word, rest) = piece.split_at(end);
        let time = word.trim_end_matches([':', ',', ';']);
        if time.parse::<jiff::Timestamp>().is_ok() {
            news.push_str(&word[time.len()..]);
        } else {
            news.push_str(" since ");
            news.push_str(word);
        }
        news.push_str(rest);
    }
    news
}

#[cfg(test)]
mod tests;
