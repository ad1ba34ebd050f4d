//! `heddle version`: this binary, and the server when one answers.

use std::time::Duration;

use http::Request;
use serde_json::{Value, json};

use crate::client::{ClientArgs, Remote};
use crate::output::{self, Format};
use crate::terminal::Terminal;
use crate::wire::World;

/// A server that is there answers at once; nobody waits longer for a version.
const SERVER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Show the version of this binary and of the server
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this binary, do not ask a server
    #[arg(long)]
    client: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    server: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let server = if args.client {
        None
    } else {
        Some(ask(&args.server, world).await)
    };
    let mut shown = json!({"clientVersion": own});
    if let Some(Ok(version)) = &server {
        shown["serverVersion"] = version.clone();
    }
    match args.output {
        Format::Json => terminal.out.write_all(output::json(&shown).as_bytes())?,
        Format::Yaml => terminal.out.write_all(output::yaml(&shown).as_bytes())?,
        Format::Name => terminal.say(own)?,
        Format::Table | Format::Wide => {
            terminal.say(&format!("heddle {own}"))?;
            match &server {
                Some(Ok(version)) => terminal.say(&format!(
                    "server {}",
                    version["gitVersion"].as_str().unwrap_or("unknown")
                ))?,
                Some(Err(error)) => terminal.note(&format!("server unknown: {error:#}")),
                None => {}
            }
        }
    }
    Ok(terminal.out.flush()?)
}

async fn ask(args: &ClientArgs, world: &World) -> anyhow::Result<Value> {
    let remote = Remote::connect(args).await?;
    let request = Request::get("/version").body(Vec::new())?;
    let answer = world
        .clock
        .timeout(SERVER_WAIT_MAX, remote.send(request))
        .await;
    answer
        .map_err(|elapsed| anyhow::anyhow!("no answer from {}: {elapsed}", remote.place()))??
        .ok("version")
}
