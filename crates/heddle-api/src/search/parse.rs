//! Reading a query, and saying where and why it cannot be read.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::data::DataTerm;
use super::text::{AttributeTerm, FoldedText, Operator, SoughtValue, TextPattern};
use super::{
    BareWord, ConsumerTerm, EventQuery, EventTerm, QUERY_BYTES_MAX, QUERY_TERMS_MAX, QueryFault,
    WantedOfConsumer, WantedOfEvent,
};
use crate::cesql::Expression;
use crate::ledger::EventState;

const FIELDS: &str = "id, type, source, subject, entry, place, request, trace, cause, consumer, state, since, until, ext.NAME, data.PATH, text, cesql";

/// A data path no longer than this, in members.
const PATH_MAX: usize = 32;

pub(super) fn parse(text: &str, now: Timestamp) -> Result<EventQuery, QueryFault> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(QueryFault {
            position: 0,
            message: format!("a query has at most {QUERY_BYTES_MAX} bytes; ask for less"),
        });
    }
    let mut reader = QueryReader { text, at: 0, now };
    let mut query = EventQuery::default();
    let mut terms = 0;
    while reader.skip_space() {
        terms += 1;
        if terms > QUERY_TERMS_MAX {
            let message = format!("a query has at most {QUERY_TERMS_MAX} terms; ask for less");
            return Err(reader.fault(reader.at, message));
        }
        reader.term(&mut query)?;
    }
    Ok(query)
}

struct QueryReader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    now: Timestamp,
}

/// The value of a term, and where it begins.
struct TermValue {
    text: String,
    quoted: bool,
    at: usize,
    operator: Operator,
}

impl TermValue {
    fn pattern(&self) -> TextPattern {
        match self.quoted {
            true => TextPattern::exactly(&self.text),
            false => TextPattern::glob(&self.text),
        }
    }

    fn sought(&self) -> SoughtValue {
        SoughtValue::new(self.operator, &self.text, self.quoted)
    }
}

