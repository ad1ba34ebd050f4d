//! `heddle topology`: every hop of every flow, as a tree. What is asked for is chosen by the server.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::health::topology::{GraphLink, GraphNode, TopologyGraph};

use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, harmless};
use crate::terminal::{Terminal, Tone, paint};

const EXAMPLES: &str = "\
Examples:
  heddle topology                  every application, its channel, links, brokers, triggers and subscribers
  heddle topology --all            also where there are very many
  heddle topology -q team-a/ --verdict unhealthy,degraded
                                   what is not well there, and one way to each
  heddle topology -o json | jq '.nodes[] | select(.verdict == \"unhealthy\")'";

/// Every hop of every flow, and how well each is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Show everything one by one; otherwise at most 150 nodes, the worst first, and the rest summed up by namespace
    #[arg(long)]
    all: bool,

    /// Only objects with this in their name, application or namespace, and a way to each
    #[arg(short = 'q', long = "query", value_name = "NAME")]
    name: Option<String>,

    /// Only what is as well as that; several with commas between them
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = ["healthy", "degraded", "unknown", "unhealthy"])]
    verdict: Vec<String>,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let ledger = Ledger::of(&remote);
    let verdicts = args.verdict.join(",");
    let graph = ledger
        .topology(args.all, args.name.as_deref(), &verdicts)
        .await?;
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
    let mut below: BTreeMap<&str, Vec<&GraphLink>> = BTreeMap::new();
    for link in &graph.links {
        below.entry(&link.from).or_default().push(link);
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
        let (by, said) = (&truncated.by, truncated.verdicts.said());
        drawing.text.push_str(&format!(
            "{hidden} nodes are summed up by {by} ({said}); --all shows each\n"
        ));
    }
    if drawing.text.is_empty() {
        drawing
            .text
            .push_str("there is nothing that events could pass\n");
    }
    drawing.text
}

struct Tree<'a> {
    nodes: BTreeMap<&'a str, &'a GraphNode>,
    below: BTreeMap<&'a str, Vec<&'a GraphLink>>,
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
            if let Some(remedy) = next.denied.as_deref().map(harmless) {
                let denied = paint(self.colour, Tone::Bad, "denied");
                let indent = "  ".repeat(depth + 1);
                self.text.push_str(&format!("{indent}{denied}: {remedy}\n"));
            }
            self.branch(&next.to, depth + 1);
        }
    }
}
