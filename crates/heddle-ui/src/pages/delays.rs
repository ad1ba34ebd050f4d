//! How long events took to be delivered: a heat map with a row for each trigger, Application or type, of all events or of
//! those that a query finds. Beside each picture stand its figures, and each row can be read as numbers.

#[cfg(test)]
mod tests;

use heddle_api::delays::{
    DelayMap, DelayMeasure, DelayRow, DelayRows, LEVELS_MS, level, level_in_words,
};
use jiff::Timestamp;
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::heat::{self, HeatCell};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::verdict;
use crate::words;

/// Rows of one page; a query finds the others.
const ROWS_MAX: usize = 40;
/// How far back people look: what is asked, and what it is called.
const TIMES: [(&str, &str); 5] = [
    ("15m", "15 minutes"),
    ("1h", "hour"),
    ("6h", "6 hours"),
    ("1d", "day"),
    ("7d", "week"),
];

/// What somebody wants to see, as the address has it.
#[derive(Clone, Debug)]
struct AskedDelays {
    by: DelayRows,
    of: DelayMeasure,
    query: Option<String>,
    since: String,
    until: Option<String>,
    /// The row that is shown as numbers.
    row: Option<String>,
}

impl AskedDelays {
    fn read(look: &PageLook) -> Self {
        let text = |key: &str| look.visit.text(key).filter(|text| !text.is_empty());
        Self {
            by: text("by")
                .and_then(|by| DelayRows::read(&by))
                .unwrap_or_default(),
            of: text("of")
                .and_then(|of| DelayMeasure::read(&of))
                .unwrap_or_default(),
            query: text("q"),
            since: text("since").unwrap_or_else(|| "1h".to_owned()),
            until: text("until"),
            row: text("row"),
        }
    }

    /// The question behind the page.
    fn request(&self) -> String {
        format!("/heddle/v1/delays?{}", self.parameters())
    }

    fn parameters(&self) -> String {
        let mut text = format!("by={}&since={}", self.by.name(), part(&self.since));
        for (key, value) in [("until", &self.until), ("q", &self.query)] {
            if let Some(value) = value {
                text.push_str(&format!("&{key}={}", part(value)));
            }
        }
        text
    }

    fn command(&self) -> String {
        let mut text = "heddle delays".to_owned();
        if let Some(query) = &self.query {
            text.push_str(&format!(" {}", quoted(query)));
        }
        text.push_str(&format!(
            " --by {} --since {}",
            self.by.name(),
            quoted(&self.since)
        ));
        if let Some(until) = &self.until {
            text.push_str(&format!(" --until {}", quoted(until)));
        }
        text
    }

    /// This page with a row as numbers.
    fn with_row(&self, row: &str, look: &PageLook) -> String {
        let rest = format!(
            "delays?{}&of={}&row={}",
            self.parameters(),
            self.of.name(),
            part(row)
        );
        look.links.page(&rest)
    }
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let asked = AskedDelays::read(look);
    let path = asked.request();
    let found: Result<DelayMap, AnswerFault> = look.ask.get(&format!("{path}&ask=delays")).await;
    let fault = match &found {
        // What cannot be read is mended where it is written.
        Err(fault) if fault.status == http::StatusCode::BAD_REQUEST => Some(fault.to_string()),
        _ => None,
    };
    let map = match fault {
        Some(_) => DelayMap::default(),
        None => found?,
    };
    let body = html! {
        h1 { "Delays" }
        p { "How long events took from their acceptance until they were delivered, attempts that failed and all." }
        (form(&asked, fault.as_deref(), look))
        @if fault.is_none() {
            // Somebody who asked for a row wants to see it without looking for it.
            @if asked.row.is_some() { (numbers(&map, &asked, look)) }
            (rows(&map, &map.rows, &asked, look))
            @if !map.heartbeats.is_empty() { (heartbeats(&map, &asked, look)) }
            @if asked.row.is_none() { (numbers(&map, &asked, look)) }
        }
    };
    Ok(RenderedPage::new("delays", "", "Delays", body).behind(&asked.command(), &path))
}

