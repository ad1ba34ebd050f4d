//! The first page: is it well, and if not, where.

use heddle_api::account_terms::{AccountTerm, MATCHED, OUTCOMES};
use heddle_api::forecast::{Forecast, ForecastEvent};
use heddle_api::health::alerts::told::AlertList;
use heddle_api::health::topology::TopologyGraph;
use heddle_api::health::{ApplicationHealth, HealthStatus, MeshHealth, Planes};
use heddle_api::ledger::{Account, Accounts};
use maud::{Markup, html};

use super::{PageLook, PageResult, ROWS_MAX};
use crate::ask::AnswerFault;
use crate::draw::graph;
use crate::frame::{self, RenderedPage};
use crate::links::{PageLinks, part};
use crate::parts::verdict;
use crate::words::{self, capital};

pub(crate) const HEALTH: &str = "/heddle/v1/health?applications";
/// Applications in the table of the first page; more are on their own.
const APPLICATIONS_MAX: usize = 50;
/// Consumers of which it is told what to expect, of each kind.
const EXPECTED_MAX: usize = 5;
/// Rows of the accounts.
const ACCOUNTS_MAX: usize = 200;

/// What of the picture somebody wants to see: the question as it is asked, or nothing.
fn asked(look: &PageLook) -> String {
    let pairs = ["q", "verdict"].into_iter();
    let pairs = pairs.filter_map(|key| Some(format!("{key}={}", part(&look.visit.text(key)?))));
    pairs.collect::<Vec<String>>().join("&")
}

/// The picture that everybody can ask for.
pub(crate) async fn topology(look: &PageLook) -> Result<TopologyGraph, AnswerFault> {
    let asked = asked(look);
    look.ask.get(&format!("/heddle/v1/topology?{asked}")).await
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let mesh: MeshHealth = look.ask.get(HEALTH).await?;
    let applications = mesh.application_list.as_deref().unwrap_or_default();
    let topology = topology(look).await?;
    let accounts: Accounts = look.ask.get("/heddle/v1/accounts?depth=tallied").await?;
    let alerts: AlertList = look.ask.get(super::alerts::QUESTION).await?;
    let body = html! {
        (headline(&mesh, look))
        (facts(&mesh, &accounts, &alerts, look))
        (expected(&accounts, look))
        (ways(&topology, look))
        (self::applications(applications, APPLICATIONS_MAX, look))
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

fn facts(mesh: &MeshHealth, accounts: &Accounts, alerts: &AlertList, look: &PageLook) -> Markup {
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
            li { (super::alerts::way(alerts, look)) }
            li { a href=(look.links.page("checks")) { "All checks" } }
            li { a href=(look.links.page("delays")) { "Delays" } }
            li { a href=(look.links.page("what-if")) { "What would a change do?" } }
        }
    }
}

/// What is to be expected if it goes on so: of the disk, of the dead letters that begin first and the backlogs that last longest.
fn expected(accounts: &Accounts, look: &PageLook) -> Markup {
    let of = |event: ForecastEvent| {
        let all = accounts.consumers.iter();
        let found = all.flat_map(|account| {
            account
                .forecasts
                .iter()
                .map(move |one| (&*account.consumer, one))
        });
        let mut found: Vec<(&str, &Forecast)> =
            found.filter(|(_, one)| one.event == event).collect();
        found.sort_by(|(_, one), (_, other)| one.in_s.total_cmp(&other.in_s));
        found
    };
    let dead = of(ForecastEvent::DeadLettersBegin);
    let done = of(ForecastEvent::BacklogDone);
    if accounts.log.disk_full.is_none() && dead.is_empty() && done.is_empty() {
        return html! {};
    }
    let shown = dead
        .iter()
        .take(EXPECTED_MAX)
        .chain(done.iter().rev().take(EXPECTED_MAX));
    let more = dead.len().saturating_sub(EXPECTED_MAX) + done.len().saturating_sub(EXPECTED_MAX);
    html! {
        section.card aria-labelledby="expected" {
            h2 #expected { "If it goes on so" }
            ul.plain {
                @if let Some(full) = &accounts.log.disk_full { li data-forecast=(full.in_s) data-of="log" { (capital(&full.in_words())) } }
                @for (consumer, forecast) in shown {
                    li data-forecast=(forecast.in_s) data-of=(consumer) { (verdict::object(consumer, &look.links)) ": " (forecast.in_words()) }
                }
            }
            @if more > 0 { p.quiet { (words::number(more as u64)) " others are not shown." } }
        }
    }
}

