//! What is printed of delays.

use heddle_api::delays::{DelayCell, DelayColumn, Delays};

use super::*;

fn row(name: &str, cells: &[(u32, f64, u64)]) -> DelayRow {
    let delays = |ms: f64, waiting: u64| Delays {
        delivered: 2,
        waiting,
        p50_ms: Some(ms / 2.0),
        p95_ms: Some(ms),
        max_ms: Some(ms),
        ..Delays::default()
    };
    DelayRow {
        name: name.to_owned(),
        delays: delays(
            cells.iter().map(|cell| cell.1).fold(0.0, f64::max),
            cells.iter().map(|cell| cell.2).sum(),
        ),
        cells: (cells.iter())
            .map(|(column, ms, waiting)| DelayCell {
                column: *column,
                delays: delays(*ms, *waiting),
            })
            .collect(),
    }
}

fn map() -> DelayMap {
    DelayMap {
        since: "2026-05-01T12:00:00Z".parse().unwrap(),
        until: "2026-05-01T13:00:00Z".parse().unwrap(),
        columns: vec![DelayColumn::default(); 10],
        rows: vec![
            row(
                "trigger/team-a/\u{1b}[31mslow",
                &[(0, 2.0, 0), (4, 204.0, 0), (9, 61_000.0, 3)],
            ),
            row("trigger/team-a/fast", &[(0, 2.0, 0), (4, 4.0, 0)]),
        ],
        heartbeats: vec![row("heartbeat/team-a/shop", &[(3, 1.0, 0)])],
        examined: 12,
        ..DelayMap::default()
    }
}

#[test]
fn a_row_has_a_bar_for_each_piece_of_the_time_and_heartbeats_are_apart() {
    let text = text(&map(), DelayMeasure::P95, false);
    let lines: Vec<Vec<&str>> = (text.lines())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines[0],
        ["2026-05-01T12:00:00Z", "to", "2026-05-01T13:00:00Z"]
    );
    assert_eq!(
        text.lines().nth(1),
        Some("  all 12 events of that time were looked at")
    );
    assert_eq!(lines[3][..4], ["TRIGGER", "OVER", "TIME", "P95"]);
    assert_eq!(
        lines[4][2], "\u{2581}\u{b7}\u{b7}\u{b7}\u{2585}\u{b7}\u{b7}\u{b7}\u{b7}\u{2588}",
        "{text}"
    );
    assert_eq!(
        lines[4][3..],
        ["\u{2265}", "61", "s", "\u{2265}", "61", "s", "2", "3", "0"],
        "{text}"
    );
    assert_eq!(
        lines[5][2..],
        ["4.0", "ms", "4.0", "ms", "2", "0", "0"],
        "{text}"
    );
    assert_eq!(lines[7][0], "HEARTBEAT");
    assert_eq!(lines[8][0], "heartbeat/team-a/shop");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn where_there_is_no_room_the_slowest_of_several_pieces_is_shown() {
    let row = row(
        "t",
        &[(0, 2.0, 0), (1, 204.0, 0), (2, 2.0, 0), (239, 2.0, 0)],
    );
    let drawn = bars(&row, 240, DelayMeasure::P95);
    assert_eq!(drawn.chars().count(), BARS_MAX);
    assert_eq!(
        (drawn.chars().next(), drawn.chars().last()),
        (Some(BARS[4]), Some(BARS[0]))
    );
    assert_eq!(
        drawn.chars().filter(|bar| *bar == '\u{b7}').count(),
        BARS_MAX - 2
    );
    assert_eq!(bars(&DelayRow::default(), 0, DelayMeasure::P95), "\u{b7}");
}

#[test]
fn nothing_is_said_as_that() {
    let map = DelayMap::default();
    assert!(
        text(&map, DelayMeasure::P95, false)
            .ends_with("nothing was to be delivered in that time\n")
    );
}
