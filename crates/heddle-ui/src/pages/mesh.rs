//! The first page: is it well, and if not, where.

use heddle_api::health::topology::TopologyGraph;
use heddle_api::health::{ApplicationHealthList, HealthStatus, MeshHealth, Planes};
use heddle_api::ledger::{Account, Accounts};
use maud::{Markup, html};

use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::graph;
use crate::frame::{self, RenderedPage};
use crate::links::PageLinks;
use crate::parts::verdict;
use crate::words::{self, capital};

const HEALTH: &str = "/heddle/v1/health";
/// Applications in the table of the first page; all are on their own.
const APPLICATIONS_MAX: usize = 50;
/// Rows of the accounts.
const ACCOUNTS_MAX: usize = 200;

/// The picture that everybody can ask for.
pub(crate) async fn topology(look: &PageLook) -> Result<TopologyGraph, AnswerFault> {
    look.ask.get("/heddle/v1/topology").await
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let mesh: MeshHealth = look.ask.get(HEALTH).await?;
    let applications: ApplicationHealthList =
        look.ask.get("/heddle/v1/health/applications").await?;
    let topology = topology(look).await?;
    let accounts: Accounts = look.ask.get("/heddle/v1/accounts?depth=tallied").await?;
    let body = html! {
        (headline(&mesh, look))
        (facts(&mesh, &accounts, look))
        (ways(&topology, look))
        (self::applications(&applications, look))
        (equation(&accounts, look))
        (frame::as_of(mesh.at, look.now))
    };
    Ok(RenderedPage::new("mesh", "", "Mesh", body).behind("heddle health", HEALTH))
}

/// The verdict, and the planes that it is made of.
fn headline(mesh: &MeshHealth, look: &PageLook) -> Markup {
    let (found, links) = (&mesh.verdict, &look.links);
    let word = found.health.word();
    html! {
        section #verdict.headline data-verdict=(word) data-scope="mesh" {
            h1 { (verdict::mark(word)) " The mesh is " span.word { (word) } }
            p.lead { (found.message) }
            p.quiet {
                "Since " (words::since(found.since, look.now))
                @if let Some(plane) = found.plane { " · " (plane.word()) " plane" }
                @if let Some(hop) = &found.hop { " · hop " (hop) }
            }
            @if found.health != HealthStatus::Healthy {
                details open { summary { "Why, and what helps" } (verdict::particulars(found, links)) }
            }
        }
        (planes(&found.planes, links))
    }
}

/// The four planes, side by side.
pub(crate) fn planes(planes: &Planes, links: &PageLinks) -> Markup {
    html! {
        ul.planes aria-label="Planes" {
            @for (plane, found) in planes.iter() {
                li data-verdict=(found.health.word()) data-plane=(plane.word()) {
                    h2 { (verdict::mark(found.health.word())) " " (plane.word()) " " span.quiet { (found.health.word()) } }
                    p { (found.message) }
                    @if found.health != HealthStatus::Healthy {
                        details { summary { "Details" } (verdict::of_plane(found, links)) }
                    }
                }
            }
        }
    }
}

fn facts(mesh: &MeshHealth, accounts: &Accounts, look: &PageLook) -> Markup {
    let counts = &mesh.applications;
    let log = &accounts.log;
    html! {
        ul.figures {
            @for health in [HealthStatus::Unhealthy, HealthStatus::Degraded, HealthStatus::Unknown, HealthStatus::Healthy] {
                @if counts.of(health) > 0 || health == HealthStatus::Healthy {
                    li data-verdict=(health.word()) { strong { (counts.of(health)) } " " (verdict::mark(health.word())) " " (health.word()) " " @if counts.of(health) == 1 { "application" } @else { "applications" } }
                }
            }
            @if let Some(heartbeat) = &mesh.heartbeat {
                li {
                    strong { @match heartbeat.age_seconds { Some(age) => (words::seconds(age)), None => "–" } }
                    " since the canary arrived"
                    @if let Some(took) = heartbeat.end_to_end_seconds { ", in " (words::seconds(took)) }
                }
            }
            @if !log.is_untold() { li { strong { (words::number(log.events)) } " events kept, " (words::bytes(log.bytes)) } }
            @if let Some(free) = log.free_bytes { li { strong { (words::bytes(free)) } " free on their disk" } }
            li { a href=(look.links.page("dead-letters")) { strong { (words::number(accounts.consumers.iter().map(|account| account.dead_letters).sum())) } " dead letters" } }
            li { a href=(look.links.page("checks")) { "All checks" } }
        }
    }
}

fn ways(topology: &TopologyGraph, look: &PageLook) -> Markup {
    let links = &look.links;
    let as_table = look.visit.text("view").as_deref() == Some("table");
    html! {
        section.card.ways aria-labelledby="ways" data-view=(if as_table { "table" } else { "graph" }) {
            div.bar {
                h2 #ways { "Ways of events" }
                span.choice {
                    a href=(links.page("")) aria-current=[(!as_table).then_some("true")] { "Graph" }
                    a href=(links.page("?view=table")) aria-current=[as_table.then_some("true")] { "Table" }
                }
                a href=(links.page("graph.svg")) download="heddle-mesh.svg" data-file { "SVG" }
                a href=(links.server("/heddle/v1/topology?all")) download="heddle-mesh.json" data-file { "JSON" }
            }
            @if topology.nodes.is_empty() {
                div.state {
                    p { "There is no application yet." }
                    p.quiet { "Declare one, and it is drawn here: " code { "heddle apply -f application.yaml" } ". " code { "heddle demo" } " shows a whole mesh." }
                }
            } @else {
                @if let Some(truncated) = &topology.truncated {
                    p.notice { (words::number(truncated.hidden.into())) " nodes that are well are summed up by " (truncated.by) "; those that are not are all shown." }
                }
                div.picture { (graph::draw(topology, links, false)) }
                div.twin { (graph::table(topology, links)) }
            }
        }
    }
}

