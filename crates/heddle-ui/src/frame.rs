//! What is around every page: navigation, the way to find something, who looks; and the headers that keep strangers' markup
//! from doing anything.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use heddle_api::access::{Access, Right};
use http::{HeaderName, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use crate::assets;
use crate::links::{PageLinks, part};
use crate::parts::command;
use crate::visit::Visit;
use crate::words;

/// Scripts and styles are this server's files; one policy, `heddle`, may write markup, and it writes pieces of this server.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types heddle";

/// On everything below `/ui/`.
const SAFETY: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Where somebody can go from everywhere: what stands there, below `/ui/`, and the key after `g`.
const NAVIGATION: [(&str, &str, &str); 7] = [
    ("Mesh", "", "m"),
    ("Applications", "applications", "a"),
    ("Events", "events", "e"),
    ("Dead letters", "dead-letters", "d"),
    ("Catalog", "catalog", "c"),
    ("Changes", AUDIT, "u"),
    ("Help", "help", "h"),
];

/// An answer with the headers that all below `/ui/` have, whoever gives it.
pub async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in SAFETY {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What only administrators have; the script shows it to those of whom the frame does not know yet.
const AUDIT: &str = "audit";

/// What a page says, before it is put into its frame.
#[derive(Debug)]
pub(crate) struct RenderedPage {
    /// For tests and for the style: `mesh`, `application`…
    pub(crate) name: &'static str,
    /// The entry of the navigation that it belongs to, by its path.
    pub(crate) section: &'static str,
    pub(crate) title: String,
    pub(crate) body: Markup,
    /// The command that tells the same.
    pub(crate) command: Option<String>,
    /// The request that it was made from.
    pub(crate) request: Option<String>,
    pub(crate) status: StatusCode,
}

impl RenderedPage {
    pub(crate) fn new(
        name: &'static str,
        section: &'static str,
        title: &str,
        body: Markup,
    ) -> Self {
        Self {
            name,
            section,
            title: title.to_owned(),
            body,
            command: None,
            request: None,
            status: StatusCode::OK,
        }
    }

    /// With the command and the request behind it.
    pub(crate) fn behind(mut self, command: &str, request: &str) -> Self {
        self.command = Some(command.to_owned());
        self.request = Some(request.to_owned());
        self
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    fn main(&self, links: &PageLinks) -> Markup {
        html! {
            main #main tabindex="-1" data-page=(self.name) data-section=(self.section) {
                (self.body)
                @if self.command.is_some() || self.request.is_some() {
                    (command::behind(self.command.as_deref(), self.request.as_deref(), links))
                }
            }
        }
    }
}

/// A page for whoever may see it: in its frame, or by itself for the script.
pub(crate) fn show(
    page: &RenderedPage,
    visit: &Visit,
    links: &PageLinks,
    now: Timestamp,
) -> Response {
    let main = page.main(links);
    let markup = match visit.piece {
        true => html! { title { (page.title) " · heddle" } (main) },
        false => whole(&page.title, page.section, main, visit, links, now),
    };
    respond(page.status, markup, visit)
}

/// The frame alone: the script fetches what belongs into it.
pub(crate) fn empty(
    name: &'static str,
    visit: &Visit,
    links: &PageLinks,
    now: Timestamp,
) -> Response {
    let main = html! {
        main #main tabindex="-1" data-page=(name) data-load {
            p.quiet.loading role="status" { "Loading…" }
            noscript {
                p.notice { "This page fetches its content with a script. " a href=(links.page("login")) { "Log in for reading without one" } "." }
            }
        }
    };
    let markup = whole("heddle", "", main, visit, links, now);
    respond(StatusCode::OK, markup, visit)
}

/// A page that stands alone: the way in.
pub(crate) fn bare(title: &str, main: Markup, visit: &Visit, links: &PageLinks) -> Response {
    let body = html! { (main) (announcer()) };
    respond(
        StatusCode::OK,
        document(title, "bare", body, visit, links),
        visit,
    )
}

fn whole(
    title: &str,
    section: &str,
    main: Markup,
    visit: &Visit,
    links: &PageLinks,
    now: Timestamp,
) -> Markup {
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        (top(section, visit, links, now))
        (ends())
        (main)
        (announcer())
        (keys())
    };
    document(title, "app", body, visit, links)
}

fn document(title: &str, class: &str, body: Markup, visit: &Visit, links: &PageLinks) -> Markup {
    let file = |name: &str| links.page(&assets::path(name));
    html! {
        (DOCTYPE)
        html lang="en" data-base=(links.base()) data-theme=[visit.theme] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) @if class == "app" { " · heddle" } }
                link rel="icon" href=(file(assets::ICON)) type="image/svg+xml";
                link rel="stylesheet" href=(file(assets::STYLE));
                script type="module" src=(file(assets::SCRIPT)) {}
            }
            body class=(class) { (body) }
        }
    }
}

