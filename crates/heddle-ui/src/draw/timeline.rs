//! What became of one event, as a time line: a row for each consumer that wanted it, attempts as bars, waits between them.
//!
//! Attempts take milliseconds and waits take hours, so the line is no ruler: between two moments lies more room the longer they
//! are apart, by the logarithm. Every moment says how long after acceptance it was.

use std::time::Duration;

use heddle_api::ledger::{Attempt, ConsumerTrace, EventState, TracedEvent};
use heddle_api::span;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::words::shortened;

const WIDTH: f64 = 1240.0;
const NAMES: f64 = 236.0;
const END: f64 = 120.0;
const ROW: f64 = 38.0;
const HEAD: f64 = 26.0;
const BAR: f64 = 14.0;
/// Room between two moments, before the logarithm has a say.
const GAP_MIN: f64 = 1.0;
/// Between two labels.
const LABEL_ROOM: f64 = 58.0;
/// A bar is at least so wide that it is seen.
const BAR_MIN: f64 = 5.0;
/// Attempts of one consumer in the picture; all are in the table.
const ATTEMPTS_MAX: usize = 12;
const ROWS_MAX: usize = 40;
const NAME_LETTERS: usize = 32;

/// The state of an event at a consumer as a verdict has it.
pub(crate) fn verdict(state: EventState) -> &'static str {
    match state {
        EventState::Delivered => "healthy",
        EventState::Retrying | EventState::Waiting => "degraded",
        EventState::DeadLettered => "unhealthy",
        EventState::Filtered
        | EventState::Pending
        | EventState::Delivering
        | EventState::Expired
        | EventState::Removed => "unknown",
    }
}

/// The state in words.
pub(crate) fn state(state: EventState) -> &'static str {
    match state {
        EventState::Filtered => "not wanted",
        EventState::Pending => "pending",
        EventState::Delivering => "delivering",
        EventState::Retrying => "retrying",
        EventState::Waiting => "waiting",
        EventState::Delivered => "delivered",
        EventState::DeadLettered => "dead letter",
        EventState::Expired => "expired",
        EventState::Removed => "removed",
    }
}

/// Whether a consumer wanted it, whatever came of it.
pub(crate) fn is_wanted(trace: &ConsumerTrace) -> bool {
    trace.state != EventState::Filtered
}

/// When an attempt began: what is told of it is when it ended, and how long it took.
fn start_of(attempt: &Attempt) -> Timestamp {
    let took = Duration::try_from_secs_f64(attempt.latency_ms / 1000.0).unwrap_or_default();
    let took = SignedDuration::try_from(took).unwrap_or_default();
    attempt.at.saturating_sub(took).unwrap_or(attempt.at)
}

/// The newest attempts.
fn shown(trace: &ConsumerTrace) -> &[Attempt] {
    let attempts = &trace.attempts;
    &attempts[attempts.len().saturating_sub(ATTEMPTS_MAX)..]
}

/// Moments and how far to the right each is.
struct Scale {
    moments: Vec<(Timestamp, f64)>,
}

impl Scale {
    fn of(mut moments: Vec<Timestamp>) -> Self {
        moments.sort();
        moments.dedup();
        let gaps: Vec<f64> = moments
            .windows(2)
            .map(|pair| {
                let apart = pair[1].duration_since(pair[0]).as_millis_f64().max(0.0);
                GAP_MIN + (1.0 + apart).log10()
            })
            .collect();
        let whole: f64 = gaps.iter().sum::<f64>().max(1.0);
        let room = WIDTH - NAMES - END;
        let mut right = 0.0;
        let mut placed = Vec::with_capacity(moments.len());
        for (index, moment) in moments.into_iter().enumerate() {
            if let Some(before) = index.checked_sub(1) {
                right += gaps[before];
            }
            placed.push((moment, NAMES + right / whole * room));
        }
        Self { moments: placed }
    }

