//! `GET /heddle/v1/audit`: which changes there were, the newest first.
//!
//! ```text
//!   ?since=&until=&user=&verb=&object=&namespace=&outcome=   which (heddle_api::audit::AuditQuery)
//!   &after=N   older than line N: the `next` of an answer       &newer=N   newer than line N
//!   &limit=    of one answer; with Accept: application/jsonl, or &format=jsonl, of all, a line each, to the end
//! ```
//! The log is read aside, as it is for questions about events: in short slices, on a thread that gets what others leave, and
//! no further once whoever asked is gone. Administrators see what was done in their namespaces, those of all see everything.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::{Stream, stream};
use heddle_api::access::Access;
use heddle_api::audit::{AUDIT_PAGE_MAX, AuditLine, AuditPage, AuditQuery, may_see};
use heddle_mesh::{AsideError, AsidePlace};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::AuditLog;
use super::journal::{AuditSearch, AuditStep};
use crate::control::refuse;

/// Lines in one answer when nobody says how many.
const PAGE: u64 = 100;
/// What one answer may take; what is left is asked for with `after`.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Damage that is told one by one.
const DAMAGE_TOLD_MAX: usize = 10;

const JSON_LINES: &str = "application/jsonl";

/// The router, without the prefix.
pub(crate) fn router(log: AuditLog) -> Router {
    Router::new().route("/audit", get(list)).with_state(log)
}

async fn list(
    State(log): State<AuditLog>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = match AuditAsked::read(&query.unwrap_or_default(), &log) {
        Ok(asked) => asked,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, "invalid-question", &message),
    };
    let place = match log.0.aside.enter(&access.user, None) {
        Ok(place) => place,
        Err(error) => return aside(&error),
    };
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let lines = asked.lines || accept.is_some_and(|accept| accept.contains(JSON_LINES));
    let limit = asked.limit.unwrap_or(if lines { u64::MAX } else { PAGE });
    let search = log.journal().search(asked.query, asked.below, asked.floor);
    let search = VisibleSearch {
        search: Some(search),
        place,
        access,
        left: if lines {
            limit
        } else {
            limit.min(AUDIT_PAGE_MAX)
        },
    };
    if lines {
        let body = Body::from_stream(as_lines(search));
        let kind = HeaderValue::from_static(JSON_LINES);
        return ([(header::CONTENT_TYPE, kind)], body).into_response();
    }
    match page(&log, search).await {
        Ok(page) => json(&page),
        Err(refused) => refused,
    }
}

/// What somebody asks.
struct AuditAsked {
    query: AuditQuery,
    below: u64,
    floor: u64,
    limit: Option<u64>,
    /// As JSON lines, for links that cannot say so in a header.
    lines: bool,
}

impl AuditAsked {
    fn read(query: &str, log: &AuditLog) -> Result<Self, String> {
        let written = |key: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            let (_, value) = pairs.find(|(found, _)| found == key)?;
            (!value.is_empty()).then(|| value.into_owned())
        };
        let number = |key: &str| {
            let read = written(key).map(|text| text.parse::<u64>());
            read.transpose()
                .map_err(|_| format!("{key} is a number, such as the one of a line"))
        };
        let limit = number("limit")?;
        if limit == Some(0) {
            return Err("limit is a number above 0".to_owned());
        }
        let lines = match written("format").as_deref() {
            None | Some("json") => false,
            Some("jsonl") => true,
            Some(_) => return Err("format is json or jsonl".to_owned()),
        };
        Ok(Self {
            lines,
            query: AuditQuery::read(written, log.0.clock.now())?,
            below: number("after")?.unwrap_or(u64::MAX),
            floor: number("newer")?.map_or(0, |newer| newer.saturating_add(1)),
            limit,
        })
    }
}

/// A search for what somebody may see, in their place among those who ask.
struct VisibleSearch {
    /// Away while a slice is worked on.
    search: Option<AuditSearch>,
    place: AsidePlace,
    access: Access,
    left: u64,
}

/// What a slice found that may be shown.
struct VisibleStep {
    lines: Vec<AuditLine>,
    unreadable: u64,
    /// Where to go on; `None` when everything was looked at.
    next: Option<u64>,
    /// There are enough lines, or no more.
    is_last: bool,
}

impl VisibleSearch {
    async fn step(&mut self) -> Result<VisibleStep, Response> {
        let Some(mut search) = self.search.take() else {
            return Err(aside(&AsideError::Closed));
        };
        let worked = self.place.slice(move || {
            let step = search.step();
            (search, step)
        });
        let (search, step) = worked.await.map_err(|error| aside(&error))?;
        let AuditStep {
            mut lines,
            unreadable,
        } = step.map_err(|error| {
            let message = format!("the audit log cannot be read for now: {error}; try again");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "log-unreadable", &message)
        })?;
        let mut next = search.next();
        self.search = Some(search);
        lines.retain(|line| may_see(&self.access, line));
        let more = usize::try_from(self.left).unwrap_or(usize::MAX);
        if lines.len() > more {
            lines.truncate(more);
            next = lines.last().map(|line| line.number);
        }
        self.left -= lines.len() as u64;
        Ok(VisibleStep {
            lines,
            unreadable,
            next,
            is_last: next.is_none() || self.left == 0,
        })
    }
}

/// As much as one answer may take.
async fn page(log: &AuditLog, mut search: VisibleSearch) -> Result<AuditPage, Response> {
    let clock = &log.0.clock;
    let begun = clock.monotonic();
    let sees_all = search.access.scope == heddle_api::access::Scope::All;
    let mut page = AuditPage {
        newest: log.journal().end().saturating_sub(1),
        oldest_at: log.journal().oldest_at(),
        fault: log.fault().map(|fault| fault.to_string()),
        ..AuditPage::default()
    };
    loop {
        let step = search.step().await?;
        page.items.extend(step.lines);
        page.damaged += step.unreadable;
        page.next = step.next;
        let took = clock.monotonic().saturating_sub(begun);
        if step.is_last || took >= ANSWER_TIME_MAX {
            break;
        }
    }
    let (damaged, mut damage) = log.journal().damage();
    page.damaged += damaged;
    damage.truncate(DAMAGE_TOLD_MAX);
    // Places of files are for those who keep them.
    page.damage = if sees_all { damage } else { Vec::new() };
    Ok(page)
}

/// Each poll is a slice: whoever does not read on is not searched for. One that fails has no end, so that nobody takes it
/// for all there is.
fn as_lines(search: VisibleSearch) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    stream::unfold(Some(search), |search| async move {
        let mut search = search?;
        loop {
            let Ok(step) = search.step().await else {
                let broken = std::io::Error::other("the audit log cannot be read further");
                return Some((Err(broken), None));
            };
            let mut text = Vec::new();
            for line in &step.lines {
                if serde_json::to_writer(&mut text, line).is_ok() {
                    text.push(b'\n');
                }
            }
            let rest = (!step.is_last).then_some(search);
            match rest {
                Some(rest) if text.is_empty() => search = rest,
                rest => return Some((Ok(text.into()), rest)),
            }
        }
    })
}

fn aside(error: &AsideError) -> Response {
    let (status, code) = match error {
        AsideError::Busy => (StatusCode::TOO_MANY_REQUESTS, "too-many-questions"),
        AsideError::Superseded => (StatusCode::CONFLICT, "superseded"),
        AsideError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
    };
    refuse(status, code, &error.to_string())
}

fn json(page: &AuditPage) -> Response {
    let kind = HeaderValue::from_static("application/json");
    match serde_json::to_vec(page) {
        Ok(text) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
