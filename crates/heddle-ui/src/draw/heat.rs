//! One row of a heat map: a bar for each piece of a time. The level of a piece is told by its height as well as by its colour,
//! and what is not ended by an outline; the words are those of whoever draws.

use heddle_api::delays::LEVELS_MS;
use maud::{Markup, html};

/// Units of the picture; it is stretched to the room that there is.
const HEIGHT: f64 = 20.0;
const WIDTH: f64 = 0.9;
/// What the lowest level has.
const LOWEST: f64 = 4.0;
/// No picture has more, whatever an answer says.
const COLUMNS_MAX: usize = 1_000;

/// A piece of the time in which something is known.
#[derive(Clone, Debug)]
pub(crate) struct HeatCell {
    pub(crate) column: usize,
    /// From 0; `None` where nothing was measured.
    pub(crate) level: Option<usize>,
    /// Whether something of it has not ended yet.
    pub(crate) is_open: bool,
    pub(crate) words: String,
}

/// How high a bar of this level is.
fn height(level: Option<usize>) -> f64 {
    let Some(level) = level else {
        return 1.0;
    };
    let highest = LEVELS_MS.len();
    let share = level.min(highest) as f64 / highest as f64;
    let height = LOWEST + share * (HEIGHT - LOWEST);
    (height * 100.0).round() / 100.0
}

/// The bars of a row, from the oldest piece to the newest. `in_words` is what it says to those who do not see it.
pub(crate) fn draw(cells: &[HeatCell], columns: usize, in_words: &str) -> Markup {
    let columns = columns.clamp(1, COLUMNS_MAX);
    html! {
        svg.heat viewBox=(format!("0 0 {columns} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(in_words) {
            path.ground d=(format!("M0 {HEIGHT}H{columns}")) {}
            @for cell in cells.iter().filter(|cell| cell.column < columns) {
                @let height = height(cell.level);
                rect.open[cell.is_open] data-level=[cell.level] x=(cell.column) y=(format!("{:.2}", HEIGHT - height)) width=(WIDTH) height=(height) { title { (cell.words) } }
            }
        }
    }
}

/// What the levels look like, for a legend.
pub(crate) fn sample(level: usize) -> Markup {
    let cell = HeatCell {
        column: 0,
        level: Some(level),
        is_open: false,
        words: String::new(),
    };
    html! {
        svg.heat.sample viewBox=(format!("0 0 1 {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
            rect data-level=(level) x="0" y=(format!("{:.2}", HEIGHT - height(cell.level))) width=(WIDTH) height=(height(cell.level)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(column: usize, level: Option<usize>) -> HeatCell {
        HeatCell {
            column,
            level,
            is_open: column == 3,
            words: "12:00 <b>".to_owned(),
        }
    }

    #[test]
    fn a_higher_level_is_a_higher_bar_within_the_picture() {
        let heights: Vec<f64> = (0..9).map(|level| height(Some(level))).collect();
        assert!(heights.is_sorted(), "{heights:?}");
        assert!(
            heights[..8].windows(2).all(|pair| pair[0] < pair[1]),
            "{heights:?}"
        );
        assert_eq!(
            (heights[0], heights[7], heights[8]),
            (LOWEST, HEIGHT, HEIGHT)
        );
        assert!(height(None) < LOWEST);
    }

    #[test]
    fn every_known_piece_is_a_bar_with_its_words_and_none_is_outside() {
        let cells = [
            cell(0, Some(0)),
            cell(3, Some(7)),
            cell(9, None),
            cell(10, Some(1)),
            cell(usize::MAX, Some(1)),
        ];
        let drawn = draw(&cells, 10, "orders \"<i>").into_string();
        assert_eq!(drawn.matches("<rect").count(), 3, "{drawn}");
        assert_eq!(drawn.matches("class=\"open\"").count(), 1, "{drawn}");
        assert!(!drawn.contains("<b>") && !drawn.contains("<i>"), "{drawn}");
        assert!(
            drawn.contains("data-level=\"7\"") && drawn.contains("viewBox=\"0 0 10 20\""),
            "{drawn}"
        );
        assert!(
            draw(&[], 0, "")
                .into_string()
                .contains("viewBox=\"0 0 1 20\"")
        );
    }
}
