//! `heddle explain`: why things are as they are.
//!
//! `explain instance` says what an instance waits for (`instance.rs`). `explain trigger` says what a
//! filter would have done to the events that are stored. The filter comes from an existing trigger, from a file or from the command line
//! (`proposal.rs`); the server tries it on stored events and changes nothing. For an existing
//! trigger its condition, its account and its schedule of attempts are told as well. `explain silence` says why nothing arrived
//! in a time (`silence.rs`).

mod instance;
mod proposal;
mod render;
mod silence;

use anyhow::Context as _;
use heddle_api::Trigger;
use heddle_api::ledger::{Account, ExplainRequest, Explanation};
use heddle_rt::net::percent_encoded;
use kube::Resource as _;
use kube::core::params::GetParams;
use serde_json::{Value, json};

use self::proposal::{FilterArgs, Proposal};
use crate::client::ledger::Ledger;
use crate::client::target::{Qualified, check_name};
use crate::client::{ClientArgs, Remote};
use crate::cmd::{CommandContext, ui};
use crate::failure::Failure;
use crate::manifest;
use crate::output::ReportFormat;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle explain trigger team-a/orders       what it matches, why it misses, how it is doing
  heddle explain trigger team-a/orders --filter type=order.paid
                                             what it would match with another filter, gain and lose
  heddle explain trigger --file orders.yaml  before it is applied
  heddle explain trigger --broker team-a/default --prefix type=order. --last 500
  heddle explain trigger --broker team-a/default --cesql \"type LIKE 'order.%' AND amount > 100\"

Several filters must all hold, as in a trigger's spec.filters.";

