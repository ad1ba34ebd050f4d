//! A filter that is edited, and what it would have done to the events that are stored.
//!
//! ```text
//!   text ──parse──> filters ──POST explain, against the filter in force──> numbers, reasons, gained and lost
//!                      └────POST explain, about one event────────────────> each term, true or false
//! ```
//! It is the question that `heddle explain` asks. While somebody types, the script asks for the piece alone, gives up the
//! question before, and names its questions, so that the server does too. Over the whole log the answer comes in pieces: each
//! takes about a second of reading, and nothing is read for who left.

use futures::{Stream, stream};
use heddle_api::filter::Filter;
use heddle_api::filter::text::{self, FilterTextFault};
use heddle_api::ledger::{ExplainRequest, ExplainedEvent, Explanation};
use http::StatusCode;
use maud::{Markup, html};

use super::super::event::quoted;
use super::{ShownTrigger, change, sample};
use crate::ask::AnswerFault;
use crate::links::part;
use crate::pages::PageLook;
use crate::parts::command;
use crate::words;

/// How many events may be chosen to be looked at.
const LASTS: [u64; 3] = [1_000, 10_000, 100_000];
/// Reasons that are shown.
const REASONS_MAX: usize = 20;
/// What is longer is no filter.
const TEXT_BYTES_MAX: usize = 32 << 10;

/// What somebody wants tried.
#[derive(Clone, Debug)]
pub(super) struct TriedFilter {
    pub(super) text: String,
    last: u64,
    /// The place of the event whose terms are told; one is chosen if there is none.
    sample: Option<u64>,
    /// Everything that is kept is looked at, however long that takes.
    whole: bool,
    /// The name of the question.
    ask: Option<String>,
}

impl TriedFilter {
    fn of(look: &PageLook, trigger: &ShownTrigger) -> Self {
        let visit = &look.visit;
        let number = |key| visit.text(key).and_then(|text| text.parse().ok());
        let own = visit.text("try").and_then(|_| visit.any_text("filters"));
        Self {
            text: own.map_or_else(|| trigger.filters(), |text| text.replace('\r', "")),
            last: number("last")
                .unwrap_or_else(ExplainRequest::default_last)
                .min(LASTS[LASTS.len() - 1]),
            sample: number("sample"),
            whole: visit.text("whole").is_some(),
            ask: visit.text("ask"),
        }
    }

    /// The page on which this is tried, without its base.
    pub(super) fn query(&self, filters: &str, sample: Option<u64>) -> String {
        let sample = sample.map(|sample| format!("&sample={sample}"));
        format!(
            "?try=1&filters={}&last={}{}",
            part(filters),
            self.last,
            sample.unwrap_or_default()
        )
    }
}

/// Where the filter is edited, with what came of it if it was sent without a script.
pub(super) async fn section(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let tried = TriedFilter::of(look, trigger);
    let result = match look.visit.text("try") {
        Some(_) => one_piece(look, trigger, &tried).await,
        None => {
            html! { section #tried.card.state { p.quiet { "What it matches is shown here." } } }
        }
    };
    let (page, piece) = (trigger.page(look), trigger.page(look) + "/try");
    html! {
        section.card aria-labelledby="filter" {
            h2 #filter { "Filter" }
            form #playground method="get" action=(page) data-try=(piece) {
                input type="hidden" name="try" value="1";
                label.unseen for="filters" { "Filters, one on a line" }
                textarea #filters name="filters" rows=(tried.text.lines().count().clamp(3, 12)) spellcheck="false" autocomplete="off"
                    maxlength=(TEXT_BYTES_MAX) placeholder="nothing: every event is wanted" { "\n" (tried.text) }
                p.bar {
                    label { "over the newest " select name="last" { @for last in LASTS { option value=(last) selected[last == tried.last] { (words::number(last)) } } } " events" }
                    button type="submit" { "Try it" }
                    button type="submit" name="whole" value="1" { "Whole log" }
                }
            }
            details { summary { "How filters are written" }
                p { "One on a line, and all of them must hold: " code { "exact type = order.created" } ", " code { "prefix subject = eu-" } ", " code { "suffix source = /shop" } ", " code { "cesql amount > 100 AND EXISTS tier" } "." }
                p { "Anything else that a trigger can say is JSON on one line: " code { "{\"any\": [{\"exact\": {\"type\": \"a\"}}, {\"exact\": {\"type\": \"b\"}}]}" } ". A line with # in front is a remark." }
            }
        }
        (result)
    }
}

/// The pieces for the script.
pub(crate) fn pieces(
    look: PageLook,
    namespace: String,
    name: String,
) -> impl Stream<Item = Markup> + Send + 'static {
    stream::unfold(
        PieceState::New {
            look: Box::new(look),
            namespace,
            name,
        },
        next_piece,
    )
}

/// How far it is.
enum PieceState {
    New {
        look: Box<PageLook>,
        namespace: String,
        name: String,
    },
    /// More of the log is to be looked at.
    Going(Box<WholeLog>),
    Done,
}