impl QueryReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Whether something is left.
    fn skip_space(&mut self) -> bool {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.at < self.text.len()
    }

    fn fault(&self, at: usize, message: impl Into<String>) -> QueryFault {
        QueryFault {
            position: self.text[..at].chars().count(),
            message: message.into(),
        }
    }

    fn term(&mut self, query: &mut EventQuery) -> Result<(), QueryFault> {
        let begin = self.at;
        let negated = self.rest().starts_with('-');
        if negated {
            self.at += 1;
        }
        let start = self.at;
        let Some((field, operator)) = self.field() else {
            let value = self.value(start, Operator::Is)?;
            if value.text.is_empty() {
                let message = "there is nothing to look for here; write a word or a field";
                return Err(self.fault(begin, message));
            }
            let wanted = WantedOfEvent::Word(BareWord {
                folded: FoldedText::new(&value.text),
                place: value.text.parse().ok(),
                text: value.text.into(),
            });
            query.terms.push(EventTerm { negated, wanted });
            return Ok(());
        };
        let field = field.to_owned();
        let value = self.value(start, operator)?;
        if value.text.is_empty() && !value.quoted {
            let message = format!("say what {field} should be, such as {}", example(&field));
            return Err(self.fault(value.at, message));
        }
        let comparable = field.starts_with("data.") || field.starts_with("ext.");
        if operator.is_order() && !comparable {
            let message = format!(
                "{field} has no order here; write {field}:…, or since: and until: for time"
            );
            return Err(self.fault(start + field.len(), message));
        }
        let negated = negated != (operator == Operator::IsNot && !comparable);
        self.push(query, negated, &field, value, start)
    }

    /// Steps over the name of a field and the operator behind it. What is no field is a word.
    fn field(&mut self) -> Option<(&str, Operator)> {
        let rest = self.rest();
        let end = rest.find(|char: char| {
            char.is_whitespace() || matches!(char, '"' | ':' | '=' | '<' | '>' | '!')
        })?;
        let (name, behind) = rest.split_at(end);
        let (operator, length) = match behind.as_bytes() {
            [b'!', b'=', ..] => (Operator::IsNot, 2),
            [b'<', b'=', ..] => (Operator::LessOrEqual, 2),
            [b'>', b'=', ..] => (Operator::GreaterOrEqual, 2),
            [b'<', ..] => (Operator::Less, 1),
            [b'>', ..] => (Operator::Greater, 1),
            [b':' | b'=', ..] => (Operator::Is, 1),
            _ => return None,
        };
        // What people copy from elsewhere begins like this, and no field does.
        let is_address = name == "urn" || behind.starts_with("://");
        if name.is_empty() || is_address {
            return None;
        }
        let start = self.at;
        self.at += end + length;
        Some((&self.text[start..start + end], operator))
    }

    fn value(&mut self, start: usize, operator: Operator) -> Result<TermValue, QueryFault> {
        let at = self.at;
        let rest = self.rest();
        if !rest.starts_with('"') {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let text = rest[..end].to_owned();
            self.at += end;
            return Ok(TermValue {
                text,
                quoted: false,
                at,
                operator,
            });
        }
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((index, char)) = chars.next() {
            match char {
                '"' => {
                    self.at += index + 1;
                    let next = self.rest().chars().next();
                    if next.is_some_and(|char| !char.is_whitespace()) {
                        let message = "put a space behind the closing quote";
                        return Err(self.fault(self.at, message));
                    }
                    return Ok(TermValue {
                        text,
                        quoted: true,
                        at: at + 1,
                        operator,
                    });
                }
                '\\' => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    _ => {
                        let message =
                            r#"within quotes write \" for a quote and \\ for a backslash"#;
                        return Err(self.fault(at + index, message));
                    }
                },
                char => text.push(char),
            }
        }
        let quote = if at > start { at } else { start };
        Err(self.fault(quote, "the closing quote is missing"))
    }

    fn push(
        &self,
        query: &mut EventQuery,
        negated: bool,
        field: &str,
        value: TermValue,
        start: usize,
    ) -> Result<(), QueryFault> {
        let wanted =
            match field {
                "since" | "until" if negated => {
                    let other = if field == "since" { "until" } else { "since" };
                    let message = format!("{field} cannot be turned round; write {other}: instead");
                    return Err(self.fault(start, message));
                }
                "since" => {
                    query.restrict_since(self.time(&value)?);
                    return Ok(());
                }
                "until" => {
                    let until = self.time(&value)?;
                    query.until = Some(query.until.map_or(until, |known| known.min(until)));
                    return Ok(());
                }
                "consumer" | "state" => {
                    let wanted = match field {
                        "consumer" => WantedOfConsumer::Name(value.pattern()),
                        _ => WantedOfConsumer::States(self.states(&value)?),
                    };
                    query.consumers.push(ConsumerTerm { negated, wanted });
                    return Ok(());
                }
                "id" | "type" | "source" | "subject" => {
                    WantedOfEvent::Attribute(AttributeTerm::is(field, value.pattern()))
                }
                "entry" => WantedOfEvent::Entry(value.pattern()),
                "request" => WantedOfEvent::Request(value.pattern()),
                "trace" => WantedOfEvent::Trace(value.pattern()),
                "place" => WantedOfEvent::Place(value.text.parse().map_err(|_| {
                    self.fault(value.at, "a place is a number, such as place:4711")
                })?),
                "cause" => WantedOfEvent::Cause(value.text.parse().map_err(|_| {
                    let message = "a cause is the place of an event, such as cause:4711";
                    self.fault(value.at, message)
                })?),
                "text" => WantedOfEvent::Text(FoldedText::new(&value.text)),
                "cesql" => WantedOfEvent::Cesql(Box::new(self.cesql(&value)?)),
                _ => self.nested(field, &value, start)?,
            };
        query.terms.push(EventTerm { negated, wanted });
        Ok(())
    }

    /// Fields with a name of their own within them.
    fn nested(
        &self,
        field: &str,
        value: &TermValue,
        start: usize,
    ) -> Result<WantedOfEvent, QueryFault> {
        if let Some(name) = field.strip_prefix("ext.") {
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            if name.is_empty() || !name.bytes().all(is_name) {
                let message = "an attribute is named with lower-case letters and digits, such as ext.tenant:blue";
                return Err(self.fault(start + 4, message));
            }
            return Ok(WantedOfEvent::Attribute(AttributeTerm {
                name: name.into(),
                value: value.sought(),
            }));
        }
        if let Some(path) = field.strip_prefix("data.") {
            let path: Vec<Box<str>> = path.split('.').map(Into::into).collect();
            if path.len() > PATH_MAX || path.iter().any(|name| name.is_empty()) {
                let message = format!(
                    "a path has at most {PATH_MAX} names with a dot between two, such as data.customer.name:Ada"
                );
                return Err(self.fault(start + 5, message));
            }
            return Ok(WantedOfEvent::Data(DataTerm {
                path,
                value: value.sought(),
            }));
        }
        let message = format!(
            "there is no field {field:?}; put the whole word into quotes to look for it as text, or use one of {FIELDS}"
        );
        Err(self.fault(start, message))
    }

    fn states(&self, value: &TermValue) -> Result<Vec<EventState>, QueryFault> {
        let mut at = value.at;
        let mut states = Vec::new();
        for name in value.text.split(',') {
            let written = name.len();
            let mut all = EventState::ALL.into_iter();
            // What everybody says.
            let name = if name == "dead" { "deadLettered" } else { name };
            let Some(state) = all.find(|state| state.name() == name) else {
                let names = EventState::ALL.map(EventState::name);
                let message = format!(
                    "there is no state {name:?}; write one of {}, or several with commas",
                    names.join(", ")
                );
                return Err(self.fault(at.min(self.text.len()), message));
            };
            states.push(state);
            at += written + 1;
        }
        Ok(states)
    }

    fn cesql(&self, value: &TermValue) -> Result<Expression, QueryFault> {
        let read = Expression::parse(&value.text).map_err(|error| (error.position, error.message));
        let checked = read.and_then(|expression| {
            let check = expression.check_filter();
            check
                .map(|()| expression)
                .map_err(|error| (0, error.to_string()))
        });
        checked.map_err(|(position, message)| {
            // With escapes in it the text is shorter than what was written.
            let at = (value.at + position).min(self.text.len());
            let at = (0..=at).rev().find(|at| self.text.is_char_boundary(*at));
            self.fault(at.unwrap_or_default(), message)
        })
    }

    /// `90s`, `15m`, `2h`, `3d` or `1w` ago, a day, or a moment.
    fn time(&self, value: &TermValue) -> Result<Timestamp, QueryFault> {
        moment(&value.text, self.now).map_err(|how| self.fault(value.at, how))
    }
}