    fn x(&self, moment: Timestamp) -> f64 {
        let found = self
            .moments
            .binary_search_by(|(known, _)| known.cmp(&moment));
        let index = found.unwrap_or_else(|next| next.saturating_sub(1));
        self.moments
            .get(index)
            .map_or(NAMES, |(_, x)| (x * 10.0).round() / 10.0)
    }
}

/// The picture of one event.
pub(crate) fn draw(event: &TracedEvent) -> Markup {
    let rows: Vec<&ConsumerTrace> = event
        .verdicts
        .iter()
        .filter(|trace| is_wanted(trace))
        .take(ROWS_MAX)
        .collect();
    let mut moments = vec![event.accepted_at];
    for trace in &rows {
        for attempt in shown(trace) {
            moments.extend([start_of(attempt), attempt.at]);
        }
        moments.extend(trace.next_attempt_at);
        moments.extend(trace.ended_at);
    }
    let scale = Scale::of(moments);
    let height = HEAD + (rows.len() as f64).max(1.0) * ROW + 4.0;
    html! {
        svg.timeline viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height) role="img"
            aria-label=(format!("Time line of event {}: {}", event.id, event.summary)) {
            (axis(&scale, event.accepted_at, height))
            @for (index, trace) in rows.iter().enumerate() {
                (row(trace, &scale, event.accepted_at, HEAD + index as f64 * ROW + ROW / 2.0))
            }
        }
    }
}

fn axis(scale: &Scale, from: Timestamp, height: f64) -> Markup {
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (moment, x) in &scale.moments {
        if labels.last().is_none_or(|(last, _)| x - last >= LABEL_ROOM) {
            let after = Duration::try_from(moment.duration_since(from)).unwrap_or_default();
            let text = if after.is_zero() {
                "accepted".to_owned()
            } else {
                format!("+{}", span(after))
            };
            labels.push(((x * 10.0).round() / 10.0, text));
        }
    }
    html! {
        @for (x, text) in labels {
            path.tick d=(format!("M{x} {HEAD}V{height}")) {}
            text.when x=(x) y="16" text-anchor=(if text == "accepted" { "start" } else { "middle" }) { (text) }
        }
    }
}

fn row(trace: &ConsumerTrace, scale: &Scale, from: Timestamp, y: f64) -> Markup {
    let attempts = shown(trace);
    let first = scale.x(from);
    let last = trace.next_attempt_at.or(trace.ended_at);
    let last = last.or_else(|| attempts.last().map(|attempt| attempt.at));
    let last = scale.x(last.unwrap_or(from));
    html! {
        g.way data-verdict=(verdict(trace.state)) {
            text.consumer x="2" y=(y + 4.0) { title { (trace.consumer) } (shortened(&trace.consumer, NAME_LETTERS)) }
            path.wait d=(format!("M{first} {y}H{last}")) {}
            @for attempt in attempts { (bar(attempt, scale, y)) }
            @if let Some(next) = trace.next_attempt_at {
                path.next d=(format!("M{} {}v{}", scale.x(next), y - BAR, BAR * 2.0)) { title { "next attempt at " (next) } }
            }
            text.outcome x=(last + 10.0) y=(y + 4.0) { (state(trace.state)) }
        }
    }
}