fn ways(topology: &TopologyGraph, look: &PageLook) -> Markup {
    let (links, asked) = (&look.links, asked(look));
    let as_table = look.visit.text("view").as_deref() == Some("table");
    let with = |rest: &str| match asked.is_empty() {
        true => rest.trim_end_matches(['&', '?']).to_owned(),
        false => format!("{rest}{asked}"),
    };
    html! {
        section.card.ways aria-labelledby="ways" data-view=(if as_table { "table" } else { "graph" }) {
            div.bar {
                h2 #ways { "Ways of events" }
                span.choice {
                    a href=(links.page(&with("?"))) aria-current=[(!as_table).then_some("true")] { "Graph" }
                    a href=(links.page(&with("?view=table&"))) aria-current=[as_table.then_some("true")] { "Table" }
                }
                a href=(links.page(&with("graph.svg?"))) download="heddle-mesh.svg" data-file { "SVG" }
                a href=(links.server(&with("/heddle/v1/topology?all&"))) download="heddle-mesh.json" data-file { "JSON" }
            }
            @if !topology.nodes.is_empty() || !asked.is_empty() { (narrowing(look)) }
            @if topology.nodes.is_empty() && asked.is_empty() {
                div.state {
                    p { "There is no application yet." }
                    p.quiet { "Declare one, and it is drawn here: " code { "heddle apply -f application.yaml" } ". " code { "heddle demo" } " shows a whole mesh." }
                }
            } @else if topology.nodes.is_empty() {
                div.state { p { "Nothing is named so and is as well as that." } }
            } @else {
                @if let Some(truncated) = &topology.truncated {
                    p.notice { (words::number(truncated.hidden.into())) " nodes are summed up by " (truncated.by) ": " (truncated.verdicts.said()) "." }
                }
                div.picture { (graph::draw(topology, links, false)) }
                div.twin { (graph::table(topology, links)) }
            }
        }
    }
}

