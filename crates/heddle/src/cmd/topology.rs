//! `heddle topology`: every hop of every flow, as a tree.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::health::topology::{GraphNode, TopologyGraph};

use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, harmless};
use crate::terminal::{Terminal, Tone, paint};

const EXAMPLES: &str = "\
Examples:
  heddle topology                  every application, its channel, links, brokers, triggers and subscribers
  heddle topology --all            also where there are very many
  heddle topology -o json | jq '.nodes[] | select(.verdict == \"unhealthy\")'";

/// Every hop of every flow, and how well each is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Show everything one by one; otherwise what is well is summed up by namespace where there is much of it
    #[arg(long)]
    all: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let graph = Ledger::of(&remote).topology(args.all).await?;
    let colour = terminal.colour_out;
    let text = args.output.render(&graph, |graph| tree(graph, colour));
    terminal.print(&text)?;
    Ok(())
}

/// What nothing leads to comes first, and below each node what it leads to. What was shown once is not shown again.
fn tree(graph: &TopologyGraph, colour: bool) -> String {
    let nodes: BTreeMap<&str, &GraphNode> = graph
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for link in &graph.links {
        below.entry(&link.from).or_default().push(&link.to);
    }
    let led_to: BTreeSet<&str> = graph.links.iter().map(|link| link.to.as_str()).collect();
    let mut drawing = Tree {
        nodes,
        below,
        shown: BTreeSet::new(),
        colour,
        text: String::new(),
    };
    for node in graph
        .nodes
        .iter()
        .filter(|node| !led_to.contains(&*node.id))
    {
        drawing.branch(&node.id, 0);
    }
    if let Some(truncated) = &graph.truncated {
        let hidden = truncated.hidden;
        let by = &truncated.by;
        drawing.text.push_str(&format!(
            "{hidden} that are well are summed up by {by}; --all shows each\n"
        ));
    }
    if drawing.text.is_empty() {
        drawing.text.push_str("there is no application\n");
    }
    drawing.text
}

struct Tree<'a> {
    nodes: BTreeMap<&'a str, &'a GraphNode>,
    below: BTreeMap<&'a str, Vec<&'a str>>,
    shown: BTreeSet<&'a str>,
    colour: bool,
    text: String,
}

impl<'a> Tree<'a> {
    fn branch(&mut self, id: &'a str, depth: usize) {
        let Some(node) = self.nodes.get(id).copied() else {
            return;
        };
        let again = !self.shown.insert(id);
        let indent = "  ".repeat(depth);
        let tone = match node.verdict.as_str() {
            "healthy" => Tone::Good,
            "unhealthy" => Tone::Bad,
            _ => Tone::Strong,
        };
        let verdict = paint(self.colour, tone, &node.verdict);
        let reason = node.reason.as_deref().map(harmless);
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let of = node.of.map_or_else(String::new, |of| format!(" ({of})"));
        let id_shown = harmless(id);
        self.text
            .push_str(&format!("{indent}{id_shown}{of}  {verdict}{reason}\n"));
        if again {
            return;
        }
        for next in self.below.get(id).cloned().unwrap_or_default() {
            self.branch(next, depth + 1);
        }
    }
}