/// A time as people write it: how long ago, a day, or a moment. What cannot be read is answered with what could.
pub fn moment(text: &str, now: Timestamp) -> Result<Timestamp, &'static str> {
    let ago = || {
        let unit = text.chars().next_back()?;
        let number: i64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 24 * 3600,
            'w' => 7 * 24 * 3600,
            _ => return None,
        };
        let ago = SignedDuration::from_secs(number.checked_mul(seconds)?);
        (number >= 0).then(|| now.saturating_sub(ago).unwrap_or(Timestamp::MIN))
    };
    let day = || {
        let day: Date = text.parse().ok().filter(|_| text.len() == 10)?;
        let begin = day.to_zoned(TimeZone::UTC).ok()?;
        Some(begin.timestamp())
    };
    let moment = || text.parse::<Timestamp>().ok();
    ago().or_else(day).or_else(moment).ok_or(
        "write how long ago, such as 15m, 2h or 3d, or a moment such as 2026-05-01T12:00:00Z",
    )
}

fn example(field: &str) -> String {
    match field {
        "type" => "type:order.*".to_owned(),
        "source" => "source:/shop".to_owned(),
        "entry" => "entry:broker/team-a/default".to_owned(),
        "consumer" => "consumer:trigger/team-a/orders".to_owned(),
        "state" => "state:retrying".to_owned(),
        "since" | "until" => format!("{field}:1h"),
        "cesql" => r#"cesql:"type LIKE 'order.%'""#.to_owned(),
        _ if field.starts_with("data.") => format!("{field}>100 or {field}:\"some text\""),
        _ => format!("{field}:x"),
    }
}
