//! How results look: `-o table|wide|json|yaml|name`.
//!
//! Tables are the server's (its columns, its cells); we only align them. JSON and YAML are the
//! objects as stored, without the bookkeeping of field managers unless asked for. Commands about
//! events know three forms ([`ReportFormat`]) and write their text themselves, with the helpers here.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::terminal::{Tone, paint};

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The columns the server thinks people want
    #[default]
    Table,
    /// All columns
    Wide,
    Json,
    Yaml,
    /// kind.group/name, for scripts
    Name,
}

impl Format {
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// `-o` of commands that report on events rather than show objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// For people
    #[default]
    Table,
    /// Everything, for machines
    Json,
    Yaml,
}

impl ReportFormat {
    /// `report` for machines, or what `text` makes of it for people.
    pub fn render<T: Serialize>(self, report: &T, text: impl FnOnce(&T) -> String) -> String {
        let value = || serde_json::to_value(report).expect("reports have string keys only");
        match self {
            Self::Table => text(report),
            Self::Json => json(&value()),
            Self::Yaml => yaml(&value()),
        }
    }
}

/// A moment as people compare it with their logs: UTC, to the millisecond.
pub fn moment(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// How long something took, in the unit that fits.
pub fn span(duration: Duration) -> String {
    heddle_api::span(duration)
}

/// How long ago something was; nothing is in the future, whatever two clocks say.
pub fn age(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

/// Text that somebody else wrote, unable to move the cursor or to begin a line of its own.
pub fn harmless(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// `1 event`, `2 events`.
pub fn count(number: u64, noun: &str) -> String {
    heddle_api::counted(number, noun)
}

/// `value` as indented JSON, with a line end.
pub fn json(value: &Value) -> String {
    format!("{value:#}\n")
}

/// `value` as YAML. Long strings stay on one line, as kubectl writes them.
pub fn yaml(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).expect("a JSON value is always valid YAML")
}

/// `kind.group/name` of an object.
pub fn object_name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if group.is_empty() {
        format!("{kind}/{name}")
    } else {
        format!("{kind}.{group}/{name}")
    }
}

/// Takes out who owns which field, which fills a screen and interests few.
pub fn hide_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// No table of ours is wider, unless its words are.
const COLUMNS_MAX: usize = 120;
/// However wide the others are, the last column has so much.
const PROSE_COLUMNS_MIN: usize = 24;
/// Between two columns.
const GAP: usize = 3;

/// A row, and further ones for what of its last cell does not fit into `room`.
fn continued(mut row: Vec<String>, room: usize) -> Vec<Vec<String>> {
    let columns = row.len();
    let Some(prose) = row.pop() else {
        return vec![row];
    };
    let mut lines = vec![String::new()];
    for word in prose.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        let fits = line.chars().count() + 1 + word.chars().count() <= room;
        match line.is_empty() {
            true => line.push_str(word),
            false if fits => line.extend([" ", word]),
            false => lines.push(word.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    row.extend(lines.next());
    let rest = lines.map(|line| {
        let mut row = vec![String::new(); columns - 1];
        row.push(line);
        row
    });
    std::iter::once(row).chain(rest).collect()
}

/// A server's Table, possibly gathered over pages and kinds; or one of our own.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub headers: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// What of a server's Table is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub wide: bool,
    pub namespaces: bool,
    /// Put before each name when several kinds share the screen.
    pub prefix: Option<&'a str>,
}

impl Table {
    /// Reads a `meta.k8s.io/v1 Table`. `columns` are those of an earlier Table when this one has
    /// none: a watch sends them once.
    pub fn from_server(table: &Value, columns: &[Value], shown: Shown<'_>) -> Self {
        let visible = |column: &Value| shown.wide || column["priority"].as_i64().unwrap_or(0) == 0;
        let chosen: Vec<usize> = (0..columns.len())
            .filter(|index| visible(&columns[*index]))
            .collect();
        let mut headers: Vec<String> = chosen
            .iter()
            .map(|index| {
                columns[*index]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_uppercase()
            })
            .collect();
        let mut rows = Vec::new();
        for row in table["rows"].as_array().into_iter().flatten() {
            let mut cells: Vec<String> = chosen
                .iter()
                .map(|index| cell(&row["cells"][*index]))
                .collect();
            if let (Some(prefix), Some(name)) = (shown.prefix, cells.first_mut()) {
                *name = format!("{prefix}/{name}");
            }
            if shown.namespaces {
                cells.insert(0, cell(&row["object"]["metadata"]["namespace"]));
            }
            rows.push(cells);
        }
        if shown.namespaces {
            headers.insert(0, "NAMESPACE".to_owned());
        }
        Self { headers, rows }
    }

    /// The widths that fit these rows and, at least, `earlier` ones.
    pub fn widths(&self, earlier: &[usize]) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .headers
            .iter()
            .map(|header| header.chars().count())
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for (width, earlier) in widths.iter_mut().zip(earlier) {
            *width = (*width).max(*earlier);
        }
        widths
    }

    /// The whole table, as wide as a screen at most: the last column is prose, and is continued in lines of its own.
    pub fn page(mut self, colour: bool) -> String {
        let widths = self.widths(&[]);
        let others = &widths[..widths.len().saturating_sub(1)];
        let before: usize = others.iter().map(|width| width + GAP).sum();
        let room = COLUMNS_MAX.saturating_sub(before).max(PROSE_COLUMNS_MIN);
        let rows = std::mem::take(&mut self.rows);
        self.rows = rows
            .into_iter()
            .flat_map(|row| continued(row, room))
            .collect();
        self.render(&self.widths(&[]), true, colour)
    }

    /// The rows as aligned text, with the headers if wanted.
    pub fn render(&self, widths: &[usize], headers: bool, colour: bool) -> String {
        let mut text = String::new();
        if headers {
            line(&mut text, &self.headers, widths, |cell| {
                paint(colour, Tone::Strong, cell)
            });
        }
        for row in &self.rows {
            line(&mut text, row, widths, |cell| match cell.trim_end() {
                "True" | "Healthy" => paint(colour, Tone::Good, cell),
                "False" | "Unhealthy" => paint(colour, Tone::Bad, cell),
                "<none>" => paint(colour, Tone::Quiet, cell),
                _ => cell.to_owned(),
            });
        }
        text
    }
}

fn line(text: &mut String, cells: &[String], widths: &[usize], style: impl Fn(&str) -> String) {
    let last = cells.len().saturating_sub(1);
    for (index, cell) in cells.iter().enumerate() {
        if index == last {
            text.push_str(&style(cell));
        } else {
            let width = widths.get(index).copied().unwrap_or(0);
            text.push_str(&style(&format!("{cell:width$}")));
            text.push_str("   ");
        }
    }
    text.push('\n');
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        // A cell stays on its line whatever somebody wrote into a message.
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Value {
        json!({
            "columnDefinitions": [
                {"name": "Name", "priority": 0}, {"name": "Ready", "priority": 0},
                {"name": "Reason", "priority": 1}, {"name": "Age", "priority": 0}],
            "rows": [
                {"cells": ["shop", "True", "", "2d"], "object": {"metadata": {"namespace": "team-a"}}},
                {"cells": ["a-longer-name", "False", "line\nbreak", null], "object": {"metadata": {"namespace": "b"}}}]})
    }

    fn render(shown: Shown<'_>) -> String {
        let value = table();
        let table = Table::from_server(
            &value,
            value["columnDefinitions"].as_array().unwrap(),
            shown,
        );
        table.render(&table.widths(&[]), true, false)
    }

    #[test]
    fn a_table_is_aligned_and_wide_shows_every_column() {
        insta::assert_snapshot!(render(Shown { wide: false, namespaces: false, prefix: None }), @r"
        NAME            READY   AGE
        shop            True    2d
        a-longer-name   False   <none>
        ");
        insta::assert_snapshot!(render(Shown { wide: true, namespaces: true, prefix: Some("channel") }), @r"
        NAMESPACE   NAME                    READY   REASON       AGE
        team-a      channel/shop            True                 2d
        b           channel/a-longer-name   False   line break   <none>
        ");
    }

    #[test]
    fn yaml_keeps_long_and_awkward_strings_readable_back() {
        let value = json!({"a": "yes", "b": "1", "c": "x ".repeat(90), "d": "two\nlines\n", "e": {}, "f": [], "g": null, "h": 0.5});
        let back: Value = serde_saphyr::from_str(&yaml(&value)).unwrap();
        assert_eq!(back, value);
        assert_eq!(yaml(&value).lines().count(), 10, "{}", yaml(&value));
    }

    #[test]
    fn a_span_is_told_in_the_unit_that_fits() {
        let told = [0.00042, 0.25, 1.0, 3.25, 61.0, 600.0, 7300.0, 200_000.0]
            .map(|seconds| span(Duration::from_secs_f64(seconds)));
        assert_eq!(
            told,
            [
                "0.42 ms", "250 ms", "1.0 s", "3.2 s", "61 s", "10 min", "2 h", "2 d"
            ]
        );
        let at: Timestamp = "2026-01-01T00:00:00.1234Z".parse().unwrap();
        assert_eq!(moment(at), "2026-01-01T00:00:00.123Z");
        assert_eq!(age(at, Timestamp::UNIX_EPOCH), Duration::ZERO);
    }

    #[test]
    fn what_a_stranger_wrote_cannot_move_the_cursor() {
        assert_eq!(harmless("a\x1b[2Jb\u{9b}c\nd"), "a [2Jb c d");
    }

    #[test]
    fn names_carry_the_group() {
        let channel = json!({"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "metadata": {"name": "shop"}});
        assert_eq!(object_name(&channel), "channel.messaging.knative.dev/shop");
        assert_eq!(
            object_name(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})),
            "secret/a"
        );
    }

    #[test]
    fn a_table_fits_a_screen_and_prose_is_continued() {
        let prose = "words ".repeat(40);
        let table = |name: &str| Table {
            headers: ["NAME", "DESCRIPTION"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![name.to_owned(), prose.trim_end().to_owned()],
                vec!["b".to_owned(), "short".to_owned()],
            ],
        };
        for name in ["orders", &"x".repeat(60)] {
            let page = table(name).page(false);
            let fits = |line: &str| line.chars().count() <= COLUMNS_MAX;
            assert!(page.lines().all(fits), "{page}");
            assert_eq!(page.matches("words").count(), 40, "nothing is lost: {page}");
            assert!(page.ends_with("short\n"), "{page}");
        }
        let short = Table {
            headers: vec!["A".to_owned()],
            rows: vec![vec!["x".to_owned()]],
        };
        assert_eq!(short.page(false), "A\nx\n");
    }
}
