//! Delays put together by row and by piece of the time, until the answer is made.

use std::collections::{BTreeMap, HashMap};

use heddle_api::delays::{DelayCell, DelayMap, DelayMeasure, DelayRow, Delays};
use jiff::SignedDuration;

/// Rows that are told apart; events of further ones are not counted.
const ROWS_KNOWN_MAX: usize = 2_000;
/// Rows in one answer, and rows of heartbeats.
const ROWS_TOLD_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct DelayTally {
    rows: Vec<RowTally>,
    /// By whether they are of heartbeats, and their names.
    numbers: HashMap<(bool, String), usize>,
    /// How many delays are kept.
    pub(super) delays: u64,
    left_out: u64,
    clock_set_back: u64,
}

#[derive(Debug)]
struct RowTally {
    name: String,
    of_heartbeats: bool,
    cells: BTreeMap<u32, CellTally>,
}

#[derive(Debug, Default)]
pub(super) struct CellTally {
    pub(super) delivered: u64,
    pub(super) waiting: u64,
    pub(super) undelivered: u64,
    /// In microseconds.
    delays: Vec<u64>,
}

impl DelayTally {
    /// The number of a row, unless there are too many.
    pub(super) fn row(&mut self, name: String, of_heartbeats: bool) -> Option<usize> {
        let key = (of_heartbeats, name);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.rows.len() >= ROWS_KNOWN_MAX {
            self.left_out = 1;
            return None;
        }
        let number = self.rows.len();
        let name = key.1.clone();
        self.numbers.insert(key, number);
        self.rows.push(RowTally {
            name,
            of_heartbeats,
            cells: BTreeMap::new(),
        });
        Some(number)
    }

    pub(super) fn cell(&mut self, row: usize, column: u32) -> &mut CellTally {
        self.rows[row].cells.entry(column).or_default()
    }

    /// Keeps a delay, unless a clock that was set back makes it none.
    pub(super) fn add(&mut self, row: usize, column: u32, delay: SignedDuration) {
        match u64::try_from(delay.as_micros()) {
            Ok(delay) => {
                self.delays += 1;
                self.cell(row, column).delays.push(delay);
            }
            Err(_) => self.clock_set_back += 1,
        }
    }

    /// The answer, of which the time is known.
    pub(super) fn told(self, map: DelayMap) -> DelayMap {
        let mut left_out = self.left_out;
        let (heartbeats, rows): (Vec<RowTally>, Vec<RowTally>) =
            self.rows.into_iter().partition(|row| row.of_heartbeats);
        let mut told = |rows: Vec<RowTally>| {
            // Of what was only met and not asked about there is nothing to tell.
            let known = rows.into_iter().filter(|row| !row.cells.is_empty());
            let mut rows: Vec<DelayRow> = known.map(RowTally::told).collect();
            rows.sort_by(|one, other| {
                slowness(other)
                    .total_cmp(&slowness(one))
                    .then_with(|| one.name.cmp(&other.name))
            });
            left_out += rows.len().saturating_sub(ROWS_TOLD_MAX) as u64;
            rows.truncate(ROWS_TOLD_MAX);
            rows
        };
        let (rows, heartbeats) = (told(rows), told(heartbeats));
        DelayMap {
            rows,
            heartbeats,
            left_out,
            clock_set_back: self.clock_set_back,
            ..map
        }
    }
}

fn slowness(row: &DelayRow) -> f64 {
    row.delays.measured(DelayMeasure::default()).unwrap_or(-1.0)
}

impl RowTally {
    fn told(self) -> DelayRow {
        let mut whole = CellTally::default();
        let mut cells = Vec::new();
        for (column, cell) in self.cells {
            whole.delivered += cell.delivered;
            whole.waiting += cell.waiting;
            whole.undelivered += cell.undelivered;
            whole.delays.extend_from_slice(&cell.delays);
            cells.push(DelayCell {
                column,
                delays: cell.told(),
            });
        }
        DelayRow {
            name: self.name,
            delays: whole.told(),
            cells,
        }
    }
}

impl CellTally {
    fn told(mut self) -> Delays {
        self.delays.sort_unstable();
        Delays {
            delivered: self.delivered,
            waiting: self.waiting,
            undelivered: self.undelivered,
            ..Delays::of_sorted(&self.delays)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(delays: &[(&str, u32, i64)]) -> DelayMap {
        let mut tally = DelayTally::default();
        for (name, column, micros) in delays {
            let row = tally
                .row((*name).to_owned(), name.starts_with("heartbeat/"))
                .unwrap();
            tally.cell(row, *column).delivered += 1;
            tally.add(row, *column, SignedDuration::from_micros(*micros));
        }
        tally.told(DelayMap::default())
    }

    #[test]
    fn the_slowest_row_is_first_and_heartbeats_are_apart() {
        let map = tally(&[
            ("fast", 0, 1_000),
            ("slow", 0, 1_000),
            ("slow", 3, 201_000),
            ("heartbeat/team-a/shop", 0, 900_000),
        ]);
        let names: Vec<&str> = map.rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["slow", "fast"]);
        assert_eq!(map.rows[0].delays.max_ms, Some(201.0));
        let columns: Vec<(u32, Option<f64>)> = (map.rows[0].cells.iter())
            .map(|cell| (cell.column, cell.delays.p50_ms))
            .collect();
        assert_eq!(columns, [(0, Some(1.0)), (3, Some(201.0))]);
        assert_eq!(map.heartbeats[0].delays.delivered, 1);
    }

    #[test]
    fn a_delay_of_less_than_nothing_is_none() {
        let map = tally(&[("one", 0, -5), ("one", 0, 7_000)]);
        assert_eq!(map.clock_set_back, 1);
        let found = &map.rows[0].delays;
        assert_eq!((found.delivered, found.max_ms), (2, Some(7.0)));
    }

    #[test]
    fn rows_are_bounded() {
        let mut tally = DelayTally::default();
        for number in 0..=ROWS_KNOWN_MAX {
            let row = tally.row(format!("type-{number:05}"), false);
            assert_eq!(row.is_some(), number < ROWS_KNOWN_MAX);
            if let Some(row) = row {
                tally.cell(row, 0).delivered += 1;
                tally.add(row, 0, SignedDuration::from_micros(number as i64));
            }
        }
        let map = tally.told(DelayMap::default());
        assert_eq!(map.rows.len(), ROWS_TOLD_MAX);
        assert_eq!(map.left_out, (ROWS_KNOWN_MAX - ROWS_TOLD_MAX) as u64 + 1);
        assert_eq!(map.rows[0].name, format!("type-{:05}", ROWS_KNOWN_MAX - 1));
    }
}