fn bar(attempt: &Attempt, scale: &Scale, y: f64) -> Markup {
    let (from, to) = (scale.x(start_of(attempt)), scale.x(attempt.at));
    let well = attempt
        .status
        .is_some_and(|status| (200..300).contains(&status));
    let said = match (attempt.status, &attempt.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => "no answer".to_owned(),
    };
    html! {
        rect.attempt data-verdict=(if well { "healthy" } else { "unhealthy" }) x=(from) y=(y - BAR / 2.0) width=((to - from).max(BAR_MIN)) height=(BAR) rx="2" {
            title { "attempt " (attempt.number) ": " (said) ", " (format!("{:.1} ms", attempt.latency_ms)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
    }

    fn attempt(number: u32, at_millis: i64, latency_ms: f64, status: u16) -> Attempt {
        Attempt {
            number,
            at: at(at_millis),
            status: Some(status),
            latency_ms,
            error: None,
            to_dead_letter_sink: false,
            bad_reply: None,
        }
    }

    fn traced(verdicts: Vec<ConsumerTrace>) -> TracedEvent {
        TracedEvent {
            offset: 7,
            source: "shop".to_owned(),
            id: "<b>ord-1".to_owned(),
            type_: "order.created".to_owned(),
            accepted_at: at(0),
            entry: "channel/kyma-integration/shop".to_owned(),
            request_id: None,
            data_bytes: 0,
            cause: None,
            verdicts,
            summary: "done".to_owned(),
        }
    }

    fn way(state: EventState, attempts: Vec<Attempt>) -> ConsumerTrace {
        ConsumerTrace {
            consumer: "trigger/team-a/<i>".to_owned(),
            via: Vec::new(),
            state,
            reason: String::new(),
            attempts,
            next_attempt_at: None,
            ended_at: None,
        }
    }

    #[test]
    fn later_is_further_right_and_long_waits_do_not_hide_short_attempts() {
        let scale = Scale::of(vec![at(0), at(1), at(3), at(3_600_000), at(0)]);
        let places: Vec<f64> = scale.moments.iter().map(|(_, x)| *x).collect();
        assert_eq!(places.len(), 4);
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] > 60.0),
            "{places:?}"
        );
        assert_eq!(places[0], NAMES);
        assert!((places[3] - (WIDTH - END)).abs() < 0.001);
        assert_eq!(
            scale.x(at(2)),
            scale.x(at(1)),
            "between two moments is the one before"
        );
    }

    #[test]
    fn every_state_is_drawn_but_what_nobody_wanted() {
        let states = [
            EventState::Pending,
            EventState::Delivering,
            EventState::Retrying,
            EventState::Waiting,
            EventState::Delivered,
            EventState::DeadLettered,
            EventState::Expired,
            EventState::Removed,
            EventState::Filtered,
        ];
        let event = traced(
            states
                .into_iter()
                .map(|state| way(state, vec![attempt(1, 2, 1.5, 503)]))
                .collect(),
        );
        let drawn = draw(&event).into_string();
        for shown in states
            .into_iter()
            .filter(|state| *state != EventState::Filtered)
        {
            assert!(drawn.contains(state(shown)), "{shown:?} is not in {drawn}");
        }
        assert!(!drawn.contains("not wanted"));
        assert!(!drawn.contains("<i>") && !drawn.contains("<b>"), "{drawn}");
    }

    #[test]
    fn an_attempt_ends_when_it_says_and_its_outcome_stands_behind_it() {
        let slow = attempt(1, 1000, 400.0, 503);
        assert_eq!(start_of(&slow), at(600));
        let mut dead = way(EventState::DeadLettered, vec![slow]);
        dead.ended_at = Some(at(1000));
        let drawn = draw(&traced(vec![dead])).into_string();
        let number = |after: &str| -> f64 {
            let row = drawn.split("class=\"way\"").nth(1).unwrap();
            let text = row.split(after).nth(1).unwrap();
            text.split('"').next().unwrap().parse().unwrap()
        };
        let rect = "<rect class=\"attempt\" data-verdict=\"unhealthy\" x=\"";
        let (left, width) = (number(rect), number("width=\""));
        let outcome = number("class=\"outcome\" x=\"");
        assert!(left > NAMES && outcome > left + width, "{drawn}");
    }

    #[test]
    fn only_the_newest_attempts_are_in_the_picture() {
        let attempts = (1..=100)
            .map(|number| attempt(number, i64::from(number) * 1000, 3.0, 500))
            .collect();
        let drawn = draw(&traced(vec![way(EventState::Retrying, attempts)])).into_string();
        assert_eq!(drawn.matches("class=\"attempt\"").count(), ATTEMPTS_MAX);
        assert!(drawn.contains("attempt 100:") && !drawn.contains("attempt 88:"));
    }
}
