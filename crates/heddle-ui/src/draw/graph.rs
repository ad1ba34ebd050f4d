//! The mesh as a picture: hops in columns, events going from left to right.
//!
//! What is broken differs by shape as well: a mark beside the name, a dashed link, a cross on a link that is cut, dots where
//! policy denies. A link that is not well leads to the object at fault, where the evidence is.

use heddle_api::health::topology::{GraphLink, GraphNode, TopologyGraph};
use maud::{Markup, html};

use super::layout::{self, GraphPlaces};
use crate::links::PageLinks;
use crate::parts::verdict;
use crate::words::shortened;

const NODE_WIDTH: f64 = 172.0;
const NODE_HEIGHT: f64 = 40.0;
const COLUMN_GAP: f64 = 50.0;
const ROW: f64 = 52.0;
/// Above the nodes, for the names of columns.
const HEAD: f64 = 30.0;
const EDGE: f64 = 2.0;
/// Letters of a name that fit.
const NAME_LETTERS: usize = 20;
const PLACE_LETTERS: usize = 16;

/// How a drawing that stands alone is coloured; on the page the style has the same classes.
const OWN_STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1b2330}.where,.hop,.number{font-size:11px;fill:#566276}\
.box{fill:#fff;stroke:#cfd6e1}.link{fill:none;stroke:#9fabbd;stroke-width:1.5}\
[data-verdict=healthy] .mark-shape{fill:#1a7f4b}[data-verdict=degraded] .mark-shape{fill:#9a6200}\
[data-verdict=unhealthy] .mark-shape{fill:#c4292f}[data-verdict=unknown] .mark-shape{fill:none;stroke:#5d6878;stroke-width:2}\
.link[data-verdict=unhealthy],.cut{stroke:#c4292f;stroke-dasharray:5 4}.link[data-verdict=degraded]{stroke:#9a6200;stroke-dasharray:9 3}\
.link[data-verdict=unknown]{stroke-dasharray:2 4}.link[data-denied]{stroke-dasharray:1 5}.cut{stroke-width:2;stroke-dasharray:none}";

/// What hops are called above their columns.
fn title(hop: &str) -> &'static str {
    match hop {
        "source" => "Source",
        "channel" => "Channel",
        "subscription" => "Link",
        "broker" => "Broker",
        "trigger" => "Trigger",
        "delivery" => "Subscriber",
        _ => "Not shown one by one",
    }
}

/// The picture. With `alone` it brings its colours and has no way to anywhere, for a file.
pub(crate) fn draw(graph: &TopologyGraph, links: &PageLinks, alone: bool) -> Markup {
    let places = layout::place(graph);
    let columns = places.columns.len() as f64;
    let width = (columns * (NODE_WIDTH + COLUMN_GAP) - COLUMN_GAP).max(NODE_WIDTH) + EDGE * 2.0;
    let height = HEAD + places.rows * ROW - (ROW - NODE_HEIGHT) + EDGE * 2.0;
    let namespace = alone.then_some("http://www.w3.org/2000/svg");
    html! {
        svg.graph xmlns=[namespace] viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height)
            role="group" aria-label="The ways of events, hop by hop" {
            @if alone { style { (maud::PreEscaped(OWN_STYLE)) } rect width="100%" height="100%" fill="#f6f7f9" {} }
            @for (index, hop) in places.columns.iter().enumerate() {
                text.hop x=(EDGE + index as f64 * (NODE_WIDTH + COLUMN_GAP) + 2.0) y="14" { (title(hop)) }
            }
            g.links aria-hidden="true" {
                @for (from, to, index) in &places.links {
                    (link(&graph.links[*index], point(&places, *from, NODE_WIDTH), point(&places, *to, 0.0)))
                }
            }
            @if !alone {
                @for (from, to, index) in &places.links {
                    (fault(&graph.links[*index], links, point(&places, *from, NODE_WIDTH), point(&places, *to, 0.0)))
                }
            }
            @for (index, node) in graph.nodes.iter().enumerate() {
                @let at = point(&places, index, 0.0);
                @match links.object(&node.id).filter(|_| !alone) {
                    Some(way) => a href=(way) { (drawn(node, at)) },
                    None => g role="img" aria-label=(spoken(node)) { (drawn(node, at)) },
                }
            }
        }
    }
}

/// The middle of a node's left side, moved to the right.
fn point(places: &GraphPlaces, node: usize, right: f64) -> (f64, f64) {
    let (column, row) = places.places[node];
    let x = EDGE + column as f64 * (NODE_WIDTH + COLUMN_GAP) + right;
    (x, HEAD + EDGE + row * ROW + NODE_HEIGHT / 2.0)
}

/// The curve of a link.
fn curve((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    let bend = ((x2 - x1) / 2.0).abs().max(12.0);
    let (left, right) = (x1 + bend, x2 - bend);
    format!("M{x1} {y1}C{left} {y1} {right} {y2} {x2} {y2}")
}

fn link(link: &GraphLink, from: (f64, f64), to: (f64, f64)) -> Markup {
    let word = verdict::known(&link.verdict);
    let (x, y) = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    html! {
        path.link data-verdict=(word) data-denied[link.denied.is_some()] d=(curve(from, to)) {}
        @if word == "unhealthy" {
            path.cut d=(format!("M{} {}l10 10m0 -10l-10 10", x - 5.0, y - 5.0)) {}
        }
    }
}

/// Over a link that is not well: as wide as a finger, and the way to the evidence.
fn fault(link: &GraphLink, links: &PageLinks, from: (f64, f64), to: (f64, f64)) -> Markup {
    let word = verdict::known(&link.verdict);
    let way = links.object(&link.object);
    let said = said(link);
    html! {
        @if let Some(way) = way.filter(|_| word != "healthy") {
            a.fault href=(way) aria-label=(said) data-link=(link.object) {
                title { (said) }
                path.hit d=(curve(from, to)) {}
            }
        }
    }
}

fn said(link: &GraphLink) -> String {
    let denied = link.denied.as_ref();
    let denied = denied.map(|remedy| format!(": {remedy}"));
    format!(
        "From {} to {}, {}{}",
        link.from,
        link.to,
        verdict::known(&link.verdict),
        denied.unwrap_or_default()
    )
}

fn drawn(node: &GraphNode, (x, y): (f64, f64)) -> Markup {
    let (name, place) = labels(node);
    let top = y - NODE_HEIGHT / 2.0;
    let word = verdict::known(&node.verdict);
    let (middle, small) = (y - 5.0, y + 12.0);
    html! {
        g.node data-verdict=(word) data-node=(node.id) {
            title { (spoken(node)) }
            rect.box x=(x) y=(top) width=(NODE_WIDTH) height=(NODE_HEIGHT) rx="7" {}
            g role="img" aria-label=(word) { (shape(word, x + 15.0, y)) }
            text.name x=(x + 29.0) y=(middle + 3.0) { (shortened(&name, NAME_LETTERS)) }
            text.where x=(x + 29.0) y=(small) { (shortened(&place, PLACE_LETTERS)) }
            @if let Some(numbers) = numbers(node) {
                text.number x=(x + NODE_WIDTH - 8.0) y=(small) text-anchor="end" data-number=(numbers) data-of=(node.hop) {}
            }
        }
    }
}

/// The shape of a verdict, around a point.
fn shape(word: &str, x: f64, y: f64) -> Markup {
    html! {
        @match word {
            "healthy" => circle.mark-shape cx=(x) cy=(y) r="5" {},
            "degraded" => path.mark-shape d=(format!("M{x} {}l6.5 11.5h-13z", y - 7.0)) {},
            "unhealthy" => rect.mark-shape x=(x - 5.5) y=(y - 5.5) width="11" height="11" rx="1" {},
            _ => circle.mark-shape.ring cx=(x) cy=(y) r="4.5" {},
        }
    }
}

/// What stands on a node: its own name, and where it is.
pub(crate) fn labels(node: &GraphNode) -> (String, String) {
    if let Some(count) = node.of {
        return (format!("{count} more"), namespace(node).to_owned());
    }
    let mut parts = node.id.splitn(3, '/').skip(1);
    match (parts.next(), parts.next()) {
        (Some(namespace), Some(name)) => (name.to_owned(), namespace.to_owned()),
        (Some(name), None) => (name.to_owned(), "application".to_owned()),
        _ => (node.id.clone(), String::new()),
    }
}

/// Where those are that a node stands for.
fn namespace(node: &GraphNode) -> &str {
    match node.ns.as_deref().unwrap_or_default() {
        "" => "of no namespace",
        "*" => "in others",
        namespace => namespace,
    }
}

/// Whose numbers of the stream belong on a node.
pub(crate) fn numbers(node: &GraphNode) -> Option<String> {
    match node.hop.as_str() {
        "source" | "subscription" | "trigger" => Some(node.id.clone()),
        "delivery" => Some(node.id.replacen("subscriber/", "trigger/", 1)),
        _ => None,
    }
}

fn spoken(node: &GraphNode) -> String {
    let reason = node.reason.as_ref().map(|reason| format!(": {reason}"));
    let count = node.of.map(|count| format!(", {count} together"));
    format!(
        "{}, {}{}{}",
        node.id,
        verdict::known(&node.verdict),
        reason.unwrap_or_default(),
        count.unwrap_or_default()
    )
}

/// The same as a table, for who does not look at pictures and for narrow screens.
pub(crate) fn table(graph: &TopologyGraph, links: &PageLinks) -> Markup {
    let next = |node: &GraphNode| -> Vec<&GraphLink> {
        let leading = graph.links.iter().filter(|link| link.from == node.id);
        leading.collect()
    };
    html! {
        div.table {
            table {
                caption.unseen { "Hops of all ways, and where each leads" }
                thead { tr { th scope="col" { "Hop" } th scope="col" { "Name" } th scope="col" { "How it is" } th scope="col" { "Numbers" } th scope="col" { "Leads to" } } }
                tbody {
                    @for node in &graph.nodes {
                        tr data-row data-verdict=(verdict::known(&node.verdict)) {
                            td data-label="Hop" { (title(&node.hop)) }
                            th scope="row" {
                                @if let Some(count) = node.of { (count) " more, " (namespace(node)) @if let Some(verdicts) = node.verdicts { ": " (verdicts.said()) } }
                                @else { (verdict::object(&node.id, links)) }
                            }
                            td data-label="How it is" { (verdict::badge(&node.verdict)) @if let Some(reason) = node.reason.as_ref().filter(|_| node.of.is_none()) { " " (reason) } }
                            td data-label="Numbers" { @if let Some(numbers) = numbers(node) { span data-number=(numbers) data-of=(node.hop) { "–" } } }
                            td data-label="Leads to" { @for (index, link) in next(node).iter().enumerate() { @if index > 0 { ", " } (verdict::object(&link.to, links)) @if let Some(remedy) = &link.denied { " (denied: " (remedy) ")" } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> TopologyGraph {
        let node = |id: &str, hop: &str, verdict: &str| GraphNode {
            id: id.to_owned(),
            hop: hop.to_owned(),
            verdict: verdict.to_owned(),
            reason: Some("</title><script>alert(1)</script>".to_owned()),
            ..GraphNode::default()
        };
        TopologyGraph {
            nodes: vec![
                node("application/shop", "source", "healthy"),
                node("channel/kyma-integration/shop", "channel", "unhealthy"),
                node("<script>/x", "delivery", "made up"),
            ],
            links: vec![GraphLink {
                from: "application/shop".to_owned(),
                to: "channel/kyma-integration/shop".to_owned(),
                hop: "source".to_owned(),
                verdict: "unhealthy".to_owned(),
                object: "channel/kyma-integration/shop".to_owned(),
                denied: Some("<script>apply</script>".to_owned()),
                ..GraphLink::default()
            }],
            ..TopologyGraph::default()
        }
    }

    #[test]
    fn every_node_is_in_the_picture_and_in_the_table() {
        let (graph, links) = (hostile(), PageLinks::new(""));
        let (picture, table) = (
            draw(&graph, &links, false).into_string(),
            table(&graph, &links).into_string(),
        );
        for shown in [&picture, &table] {
            assert!(!shown.contains("<script"), "{shown}");
            for id in [
                "application/shop",
                "channel/kyma-integration/shop",
                "&lt;script&gt;/x",
            ] {
                assert!(shown.contains(id), "{id} is not in {shown}");
            }
        }
        assert!(picture.contains("class=\"cut\"") && picture.contains("/ui/applications/shop"));
        assert!(table.contains("denied: &lt;script&gt;apply"), "{table}");
        let fault = "<a class=\"fault\" href=\"/ui/objects/channel/kyma-integration/shop\"";
        assert!(picture.contains(fault), "{picture}");
    }

    #[test]
    fn a_file_stands_alone() {
        let picture = draw(&hostile(), &PageLinks::new(""), true).into_string();
        assert!(
            picture.starts_with("<svg") && picture.contains("xmlns=\"http://www.w3.org/2000/svg\"")
        );
        assert!(!picture.contains("href") && picture.contains("<style>"));
    }
}