/// Asks for a part of the picture.
fn narrowing(look: &PageLook) -> Markup {
    let chosen = |key: &str| look.visit.text(key);
    html! {
        form.acts method="get" action=(look.links.page("")) {
            @if let Some(view) = chosen("view") { input type="hidden" name="view" value=(view); }
            label { "Named " input name="q" value=[chosen("q")] placeholder="shop, team-a/" maxlength="256" autocomplete="off" spellcheck="false"; }
            label { "How it is "
                select name="verdict" {
                    option value="" { "any" }
                    @for health in HealthStatus::ALL {
                        option value=(health.word()) selected[chosen("verdict").as_deref() == Some(health.word())] { (health.word()) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// The worst applications, the very worst first.
pub(crate) fn applications(list: &[ApplicationHealth], rows_max: usize, look: &PageLook) -> Markup {
    let links = &look.links;
    let beyond = list.len().saturating_sub(rows_max) as u64;
    html! {
        section.card aria-labelledby="applications" {
            h2 #applications { "Applications" }
            @if list.is_empty() { p.quiet { "None yet." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Application" } th scope="col" { "How it is" } th scope="col" { "State" } th scope="col" { "Why" } th scope="col" { "Since" } th scope="col" { "Published" } } }
                    tbody {
                        @for application in list.iter().take(rows_max) {
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
                @if beyond > 0 {
                    p.quiet {
                        "The worst " (rows_max) "; " (words::number(beyond)) " more are not shown. "
                        @if rows_max < ROWS_MAX { a href=(links.page("applications")) { "More applications" } }
                        @else { code { "heddle health" } " lists all, the box above finds one by its name." }
                    }
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

/// Every event accounted for: the sum, and each consumer. A sum is opened by the table of what it is the sum of.
fn equation(accounts: &Accounts, look: &PageLook) -> Markup {
    let sum = |term: &AccountTerm| accounts.consumers.iter().map(term.count).sum::<u64>();
    let difference: i128 = accounts.consumers.iter().map(Account::difference).sum();
    let terms = OUTCOMES.iter().map(|term| (term.name, sum(term)));
    let terms = terms.filter(|(name, count)| *name != LOST || *count > 0);
    let balanced = if difference == 0 {
        "healthy"
    } else {
        "unhealthy"
    };
    html! {
        section.card aria-labelledby="accounts" {
            h2 #accounts { "Accounts" }
            p.equation data-verdict=(balanced) data-balance=(difference) {
                span.term { strong { (summed(sum(&MATCHED))) } " matched" } " = "
                @for (index, (name, count)) in terms.enumerate() {
                    @if index > 0 { " + " }
                    span.term { strong { (summed(count)) } " " (name) }
                }
                " " span.verdict data-verdict=(balanced) { (verdict::mark(balanced)) @if difference == 0 { "balanced" } @else { "off by " (difference) } }
            }
            p.quiet { "These are deliveries: an event that two consumers want counts twice." }
            @if !accounts.consumers.is_empty() {
                details { summary { "By consumer" } div #by-consumer { (consumers(&accounts.consumers, look)) } }
            }
        }
    }
}

/// A sum over consumers, and behind it what each has of it.
fn summed(count: u64) -> Markup {
    html! {
        @if count == 0 { "0" }
        @else { a href="#by-consumer" { (words::number(count)) } }
    }
}

/// The term of which nobody knows the events.
const LOST: &str = "lost";

/// A number, and behind it the list that has as many rows.
fn listed(term: &AccountTerm, account: &Account, look: &PageLook) -> Markup {
    let count = (term.count)(account);
    let letters = term.name == "dead" && account.dead_replies == 0;
    let links = &look.links;
    let query = term.query(&account.consumer);
    let to = match letters {
        true => Some(links.page(&format!(
            "dead-letters?consumer={}",
            part(&account.consumer)
        ))),
        false => query.map(|query| links.counted_events(&query, count)),
    };
    html! {
        @match to.filter(|_| count > 0) {
            Some(to) => a href=(to) { (words::number(count)) },
            None => (words::number(count)),
        }
    }
}

/// The account of each consumer. Behind each number are the events that it counts.
pub(crate) fn consumers(accounts: &[Account], look: &PageLook) -> Markup {
    let columns = || OUTCOMES.iter().filter(|term| term.name != LOST);
    html! {
        div.table { table data-accounts {
            thead { tr { th scope="col" { "Consumer" } th.number scope="col" { "Matched" } @for term in columns() { th.number scope="col" { (capital(term.name)) } } th scope="col" { "Oldest" } th scope="col" { "Held" } } }
            tbody {
                @for account in accounts.iter().take(ACCOUNTS_MAX) {
                    tr data-row data-consumer=(account.consumer) {
                        th scope="row" { (verdict::object(&account.consumer, &look.links)) }
                        td.number data-label="Matched" { (listed(&MATCHED, account, look)) @if account.sent_again > 0 { " " span.quiet data-sent-again=(account.sent_again) { "and " (words::number(account.sent_again)) " sent again" } } }
                        @for term in columns() { td.number data-label=(capital(term.name)) { (listed(term, account, look)) } }
                        td data-label="Oldest" { @if let Some(at) = account.oldest_pending_at { (words::since(at, look.now)) } @else { "–" } }
                        td data-label="Held" { @if let Some(why) = &account.held { (why) } @else { "–" } }
                    }
                }
            }
        } }
        @if accounts.len() > ACCOUNTS_MAX { p.quiet { "The first " (ACCOUNTS_MAX) " of " (accounts.len()) "." } }
    }
}
