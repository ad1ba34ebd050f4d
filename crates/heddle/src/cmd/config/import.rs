//! `heddle config import`: the registries of an Automation Service Broker, as manifests.

use anyhow::Context as _;
use heddle_api::registry::IdScheme;
use serde_json::json;

use crate::asb;
use crate::output;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle config import config.yaml           look at it, with what changes on standard error
  heddle config import config.yaml | heddle apply -f -
  heddle config import config.yaml --keep-ids > registries.yaml

A file with something in it that can mean nothing is refused as a whole, with the place. The output holds the credentials
that the file holds.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// config.yaml of the broker; `-` is standard input
    file: String,

    /// Give offerings the ids that the other broker gave them, for platforms that know those
    #[arg(long)]
    keep_ids: bool,

    /// How to write the manifests
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ManifestFormat,
}

/// `-o` of manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ManifestFormat {
    /// One document for each object
    #[default]
    Yaml,
    /// One List
    Json,
}

/// Writes manifests to standard output, and what became of other keys to standard error. `read` answers what a file holds.
pub(super) fn import(
    args: &Args,
    read: impl Fn(&str) -> anyhow::Result<Vec<u8>>,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let file = &args.file;
    let text =
        String::from_utf8(read(file)?).with_context(|| format!("{file} is not UTF-8 text"))?;
    let mut imported = asb::import(&text).with_context(|| format!("cannot use {file}"))?;
    if args.keep_ids {
        for registry in &mut imported.registries {
            registry.spec.id_scheme = IdScheme::AsbMd5;
        }
    }
    for warning in &imported.warnings {
        terminal.warn(&format!("{file}: {warning}"));
    }
    let manifests = imported.manifests();
    let text = match args.output {
        ManifestFormat::Yaml => {
            let document = |object| format!("---\n{}", output::yaml(object));
            manifests.iter().map(document).collect()
        }
        ManifestFormat::Json => {
            output::json(&json!({"apiVersion": "v1", "kind": "List", "items": manifests}))
        }
    };
    Ok(terminal.print(&text)?)
}

#[cfg(all(test, feature = "import-asb"))]
mod tests;