/// Say what an instance waits for, what a filter would match, or why nothing arrived
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Explain an existing or a proposed trigger
    #[command(after_help = EXAMPLES)]
    Trigger(Box<TriggerArgs>),
    /// Explain what an instance waits for
    Instance(instance::Args),
    /// Explain why nothing arrived in a time
    Silence(silence::SilenceArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct TriggerArgs {
    /// An existing trigger: NAMESPACE/NAME, or NAME with -n
    #[arg(value_name = "TRIGGER")]
    name: Option<String>,

    /// Namespace of the trigger, or of a broker that is not named; the default is the one of the context
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// A trigger in this file, `-` being standard input, applied or not
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    file: Option<String>,

    #[command(flatten)]
    filters: FilterArgs,

    /// The broker whose events are looked at; the default is the trigger's
    #[arg(long, value_name = "NAMESPACE/NAME")]
    broker: Option<Qualified>,

    /// How many of the newest events to look at
    #[arg(long, default_value_t = ExplainRequest::default_last(), value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: u64,

    /// Print the address of the trigger's page, where filters can be tried, and nothing else
    #[arg(long, conflicts_with = "output")]
    link: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

/// All there is to say.
#[derive(Debug)]
struct Report {
    proposal: Proposal,
    explanation: Explanation,
    /// Of an existing trigger, once it was part of the routes.
    account: Option<Account>,
}

impl Report {
    fn to_json(&self) -> Value {
        json!({
            "trigger": self.proposal.existing.as_ref().map(ToString::to_string),
            "entry": self.proposal.entry(),
            "filters": self.proposal.filters,
            "ready": self.proposal.ready,
            "account": self.account,
            "explanation": self.explanation,
        })
    }
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Trigger(args) => {
                let remote = Remote::connect(&args.client).await?;
                explain(&args, &remote, terminal).await
            }
            Self::Instance(args) => {
                let remote = Remote::connect(&args.instance.client).await?;
                instance::explain(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Silence(args) => {
                let remote = Remote::connect(&args.client).await?;
                silence::explain(&args, &remote, terminal).await
            }
        }
    }
}

async fn explain(
    args: &TriggerArgs,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let proposal = propose(args, remote).await?;
    if args.link {
        let trigger = proposal.existing.as_ref().ok_or_else(|| {
            let text = "only an existing trigger has a page: name one, or leave --link away";
            Failure::Usage(text.to_owned())
        })?;
        let [namespace, name] =
            [&trigger.namespace, &trigger.name].map(|text| percent_encoded(text));
        let page = format!("triggers/{namespace}/{name}");
        return Ok(terminal.say(&ui::page_address(remote, &page))?);
    }
    let request = ExplainRequest {
        entry: proposal.entry(),
        filters: proposal.filters.clone(),
        last: args.last,
        against: against(&proposal, args),
        ..ExplainRequest::default()
    };
    let ledger = Ledger::of(remote);
    let explanation = judge(&ledger, request).await?;
    let account = match &proposal.existing {
        Some(name) => {
            let consumer = format!("trigger/{name}");
            let mut accounts = ledger.accounts().await?.consumers.into_iter();
            accounts.find(|account| account.consumer == consumer)
        }
        None => None,
    };
    let report = Report {
        proposal,
        explanation,
        account,
    };
    let colour = terminal.colour_out;
    let text = (args.output).render(&report.to_json(), |_| render::text(&report, colour));
    Ok(terminal.print(&text)?)
}

/// A trigger that is not part of the routes has no filter in force; everything else can be told.
async fn judge(ledger: &Ledger<'_>, request: ExplainRequest) -> anyhow::Result<Explanation> {
    let judged = ledger.explain(&request).await;
    let is_missing =
        |error: &anyhow::Error| matches!(error.downcast_ref(), Some(Failure::NotFound(_)));
    match judged {
        Err(error) if request.against.is_some() && is_missing(&error) => {
            let alone = ExplainRequest {
                against: None,
                ..request
            };
            ledger.explain(&alone).await
        }
        judged => judged,
    }
}

/// What another filter of an existing trigger would change for it.
fn against(proposal: &Proposal, args: &TriggerArgs) -> Option<String> {
    let existing = proposal.existing.as_ref()?;
    let asks = !args.filters.is_empty() && args.broker.is_none();
    asks.then(|| format!("trigger/{existing}"))
}

/// What is to be tried, from wherever it was given.
async fn propose(args: &TriggerArgs, remote: &Remote) -> anyhow::Result<Proposal> {
    if let Some(namespace) = &args.namespace {
        check_name(namespace)?;
    }
    let namespace = args.namespace.as_deref().unwrap_or(&remote.namespace);
    let mut proposal = if let Some(name) = &args.name {
        let name = qualified(name, args.namespace.as_deref(), namespace)?;
        let object = fetch(&name, remote).await?;
        Proposal::existing(name, &object)?
    } else if let Some(file) = &args.file {
        Proposal::declared(&in_file(file)?, namespace)?
    } else if args.filters.is_empty() {
        let text = "name a trigger, or propose one with --file, --filter, --prefix, --suffix, --cesql or --filters";
        return Err(Failure::Usage(text.to_owned()).into());
    } else {
        Proposal::on_default_broker(namespace)
    };
    if !args.filters.is_empty() {
        proposal.filters = args.filters.filters();
    }
    if let Some(broker) = &args.broker {
        proposal.broker = broker.clone();
    }
    Ok(proposal)
}

/// `NAMESPACE/NAME` says it all; a bare name is in the namespace of the command.
fn qualified(name: &str, asked: Option<&str>, default: &str) -> Result<Qualified, Failure> {
    if !name.contains('/') {
        return format!("{default}/{name}").parse();
    }
    let name: Qualified = name.parse()?;
    match asked {
        Some(asked) if asked != name.namespace => Err(Failure::Usage(format!(
            "`{name}` is in namespace {}, -n says {asked}; drop one of them",
            name.namespace
        ))),
        _ => Ok(name),
    }
}

async fn fetch(name: &Qualified, remote: &Remote) -> anyhow::Result<Value> {
    let path = Trigger::url_path(&(), Some(&name.namespace));
    let request = kube::core::Request::new(path).get(&name.name, &GetParams::default())?;
    remote.send(request).await?.ok(&format!("trigger {name}"))
}

fn in_file(file: &str) -> anyhow::Result<Value> {
    let documents = manifest::read(std::slice::from_ref(&file.to_owned()))?;
    let mut triggers = documents
        .into_iter()
        .filter(|document| document.kind() == "Trigger");
    let first = triggers
        .next()
        .with_context(|| format!("{file} declares no Trigger"))?;
    if triggers.next().is_some() {
        let text = format!("{file} declares several triggers; explain one at a time");
        return Err(Failure::Usage(text).into());
    }
    Ok(first.object)
}

#[cfg(test)]
mod tests;