/// All applications, the worst first.
pub(crate) fn applications(list: &ApplicationHealthList, look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        section.card aria-labelledby="applications" {
            h2 #applications { "Applications" }
            @if list.items.is_empty() { p.quiet { "None yet." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Application" } th scope="col" { "How it is" } th scope="col" { "State" } th scope="col" { "Why" } th scope="col" { "Since" } th scope="col" { "Published" } } }
                    tbody {
                        @for application in list.items.iter().take(APPLICATIONS_MAX) {
                            @let found = &application.eventing.verdict;
                            tr data-row data-verdict=(found.health.word()) data-application=(application.name) {
                                th scope="row" { a href=(links.application(&application.name, None)) { (application.name) } }
                                td data-label="How it is" { (verdict::badge(found.health.word())) }
                                td data-label="State" { (state(application.eventing.state)) }
                                td data-label="Why" { (found.message) }
                                td data-label="Since" { (words::since(found.since, look.now)) }
                                td data-label="Published" { span data-number=(format!("application/{}", application.name)) data-of="source" { "–" } }
                            }
                        }
                    }
                } }
                @if list.items.len() > APPLICATIONS_MAX {
                    p.quiet { "The worst " (APPLICATIONS_MAX) " of " (list.items.len()) ". " a href=(links.page("applications")) { "All applications" } }
                }
            }
        }
    }
}

/// How far an application has come, in words.
pub(crate) fn state(state: u8) -> &'static str {
    match state {
        1 => "1 of 4, created",
        2 => "2 of 4, bound",
        3 => "3 of 4, enabled",
        4 => "4 of 4, triggered",
        _ => "–",
    }
}

/// What an account counts: the word for it, the query that lists the events, and the count.
type AccountTerm = (&'static str, &'static str, fn(&Account) -> u64);

/// The ways in which an event can have ended or be under way, in the order of the equation.
const TERMS: [AccountTerm; 6] = [
    ("delivered", "state:delivered", |account| account.delivered),
    ("dead", "state:deadLettered", |account| {
        account.dead_lettered
    }),
    ("expired", "state:expired", |account| account.expired),
    ("removed", "state:removed", |account| account.removed),
    // Nobody knows which those are.
    ("lost", "", |account| account.lost),
    ("pending", UNDER_WAY, |account| account.pending),
];
const UNDER_WAY: &str = "state:pending,delivering,retrying,waiting";

/// Every event accounted for: the sum, and each consumer.
fn equation(accounts: &Accounts, look: &PageLook) -> Markup {
    let sum = |of: fn(&Account) -> u64| accounts.consumers.iter().map(of).sum::<u64>();
    let difference: i128 = accounts.consumers.iter().map(Account::difference).sum();
    let terms = TERMS.map(|(name, query, of)| (name, query, sum(of)));
    let terms = terms.into_iter();
    let terms = terms.filter(|(name, _, count)| *name != "lost" || *count > 0);
    let balanced = if difference == 0 {
        "healthy"
    } else {
        "unhealthy"
    };
    html! {
        section.card aria-labelledby="accounts" {
            h2 #accounts { "Accounts" }
            p.equation data-verdict=(balanced) data-balance=(difference) {
                span.term { strong { (words::number(sum(|account| account.matched))) } " matched" } " = "
                @for (index, (name, query, count)) in terms.enumerate() {
                    @if index > 0 { " + " }
                    span.term { strong { (listed(count, query, look)) } " " (name) }
                }
                " " span.verdict data-verdict=(balanced) { (verdict::mark(balanced)) @if difference == 0 { "balanced" } @else { "off by " (difference) } }
            }
            @if !accounts.consumers.is_empty() {
                details { summary { "By consumer" } (consumers(&accounts.consumers, look)) }
            }
        }
    }
}

/// A number, and behind it the events that it counts, as far as the log still has them.
fn listed(count: u64, query: &str, look: &PageLook) -> Markup {
    html! {
        @if count == 0 || query.is_empty() { (words::number(count)) }
        @else { a href=(look.links.events(query)) { (words::number(count)) } }
    }
}

/// The account of each consumer. Behind each number are the events that it counts.
pub(crate) fn consumers(accounts: &[Account], look: &PageLook) -> Markup {
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Consumer" } th.number scope="col" { "Matched" } @for (name, ..) in TERMS { @if name != "lost" { th.number scope="col" { (capital(name)) } } } th scope="col" { "Oldest" } th scope="col" { "Held" } } }
            tbody {
                @for account in accounts.iter().take(ACCOUNTS_MAX) {
                    tr data-row {
                        th scope="row" { (verdict::object(&account.consumer, &look.links)) }
                        td.number data-label="Matched" { (words::number(account.matched)) }
                        @for (name, query, of) in TERMS { @if name != "lost" {
                            td.number data-label=(capital(name)) { (listed(of(account), &format!("consumer:\"{}\" {query}", account.consumer), look)) }
                        } }
                        td data-label="Oldest" { @if let Some(at) = account.oldest_pending_at { (words::since(at, look.now)) } @else { "–" } }
                        td data-label="Held" { @if let Some(why) = &account.held { (why) } @else { "–" } }
                    }
                }
            }
        } }
        @if accounts.len() > ACCOUNTS_MAX { p.quiet { "The first " (ACCOUNTS_MAX) " of " (accounts.len()) "." } }
    }
}
