//! `heddle osb-check`: does a broker keep the promises of the Open Service Broker API?
//!
//! A black box is asked everything that a platform may rely on, the parts that no public suite asks included. It knows
//! nothing but an address and credentials: which plans make their platform wait, which can be bound and which rotate, it
//! finds out first (`lab.rs`). A promise for which the catalog has no plan does not apply, and is counted as such, never
//! as kept. Instances that are made are removed again.

mod lab;
mod rules;
mod wire;

use anyhow::Context as _;
use base64::Engine as _;
use serde_json::json;

use self::lab::Lab;
use self::rules::Check;
use self::wire::Broker;
use crate::client::Remote;
use crate::failure::Failure;
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle osb-check http://127.0.0.1:4333 --username heddle --password \"$PASSWORD\"
  heddle osb-check http://127.0.0.1:4333/osb/team-a --username heddle --password-file pw
  heddle osb-check http://127.0.0.1:4333 --username heddle --password-file pw --only bind

It provisions, binds and removes for real: point it at a broker whose plans cost nothing.
Ends with 1 when a promise is broken.";

/// Ask a broker for every promise of OSB 2.17
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Address of the broker, without /v2
    url: http::Uri,

    #[arg(long, value_name = "NAME")]
    username: String,

    #[arg(
        long,
        value_name = "TEXT",
        env = "OSB_PASSWORD",
        hide_env_values = true
    )]
    password: Option<String>,

    /// A file with the password
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<std::path::PathBuf>,

    /// Only promises whose group or text contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// What the broker is set to answer when no version is announced
    #[arg(long, value_name = "STATUS", default_value_t = 400)]
    missing_version: u16,

    /// Namespace that is sent as context, for brokers that have such
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,
}

/// How one promise fared.
#[derive(Debug)]
enum CheckResult {
    Kept,
    Broken(String),
    /// The catalog has no plan to try it on.
    NotApplicable(&'static str),
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let password = match (&args.password, &args.password_file) {
        (Some(password), _) => password.clone(),
        (None, Some(file)) => {
            let bytes = world.vfs.read(file);
            let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
            String::from_utf8_lossy(&bytes).trim_end().to_owned()
        }
        (None, None) => {
            let text = "give the password with --password, --password-file or OSB_PASSWORD";
            return Err(Failure::Usage(text.to_owned()).into());
        }
    };
    let place = args.url.to_string();
    let remote = Remote::anonymous(args.url.clone(), place)?;
    let pair = format!("{}:{password}", args.username);
    let token = base64::engine::general_purpose::STANDARD.encode(pair);
    let broker = Broker::new(remote, format!("Basic {token}"));
    let lab = Lab::open(broker, world.clone(), &args.namespace, args.missing_version).await?;
    judge(&args, &lab, terminal).await
}

async fn judge(args: &Args, lab: &Lab, terminal: &mut Terminal) -> anyhow::Result<()> {
    let mut results = Vec::new();
    for check in rules::all() {
        let wanted = args.only.as_deref();
        if wanted.is_some_and(|text| check.group != text && !check.promise.contains(text)) {
            continue;
        }
        let verdict = ask(&check, lab).await;
        if args.output == ReportFormat::Table {
            terminal.say(&line(&check, &verdict, terminal.colour_out))?;
        }
        results.push((check, verdict));
    }
    for stuck in lab.clean_up().await {
        terminal.note(&format!("could not be removed: {}", harmless(&stuck)));
    }
    if args.output != ReportFormat::Table {
        let report: Vec<_> = results
            .iter()
            .map(|(check, verdict)| to_json(check, verdict))
            .collect();
        let text = args.output.render(&report, |_| String::new());
        terminal.out.write_all(text.as_bytes())?;
        terminal.out.flush()?;
    }
    let number = |of: fn(&CheckResult) -> bool| {
        results.iter().filter(|(_, verdict)| of(verdict)).count() as u64
    };
    let kept = number(|verdict| matches!(verdict, CheckResult::Kept));
    let broken = number(|verdict| matches!(verdict, CheckResult::Broken(_)));
    let idle = number(|verdict| matches!(verdict, CheckResult::NotApplicable(_)));
    terminal.note(&format!(
        "{} kept, {broken} broken, {idle} without a plan to try them on",
        count(kept, "promise")
    ));
    match (kept, broken) {
        (0, 0) => Err(Failure::Usage("no promise was asked for; see --only".to_owned()).into()),
        (_, 0) => Ok(()),
        _ => Err(Failure::Rejected(format!("{} broken", count(broken, "promise"))).into()),
    }
}

async fn ask(check: &Check, lab: &Lab) -> CheckResult {
    if let Some(missing) = lab.lacks(check.needs) {
        return CheckResult::NotApplicable(missing);
    }
    match (check.run)(lab).await {
        Ok(()) => CheckResult::Kept,
        Err(error) => CheckResult::Broken(format!("{error:#}")),
    }
}

fn line(check: &Check, verdict: &CheckResult, colour: bool) -> String {
    let (tone, word, more) = match verdict {
        CheckResult::Kept => (Tone::Good, "kept  ", String::new()),
        CheckResult::Broken(why) => (
            Tone::Bad,
            "BROKEN",
            format!("\n          {}", harmless(why)),
        ),
        CheckResult::NotApplicable(what) => (Tone::Quiet, "n/a   ", format!(" (no plan {what})")),
    };
    let word = paint(colour, tone, word);
    format!("{word}  {}: {}{more}", check.group, check.promise)
}

fn to_json(check: &Check, verdict: &CheckResult) -> serde_json::Value {
    let (word, why) = match verdict {
        CheckResult::Kept => ("kept", None),
        CheckResult::Broken(why) => ("broken", Some(why.as_str())),
        CheckResult::NotApplicable(what) => ("notApplicable", Some(*what)),
    };
    json!({"group": check.group, "promise": check.promise, "verdict": word, "why": why})
}