fn top(section: &str, visit: &Visit, links: &PageLinks, now: Timestamp) -> Markup {
    html! {
        header.top {
            a.brand href=(links.page("")) {
                img src=(links.page(&assets::path(assets::ICON))) alt="" width="22" height="22";
                "heddle"
            }
            nav.pages aria-label="Pages" {
                @for (name, path, key) in NAVIGATION {
                    @let needs = (path == AUDIT).then_some("administrator");
                    @let hidden = needs.is_some() && !visit.access().is_some_and(|access| access.has(Right::Administer));
                    a href=(links.page(path)) data-key=(key) data-needs=[needs] hidden[hidden] aria-current=[(path == section).then_some("page")] { (name) }
                }
            }
            form.find role="search" action=(links.page("find")) method="get" {
                input #find name="q" type="search" autocomplete="off" spellcheck="false" maxlength="1024"
                    aria-label="Find an event by its id or place, or an object"
                    placeholder="Find an event or object" value=[visit.text("q")];
                kbd aria-hidden="true" { "/" }
            }
            div.tools {
                span #live.live data-state="still" { span.dot {} span.said { "as of " (now.strftime("%H:%M:%S").to_string()) } }
                button #theme.plain type="button" hidden aria-label="Change between light and dark" { "◐" }
                (who(visit.access(), links))
            }
        }
    }
}

fn who(access: Option<&Access>, links: &PageLinks) -> Markup {
    html! {
        details.who #who {
            summary { span #user { @match access { Some(access) => (access.user), None => "…" } } }
            div.menu {
                p.quiet #role { @if let Some(access) = access { (access.role.name()) } }
                form method="post" action=(links.page("logout")) data-logout { button type="submit" { "Log out" } }
            }
        }
    }
}

/// What the script shows before a session ends for want of use.
fn ends() -> Markup {
    html! {
        p #ends.notice hidden role="status" {
            "Your session ends in " strong {} ". "
            button type="button" { "Stay logged in" }
        }
    }
}

/// Where changes of verdicts are told to who listens instead of looking.
fn announcer() -> Markup {
    html! { div #announcer.unseen role="status" aria-live="polite" {} }
}

fn keys() -> Markup {
    let rows = [
        ("/", "find an event or an object"),
        (
            "g then m, a, e, d, c, u, h",
            "go to mesh, applications, events, dead letters, catalog, changes, help",
        ),
        ("j, k", "next and previous row"),
        ("Enter", "open what is in focus"),
        ("x", "select a row; with Shift, all up to it"),
        ("?", "this help"),
        ("Esc", "close, leave a field, or go back"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl.facts {
                @for (keys, what) in rows { dt { kbd { (keys) } } dd { (what) } }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// To the way in, and back afterwards. The address keeps what comes after its `#`: browsers carry it over.
pub(crate) fn send_to_login(visit: &Visit, links: &PageLinks) -> Response {
    if visit.piece {
        let text = "the session is over: log in again";
        return (StatusCode::UNAUTHORIZED, text).into_response();
    }
    // A proxy took the base off before it handed this on.
    let next = part(&links.server(&visit.path));
    redirect(&links.page(&format!("login?next={next}")))
}

/// To another page.
pub(crate) fn redirect(to: &str) -> Response {
    let to = HeaderValue::try_from(to).unwrap_or_else(|_| HeaderValue::from_static("/ui/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// Pieces of a page, one after the other, each in the place of the one before. What ends them is that nobody waits any more.
pub(crate) fn pieces(pieces: impl Stream<Item = Markup> + Send + 'static) -> Response {
    let pieces = pieces.map(|piece| Ok::<_, Infallible>(piece.into_string() + "\0"));
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    let fresh = HeaderValue::from_static("no-cache, no-store");
    headers.insert(header::CACHE_CONTROL, fresh);
    response
}

fn respond(status: StatusCode, markup: Markup, visit: &Visit) -> Response {
    let text = markup.into_string();
    let mut response = match visit.gzip {
        true => (status, assets::compress(text.as_bytes())).into_response(),
        false => (status, text).into_response(),
    };
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    // A page holds what its viewer may see, and nobody else: it is kept nowhere.
    let fresh = HeaderValue::from_static("no-cache, no-store");
    headers.insert(header::CACHE_CONTROL, fresh);
    let vary = "Accept-Encoding, Authorization, Cookie, X-Heddle-Session, X-Heddle-Piece";
    headers.insert(header::VARY, HeaderValue::from_static(vary));
    if visit.gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// A moment, for the bottom of a page.
pub(crate) fn as_of(at: Timestamp, now: Timestamp) -> Markup {
    html! { p.quiet.as-of { "As of " (words::since(at, now)) "." } }
}
