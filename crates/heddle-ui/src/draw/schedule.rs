//! The schedule of attempts at one event: when each comes if all fail, and when it comes to rest.
//!
//! Pauses grow, so the line is drawn by the logarithm of the time: a tenth of a second and an hour are both to be seen.

use std::time::Duration;

use heddle_api::span;
use maud::{Markup, html};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 64.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 96.0;
const Y: f64 = 24.0;
/// What two labels need between them.
const LABEL_ROOM: f64 = 62.0;

/// When each attempt comes, in seconds after the first.
fn moments(pauses: &[f64]) -> Vec<f64> {
    let mut at = 0.0;
    let later = pauses.iter().map(|pause| {
        at += pause;
        at
    });
    std::iter::once(0.0)
        .chain(later.collect::<Vec<_>>())
        .collect()
}

/// How far to the right a moment is.
fn x(moment: f64, last: f64) -> f64 {
    // A twentieth of a second is where the line begins to be stretched.
    let stretched = |seconds: f64| (1.0 + seconds * 20.0).ln();
    let share = if last > 0.0 {
        stretched(moment) / stretched(last)
    } else {
        0.0
    };
    let x = LEFT + share * (WIDTH - LEFT - RIGHT);
    (x * 10.0).round() / 10.0
}

/// Attempts as marks on a line, with what they end with if all of them fail.
pub(crate) fn draw(pauses: &[f64], in_words: &str) -> Markup {
    let moments = moments(pauses);
    let last = moments.last().copied().unwrap_or_default();
    let end = x(last, last);
    let mut labelled = f64::NEG_INFINITY;
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        let at = x(*moment, last);
        let is_last = index + 1 == moments.len();
        if at - labelled >= LABEL_ROOM && (is_last || end - at >= LABEL_ROOM) || index == 0 {
            labelled = at;
            labels.push((at, after(*moment)));
        }
    }
    html! {
        svg.timeline.schedule viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="img"
            aria-label=(format!("Schedule of attempts: {in_words}")) {
            path.wait d=(format!("M{LEFT} {Y}H{}", end + 14.0)) {}
            @for (index, moment) in moments.iter().enumerate() {
                circle.try cx=(x(*moment, last)) cy=(Y) r="5" { title { "attempt " (index + 1) ", " (after(*moment)) } }
            }
            @for (at, text) in labels {
                text.when x=(at) y=(Y + 24.0) text-anchor=(if at > LEFT { "middle" } else { "start" }) { (text) }
            }
            rect.rest x=(end + 14.0) y=(Y - 6.0) width="12" height="12" rx="2" {}
            text.when x=(end + 30.0) y=(Y + 4.0) { "dead letter" }
        }
    }
}

fn after(seconds: f64) -> String {
    if seconds == 0.0 {
        return "at once".to_owned();
    }
    format!(
        "+{}",
        span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_stand_in_their_order_and_within_the_picture() {
        for pauses in [
            vec![],
            vec![0.0, 0.0],
            vec![0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4],
            vec![600.0; 32],
        ] {
            let moments = moments(&pauses);
            assert_eq!(moments.len(), pauses.len() + 1);
            let last = moments[moments.len() - 1];
            let places: Vec<f64> = moments.iter().map(|moment| x(*moment, last)).collect();
            assert!(places.is_sorted(), "{places:?}");
            assert!(
                places
                    .iter()
                    .all(|place| (LEFT..=WIDTH - RIGHT).contains(place)),
                "{places:?}"
            );
            let drawn = draw(&pauses, "words <b>").into_string();
            assert_eq!(drawn.matches("<circle").count(), moments.len());
            assert!(!drawn.contains("<b>") && !drawn.contains("NaN"), "{drawn}");
        }
    }
}