struct WholeLog {
    look: PageLook,
    trigger: ShownTrigger,
    tried: TriedFilter,
    filters: Vec<Filter>,
    so_far: Explanation,
}

async fn next_piece(state: PieceState) -> Option<(Markup, PieceState)> {
    match state {
        PieceState::Done => None,
        PieceState::New {
            look,
            namespace,
            name,
        } => Some(first_piece(*look, &namespace, &name).await),
        PieceState::Going(log) => Some(log.next().await),
    }
}

async fn first_piece(look: PageLook, namespace: &str, name: &str) -> (Markup, PieceState) {
    let trigger = match ShownTrigger::ask(&look, namespace, name).await {
        Ok(trigger) => trigger,
        Err(fault) => return (refused(&fault), PieceState::Done),
    };
    let tried = TriedFilter::of(&look, &trigger);
    if !tried.whole {
        return (one_piece(&look, &trigger, &tried).await, PieceState::Done);
    }
    match filters_of(&tried) {
        Err(fault) => (unread(&tried.text, &fault), PieceState::Done),
        Ok(filters) => {
            let log = WholeLog {
                look,
                trigger,
                tried,
                filters,
                so_far: Explanation::default(),
            };
            Box::new(log).next().await
        }
    }
}

impl WholeLog {
    /// Looks at the next part of the log, and shows what was found so far.
    async fn next(mut self: Box<Self>) -> (Markup, PieceState) {
        let before = self.so_far.looked_back_to.take();
        let mut question = question(&self.trigger, &self.filters);
        question.last = ExplainRequest::LAST_MAX;
        question.before = before;
        let older = ask(&self.look, &question, &self.tried).await;
        match older {
            Err(fault) => return (refused(&fault), PieceState::Done),
            Ok(older) => self.so_far.add_older(older),
        }
        let stuck = before.is_some() && self.so_far.looked_back_to >= before;
        let shown = result(
            &self.look,
            &self.trigger,
            &self.tried,
            &self.filters,
            &self.so_far,
            None,
        );
        match self.so_far.looked_back_to {
            Some(_) if !stuck => (shown, PieceState::Going(self)),
            _ => (shown, PieceState::Done),
        }
    }
}

async fn one_piece(look: &PageLook, trigger: &ShownTrigger, tried: &TriedFilter) -> Markup {
    let filters = match filters_of(tried) {
        Ok(filters) => filters,
        Err(fault) => return unread(&tried.text, &fault),
    };
    let mut question = question(trigger, &filters);
    question.last = tried.last;
    let explanation = match ask(look, &question, tried).await {
        Ok(explanation) => explanation,
        Err(fault) => return refused(&fault),
    };
    let chosen = tried.sample.or_else(|| newest(&explanation));
    let shown = match chosen {
        Some(offset) => {
            question.last = 0;
            question.offset = Some(offset);
            question.against = None;
            let terms = ask(look, &question, tried).await.map(|told| told.terms);
            sample::section(look, trigger, tried, offset, terms).await
        }
        None => html! {},
    };
    result(look, trigger, tried, &filters, &explanation, Some(&shown))
}

fn filters_of(tried: &TriedFilter) -> Result<Vec<Filter>, FilterTextFault> {
    if tried.text.len() > TEXT_BYTES_MAX {
        return Err(FilterTextFault {
            position: 0,
            message: "this is too long for a filter".to_owned(),
        });
    }
    text::parse(&tried.text)
}

fn question(trigger: &ShownTrigger, filters: &[Filter]) -> ExplainRequest {
    ExplainRequest {
        entry: trigger.entry(),
        filters: filters.to_vec(),
        against: Some(format!("trigger/{}", trigger.qualified())),
        ..ExplainRequest::default()
    }
}

async fn ask(
    look: &PageLook,
    question: &ExplainRequest,
    tried: &TriedFilter,
) -> Result<Explanation, AnswerFault> {
    let path = match &tried.ask {
        Some(name) => format!("/heddle/v1/explain?ask={}", part(name)),
        None => "/heddle/v1/explain".to_owned(),
    };
    let answer = look.ask.query(&path, question).await;
    match answer {
        // A trigger that is not part of the routes has no filter in force; everything else can be told.
        Err(fault) if fault.status == StatusCode::NOT_FOUND && question.against.is_some() => {
            let alone = ExplainRequest {
                against: None,
                ..question.clone()
            };
            look.ask.query(&path, &alone).await
        }
        answer => answer,
    }
}

/// The newest event of those that are named.
fn newest(explanation: &Explanation) -> Option<u64> {
    let matches = explanation.matches.first();
    let any = matches.or_else(|| explanation.misses.first());
    any.map(|event| event.offset)
}

fn refused(fault: &AnswerFault) -> Markup {
    html! {
        section #tried.card.state data-settled { p.notice role="alert" { (fault.message) } }
    }
}

