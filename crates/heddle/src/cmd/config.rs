//! `heddle config`: what is in effect, and where it comes from; and what another broker's configuration would be here.

mod import;

use clap::ArgMatches;

use crate::client::ClientArgs;
use crate::config::{Config, ConfigArgs};
use crate::failure::Failure;
use crate::files;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle config show                         what `heddle serve` would run with
  export KUBECONFIG=$(heddle config path)    point kubectl at the local server
  heddle config kubeconfig > shop.kubeconfig give access to somebody
  heddle config import config.yaml > registries.yaml
                                             registries of an Automation Service Broker, as manifests";

/// Show the configuration in effect, the way to the local server, or another broker's configuration
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The configuration `heddle serve` would use with the same flags
    Show(Box<ConfigArgs>),
    /// The path of the kubeconfig in effect
    Path(ClientArgs),
    /// The kubeconfig in effect, with its credentials
    Kubeconfig(ClientArgs),
    /// The configuration of an Automation Service Broker, as manifests for `heddle apply`
    Import(import::Args),
}

pub(super) fn run(args: Args, matches: &ArgMatches, terminal: &mut Terminal) -> anyhow::Result<()> {
    match args.what {
        What::Show(args) => {
            let config = Config::load(*args, |id| matches.value_source(id))?;
            terminal.out.write_all(config.print().as_bytes())?;
        }
        What::Path(args) => {
            let paths = args
                .kubeconfig_paths()
                .into_iter()
                .map(|path| std::path::absolute(&path).unwrap_or(path));
            let joined = std::env::join_paths(paths)?;
            terminal.say(&joined.to_string_lossy())?;
        }
        What::Import(args) => import::import(&args, files::read_bytes, terminal)?,
        What::Kubeconfig(args) => {
            for path in args.kubeconfig_paths() {
                if !path.exists() {
                    let text = format!(
                        "{} does not exist; `heddle serve` writes it when it is ready",
                        path.display()
                    );
                    return Err(Failure::NotFound(text).into());
                }
                terminal
                    .out
                    .write_all(files::read_text(&path)?.as_bytes())?;
            }
        }
    }
    Ok(terminal.out.flush()?)
}