fn form(asked: &AskedDelays, fault: Option<&str>, look: &PageLook) -> Markup {
    let is_listed = TIMES.iter().any(|(time, _)| *time == asked.since);
    html! {
        form.card.filters action=(look.links.page("delays")) method="get" {
            label { span { "Events" } input name="q" value=[asked.query.as_deref()] maxlength="4096" autocomplete="off" spellcheck="false" placeholder="type:order.* data.total>100"; }
            label { span { "A row for each" }
                select name="by" { @for by in DelayRows::ALL { option value=(by.name()) selected[by == asked.by] { (by.name()) } } }
            }
            label { span { "Within the last" }
                select name="since" {
                    @if !is_listed { option value=(asked.since) selected { (asked.since) } }
                    @for (time, name) in TIMES { option value=(time) selected[time == asked.since] { (name) } }
                }
            }
            label { span { "Shows" }
                select name="of" { @for of in DelayMeasure::ALL { option value=(of.name()) selected[of == asked.of] { (measure(of)) } } }
            }
            button.primary type="submit" { "Show" }
        }
        @if let Some(fault) = fault { p.notice role="alert" { (fault) } }
    }
}

fn measure(of: DelayMeasure) -> &'static str {
    match of {
        DelayMeasure::P50 => "what half of them do not exceed",
        DelayMeasure::P95 => "what 95 of 100 do not exceed",
        DelayMeasure::Max => "the longest",
    }
}

fn rows(map: &DelayMap, rows: &[DelayRow], asked: &AskedDelays, look: &PageLook) -> Markup {
    html! {
        // The log is read when somebody asks, not whenever something changes.
        section.card data-kept aria-labelledby="map" {
            h2 #map { "By " (map.by.name()) ", the slowest first" }
            @if rows.is_empty() {
                p { "Nothing was to be delivered in that time that you may see." }
            } @else {
                (legend())
                (table(map, &rows[..rows.len().min(ROWS_MAX)], asked, look))
            }
            @for line in map.in_words() { p.quiet { (words::capital(&line)) "." } }
            @if rows.len() > ROWS_MAX { p.quiet { (words::number((rows.len() - ROWS_MAX) as u64)) " faster ones are not shown: ask for fewer events." } }
        }
    }
}

fn heartbeats(map: &DelayMap, asked: &AskedDelays, look: &PageLook) -> Markup {
    let shown = &map.heartbeats[..map.heartbeats.len().min(ROWS_MAX)];
    html! {
        section.card aria-labelledby="heartbeats" {
            h2 #heartbeats { "Heartbeats" }
            p.quiet { "The same of what heddle sends itself, by namespace and application; none of it is in the numbers above." }
            (table(map, shown, asked, look))
        }
    }
}

fn legend() -> Markup {
    html! {
        ul.legend aria-label="Height and colour of a bar" {
            @for level in 0..=LEVELS_MS.len() { li { (heat::sample(level)) " " (level_in_words(level)) } }
            li { "≥ and an outline: some wait, so it can only become more" }
        }
    }
}

fn table(map: &DelayMap, rows: &[DelayRow], asked: &AskedDelays, look: &PageLook) -> Markup {
    html! {
        div.table { table.heats {
            thead { tr {
                th scope="col" { (words::capital(map.by.name())) }
                th.over scope="col" { span { (clock(map.since, map)) } " " span { (clock(map.until, map)) } }
                th.number scope="col" { (asked.of.name()) }
                @if asked.of != DelayMeasure::Max { th.number scope="col" { "Longest" } }
                th.number scope="col" { "Delivered" } th.number scope="col" { "Wait" } th.number scope="col" { "Not delivered" }
            } }
            tbody { @for row in rows {
                tr data-row data-delays=(row.name) data-p50=[row.delays.p50_ms] data-p95=[row.delays.p95_ms] {
                    th scope="row" { (name(map.by, &row.name, look)) " " a.quiet href=(asked.with_row(&row.name, look)) { "in numbers" span.unseen { ": " (row.name) } } }
                    td { (strip(map, row, asked.of)) }
                    td.number data-label=(asked.of.name()) { (row.delays.in_words(asked.of)) }
                    @if asked.of != DelayMeasure::Max { td.number data-label="Longest" { (row.delays.in_words(DelayMeasure::Max)) } }
                    td.number data-label="Delivered" { (words::number(row.delays.delivered)) }
                    td.number data-label="Wait" { (words::number(row.delays.waiting)) }
                    td.number data-label="Not delivered" { (words::number(row.delays.undelivered)) }
                }
            } }
        } }
    }
}