fn unread(text: &str, fault: &FilterTextFault) -> Markup {
    html! { section #tried.card.state data-settled data-position=(fault.position) { (misread(text, fault)) } }
}

/// The line that cannot be read, with the character at which it goes wrong.
pub(crate) fn misread(text: &str, fault: &FilterTextFault) -> Markup {
    let mut at = fault.position;
    let mut found = (0, "");
    for (number, line) in text.split('\n').enumerate() {
        found = (number, line);
        let length = line.chars().count();
        if at <= length {
            break;
        }
        at -= length + 1;
    }
    let (number, line) = found;
    let place = line
        .char_indices()
        .nth(at)
        .map_or(line.len(), |(byte, _)| byte);
    let (before, rest) = line.split_at(place);
    let wrong = rest.chars().next();
    let after = rest
        .get(wrong.map_or(0, char::len_utf8)..)
        .unwrap_or_default();
    html! {
        p.notice role="alert" { "Line " (number + 1) ", character " (at + 1) ": " (fault.message) }
        pre.misread tabindex="0" aria-label="The line that cannot be read" { (before) mark { @match wrong { Some(wrong) => (wrong), None => "␣" } } (after) }
    }
}

fn result(
    look: &PageLook,
    trigger: &ShownTrigger,
    tried: &TriedFilter,
    filters: &[Filter],
    found: &Explanation,
    sample: Option<&Markup>,
) -> Markup {
    let going = tried.whole && found.looked_back_to.is_some();
    let name = trigger.qualified();
    let command = match tried.text == trigger.filters() {
        true => format!("heddle explain trigger {name} --last {}", tried.last),
        false => format!(
            "heddle explain trigger {name} --filters {} --last {}",
            quoted(&tried.text),
            tried.last
        ),
    };
    html! {
        section #tried.card data-settled aria-busy=[going.then_some("true")] data-examined=(found.examined) data-matched=(found.matched) {
            p.lead {
                @if found.examined == 0 { "No stored event has reached " code { (trigger.entry()) } " yet." }
                @else {
                    "Matches " strong { (words::number(found.matched)) } " of the newest " strong { (words::number(found.examined)) } " events that reach " code { (trigger.entry()) }
                }
            }
            @if let Some(place) = found.looked_back_to {
                p.quiet { @if going { "Still looking: " } "nothing before place " (words::number(place)) " of the log was looked at." }
            }
            @if let Some(difference) = &found.difference {
                p #difference data-gained=(difference.gained) data-lost=(difference.lost) {
                    "Against the filter in force: " strong { "+ " (words::number(difference.gained)) } " gained, " strong { "− " (words::number(difference.lost)) } " lost."
                }
                (named("Gained", &difference.gained_events, look, tried, trigger, false))
                (named("Lost", &difference.lost_events, look, tried, trigger, false))
            }
            (reasons(found))
            (named("Newest that match", &found.matches, look, tried, trigger, true))
            (named("Newest that do not", &found.misses, look, tried, trigger, true))
            @if let Some(sample) = sample { (sample) }
            (change::section(look, trigger, tried, filters))
            (command::line(&command))
        }
    }
}

fn reasons(found: &Explanation) -> Markup {
    html! {
        @if !found.reasons.is_empty() {
            details { summary { "Why " (heddle_api::counted(found.examined - found.matched, "event")) " would not match" }
                div.table { table #reasons {
                    thead { tr { th.number scope="col" { "Events" } th scope="col" { "Reason" } } }
                    tbody { @for reason in found.reasons.iter().take(REASONS_MAX) {
                        tr { td.number data-label="Events" { (words::number(reason.count)) } td data-label="Reason" { (reason.reason) } }
                    } }
                } }
                @if found.reasons.len() > REASONS_MAX { p.quiet { "The most frequent " (REASONS_MAX) " of " (found.reasons.len()) " reasons." } }
            }
        }
    }
}

/// Events one by one, each with the way to its trace and to what the terms say about it.
fn named(
    title: &str,
    events: &[ExplainedEvent],
    look: &PageLook,
    tried: &TriedFilter,
    trigger: &ShownTrigger,
    folded: bool,
) -> Markup {
    html! {
        @if !events.is_empty() {
            details open[!folded] { summary { (title) }
                ul.plain { @for event in events {
                    li data-row data-offset=(event.offset) {
                        a href=(look.links.trace(&event.id, Some(&event.source))) { (words::shortened(&event.id, 60)) } " " (event.type_) " "
                        a.quiet href=(trigger.page(look) + &tried.query(&tried.text, Some(event.offset))) data-sample=(event.offset) { "each term" }
                        @if folded && event.reason != "every term holds" { " " span.quiet { (event.reason) } }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_points_at_its_character_whatever_stands_around_it() {
        for (text, position, expected) in [
            ("exact type", 10, "exact type<mark>␣</mark>"),
            ("# ü\nlike <b>", 9, "like <mark>&lt;</mark>b&gt;"),
            ("ü\n\nüx", 4, "ü<mark>x</mark>"),
            ("", 0, "<mark>␣</mark>"),
            ("a", 99, "a<mark>␣</mark>"),
        ] {
            let fault = FilterTextFault {
                position,
                message: "wrong".to_owned(),
            };
            let shown = misread(text, &fault).into_string();
            assert!(shown.contains(expected), "{text:?}: {shown}");
        }
    }
}
