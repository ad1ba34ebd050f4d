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
        shown["serverVersion"] = json!(version.product);
        shown["kubernetesVersion"] = json!(version.api);
    }
    match args.output {
        Format::Json => terminal.out.write_all(output::json(&shown).as_bytes())?,
        Format::Yaml => terminal.out.write_all(output::yaml(&shown).as_bytes())?,
        Format::Name => terminal.say(own)?,
        Format::Table | Format::Wide => {
            terminal.say(&format!("heddle {own}"))?;
            match &server {
                Some(Ok(Version { product, api })) => {
                    terminal.say(&format!("server {product}, as Kubernetes {api}"))?;
                }
                Some(Err(error)) => terminal.note(&format!("server unknown: {error:#}")),
                None => {}
            }
        }
    }
    Ok(terminal.out.flush()?)
}

/// What a server says it is.
struct Version {
    /// The release of heddle, or of whatever else answers.
    product: String,
    /// The release of Kubernetes that it behaves like.
    api: String,
}

/// Ours says both in one text, as distributions of Kubernetes do: `v1.36.0+heddle.0.1.0`.
fn read(version: &Value) -> Version {
    let whole = version["gitVersion"].as_str().unwrap_or("unknown");
    let (api, product) = whole.split_once("+heddle.").unwrap_or((whole, whole));
    Version {
        product: product.to_owned(),
        api: api.to_owned(),
    }
}

async fn ask(args: &ClientArgs, world: &World) -> anyhow::Result<Version> {
    let remote = Remote::connect(args).await?;
    let request = Request::get("/version").body(Vec::new())?;
    let answer = world
        .clock
        .timeout(SERVER_WAIT_MAX, remote.send(request))
        .await;
    let version = answer
        .map_err(|elapsed| anyhow::anyhow!("no answer from {}: {elapsed}", remote.place()))??
        .ok("version")?;
    Ok(read(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_its_release_and_the_one_it_behaves_like() {
        for (text, product, api) in [
            ("v1.36.0+heddle.0.1.0", "0.1.0", "v1.36.0"),
            ("v1.36.4", "v1.36.4", "v1.36.4"),
        ] {
            let version = read(&json!({"gitVersion": text}));
            assert_eq!((&*version.product, &*version.api), (product, api));
        }
    }
}