/// What a row is about, with the way to it.
fn name(by: DelayRows, name: &str, look: &PageLook) -> Markup {
    html! {
        @match by {
            _ if name.starts_with("heartbeat/") => span.object { (name) },
            DelayRows::Type => a href=(look.links.events(&type_query(name))) { (name) },
            DelayRows::Trigger | DelayRows::Application => (verdict::object(name, &look.links)),
        }
    }
}

/// The question that finds events of a type.
fn type_query(type_: &str) -> String {
    format!(
        "type:\"{}\"",
        type_.replace('\\', "\\\\").replace('"', "\\\"")
    )
}

fn strip(map: &DelayMap, row: &DelayRow, of: DelayMeasure) -> Markup {
    let cells: Vec<HeatCell> = (row.cells.iter())
        .map(|cell| HeatCell {
            column: cell.column as usize,
            level: cell.delays.measured(of).map(level),
            is_open: cell.delays.waiting > 0,
            words: format!(
                "{}: {}",
                column_time(map, cell.column),
                cell.delays.in_words(of)
            ),
        })
        .collect();
    let slowest = row.cells.iter().max_by(|one, other| {
        let of = |cell: &heddle_api::delays::DelayCell| cell.delays.measured(of).unwrap_or(-1.0);
        of(one).total_cmp(&of(other))
    });
    let in_words = match slowest {
        Some(cell) => format!(
            "{}: something in {}, the slowest at {} with {}",
            row.name,
            heddle_api::counted(row.cells.len() as u64, "piece of that time")
                .replace("piece of that times", "pieces of that time"),
            column_time(map, cell.column),
            cell.delays.in_words(of)
        ),
        None => format!("{}: nothing", row.name),
    };
    heat::draw(&cells, map.columns.len(), &in_words)
}

/// When a piece of the time begins.
fn column_time(map: &DelayMap, column: u32) -> String {
    let found = map.columns.get(column as usize);
    found.map_or_else(String::new, |found| clock(found.since, map))
}

/// A moment in UTC, with its day where the time that is shown is longer than one.
fn clock(at: Timestamp, map: &DelayMap) -> String {
    let length = map.until.duration_since(map.since);
    let format = match length.as_hours() {
        0 => "%H:%M:%S",
        1..24 => "%H:%M",
        _ => "%b %-d %H:%M",
    };
    at.strftime(format).to_string()
}

/// The row that somebody wants to read, or the only one.
fn numbers(map: &DelayMap, asked: &AskedDelays, look: &PageLook) -> Markup {
    let mut all = map.rows.iter().chain(&map.heartbeats);
    let found = match (&asked.row, &map.rows[..]) {
        (Some(name), _) => all.find(|row| row.name == *name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let Some(row) = found else {
        return html! {};
    };
    html! {
        section.card aria-labelledby="numbers" {
            h2 #numbers { (row.name) " in numbers" }
            div.table { table data-numbers=(row.name) {
                thead { tr { th scope="col" { "Accepted from, UTC" } th.number scope="col" { "p50" } th.number scope="col" { "p95" } th.number scope="col" { "Longest" } th.number scope="col" { "Delivered" } th.number scope="col" { "Wait" } th.number scope="col" { "Not delivered" } } }
                tbody { @for cell in &row.cells {
                    @let column = map.columns.get(cell.column as usize);
                    tr data-row data-column=(cell.column) {
                        th scope="row" { (column_time(map, cell.column)) @if column.is_some_and(|column| column.partial) { " " span.quiet { "its newest events only" } } }
                        @for (name, of) in [("p50", DelayMeasure::P50), ("p95", DelayMeasure::P95), ("Longest", DelayMeasure::Max)] {
                            td.number data-label=(name) { (cell.delays.in_words(of)) }
                        }
                        td.number data-label="Delivered" { (words::number(cell.delays.delivered)) }
                        td.number data-label="Wait" { (words::number(cell.delays.waiting)) }
                        td.number data-label="Not delivered" { (words::number(cell.delays.undelivered)) }
                    }
                } }
            } }
            @if map.by == DelayRows::Trigger && !row.name.starts_with("heartbeat/") {
                p { a href=(look.links.events(&format!("consumer:\"{}\"", row.name))) { "The events themselves" } }
            }
        }
    }
}
