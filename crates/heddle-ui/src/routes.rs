//! What is below `/ui/`, and who gets which of page, piece, frame and way in.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::names;
use heddle_rt::Clock;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;

use crate::ask::{AnswerFault, Inquirer};
use crate::frame::{self, RenderedPage};
use crate::links::PageLinks;
use crate::pages::{self, PageLook, PageResult};
use crate::visit::{Guest, Visit, takes_gzip};
use crate::{PageOptions, assets};

/// What every request needs.
#[derive(Clone, Debug)]
struct PageServer {
    ask: Router,
    clock: Clock,
    links: PageLinks,
}

impl PageServer {
    /// Shows a page to whoever may see it.
    async fn show<F>(
        &self,
        name: &'static str,
        visit: Visit,
        page: impl FnOnce(PageLook) -> F,
    ) -> Response
    where
        F: Future<Output = PageResult>,
    {
        let now = self.clock.now();
        match visit.guest {
            Guest::Stranger => frame::send_to_login(&visit, &self.links),
            Guest::Half => frame::empty(name, &visit, &self.links, now),
            Guest::Known(_) => {
                let shown = page(self.look(visit.clone(), now)).await;
                let shown =
                    shown.unwrap_or_else(|refused| pages::missing::refused(&refused, &self.links));
                frame::show(&shown, &visit, &self.links, now)
            }
        }
    }

    fn look(&self, visit: Visit, now: Timestamp) -> PageLook {
        PageLook {
            ask: Inquirer::new(self.ask.clone(), visit.extensions.clone()),
            links: self.links.clone(),
            now,
            visit,
        }
    }
}

macro_rules! page {
    ($name:literal, $page:path) => {
        get(|State(server): State<PageServer>, visit: Visit| async move {
            server.show($name, visit, |look| async move { $page(&look).await }).await
        })
    };
    ($name:literal, $page:path, $($part:ident),+) => {
        get(|State(server): State<PageServer>, Path(($($part),+,)): Path<($(page!(@text $part)),+,)>, visit: Visit| async move {
            server.show($name, visit, |look| async move { $page(&look, $(&$part),+).await }).await
        })
    };
    (@text $part:ident) => { String };
}

pub(crate) fn router(options: PageOptions) -> Router {
    let server = PageServer {
        ask: options.ask,
        clock: options.clock,
        links: PageLinks::new(&options.base),
    };
    Router::new()
        .route("/ui", get(to_the_page))
        .route("/ui/", page!("mesh", pages::mesh::page))
        .route("/ui/graph.svg", get(graph))
        .route("/ui/login", get(login))
        .route("/ui/find", get(find))
        .route(
            "/ui/applications",
            page!("applications", pages::application::list),
        )
        .route(
            "/ui/applications/{name}",
            page!("application", pages::application::one, name),
        )
        .route(
            "/ui/triggers/{namespace}/{name}",
            page!("trigger", pages::trigger::page, namespace, name),
        )
        .route(
            "/ui/triggers/{namespace}/{name}/resend",
            page!(
                "trigger-resend",
                pages::trigger::resend::page,
                namespace,
                name
            ),
        )
        .route("/ui/triggers/{namespace}/{name}/try", get(try_filter))
        .route("/ui/types", page!("types", pages::types::page))
        .route("/ui/delays", page!("delays", pages::delays::page))
        .route("/ui/what-if", page!("what-if", pages::what_if::page))
        .route(
            "/ui/what-if/try",
            post(try_change).layer(DefaultBodyLimit::max(pages::what_if::BODY_BYTES_MAX)),
        )
        .route("/ui/publish", page!("publish", pages::publish::page))
        .route("/ui/subscribe", page!("subscribe", pages::subscribe::page))
        .route("/ui/subscribe/try", get(try_subscriber))
        .route(
            "/ui/objects/{kind}/{name}",
            page!("object", pages::object::global, kind, name),
        )
        .route(
            "/ui/objects/{kind}/{namespace}/{name}",
            page!("object", pages::object::namespaced, kind, namespace, name),
        )
        .route("/ui/events", page!("events", pages::events::page))
        .route("/ui/events/{place}", get(event_at))
        .route(
            "/ui/events/{place}/republish",
            page!("event-republish", pages::event::republish::page, place),
        )
        .route("/ui/trace", page!("event", pages::event::page))
        .route(
            "/ui/dead-letters",
            page!("dead-letters", pages::dead_letters::list),
        )
        .route(
            "/ui/dead-letters/preview",
            page!("dead-letter-preview", pages::dead_letters::preview::page),
        )
        .route(
            "/ui/dead-letters/mark",
            page!("dead-letter-mark", pages::dead_letters::mark::page),
        )
        .route(
            "/ui/dead-letters/{name}",
            page!("dead-letter", pages::dead_letters::letter::page, name),
        )
        .route("/ui/instances", page!("instances", pages::instances::list))
        .route(
            "/ui/instances/{namespace}/{name}",
            page!("instance", pages::instances::one, namespace, name),
        )
        .route("/ui/catalog", page!("catalog", pages::catalog::page))
        .route(
            "/ui/catalog/{namespace}/{name}",
            page!("offering", pages::offering::page, namespace, name),
        )
        .route(
            "/ui/registries",
            page!("registries", pages::registries::page),
        )
        .route("/ui/instances/{namespace}", get(instance_of_id))
        .route("/ui/refused", page!("refused-events", pages::refused::page))
        .route("/ui/alerts", page!("alerts", pages::alerts::page))
        .route("/ui/checks", page!("checks", pages::checks::page))
        .route("/ui/audit", page!("audit", pages::audit::page))
        .route("/ui/help", page!("help", pages::help::list))
        .route("/ui/help/{code}", page!("help", pages::help::one, code))
        .route("/ui/a/{version}/{name}", get(file))
        .route("/ui/{*rest}", get(missing))
        .layer(middleware::map_response(frame::guarded))
        .with_state(server)
}

async fn to_the_page(State(server): State<PageServer>) -> Response {
    frame::redirect(&server.links.page(""))
}

async fn file(Path((version, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    assets::serve(&version, &name, takes_gzip(&headers))
}

async fn login(State(server): State<PageServer>, visit: Visit) -> Response {
    let main = pages::login::main(&visit, &server.links);
    frame::bare("Log in to heddle", main, &visit, &server.links)
}

/// What is not a page is not a file either, unless its name looks like one.
async fn missing(
    State(server): State<PageServer>,
    Path(rest): Path<String>,
    visit: Visit,
) -> Response {
    let last = rest.rsplit('/').next().unwrap_or_default();
    if rest.starts_with("a/") || last.contains('.') {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    }
    server
        .show("missing", visit, |look| async move {
            Ok(pages::missing::page(&look.links))
        })
        .await
}

/// An instance is known to people by its id, and to the API by a name that is made from it.
async fn instance_of_id(
    State(server): State<PageServer>,
    Path(namespace): Path<String>,
    visit: Visit,
) -> Response {
    let id = visit.text("id").unwrap_or_default();
    frame::redirect(&server.links.instance(&namespace, &names::instance(&id)))
}

/// An event by its place in the log, which is where other pages and answers say it is.
async fn event_at(
    State(server): State<PageServer>,
    Path(place): Path<String>,
    visit: Visit,
) -> Response {
    if visit.access().is_none() {
        return server
            .show("event", visit, |look| async move {
                Ok(pages::missing::page(&look.links))
            })
            .await;
    }
    let look = server.look(visit.clone(), server.clock.now());
    match pages::event::at(&place, &look).await {
        Ok(to) => frame::redirect(&to),
        Err(refused) => show_refusal(&server, &visit, &refused),
    }
}

async fn find(State(server): State<PageServer>, visit: Visit) -> Response {
    if visit.access().is_none() {
        return server
            .show("find", visit, |look| async move {
                Ok(pages::missing::page(&look.links))
            })
            .await;
    }
    let look = server.look(visit.clone(), server.clock.now());
    match pages::find::where_to(&look).await {
        Ok(to) => frame::redirect(&to),
        Err(refused) => show_refusal(&server, &visit, &refused),
    }
}

fn show_refusal(server: &PageServer, visit: &Visit, refused: &AnswerFault) -> Response {
    let page: RenderedPage = pages::missing::refused(refused, &server.links);
    frame::show(&page, visit, &server.links, server.clock.now())
}

/// What a filter would do, piece by piece, for as long as somebody waits for it.
async fn try_filter(
    State(server): State<PageServer>,
    Path((namespace, name)): Path<(String, String)>,
    visit: Visit,
) -> Response {
    if visit.access().is_none() {
        return frame::send_to_login(&visit, &server.links);
    }
    let look = server.look(visit, server.clock.now());
    frame::pieces(pages::trigger::playground::pieces(look, namespace, name))
}

/// Makes this server connect to somewhere, so it is for the script: no link of somebody else can send its header.
async fn try_subscriber(State(server): State<PageServer>, visit: Visit) -> Response {
    if !visit.piece {
        return frame::redirect(&server.links.page("subscribe"));
    }
    if visit.access().is_none() {
        return frame::send_to_login(&visit, &server.links);
    }
    let look = server.look(visit, server.clock.now());
    let piece = pages::subscribe::answer(&look, true).await;
    frame::pieces(futures::stream::iter([piece]))
}

/// Tries a manifest; it is a body because it is long, and changes nothing.
async fn try_change(State(server): State<PageServer>, visit: Visit, body: Bytes) -> Response {
    if visit.access().is_none() {
        return frame::send_to_login(&visit, &server.links);
    }
    let look = server.look(visit, server.clock.now());
    let wanted = pages::what_if::WantedChange::read(&body);
    let piece = pages::what_if::answer(&look, &wanted).await;
    frame::pieces(futures::stream::iter([piece]))
}

/// The picture as a file.
async fn graph(State(server): State<PageServer>, visit: Visit) -> Response {
    if visit.access().is_none() {
        return frame::send_to_login(&visit, &server.links);
    }
    let look = server.look(visit.clone(), server.clock.now());
    let graph = match pages::mesh::topology(&look).await {
        Ok(graph) => graph,
        Err(refused) => return show_refusal(&server, &visit, &refused),
    };
    let text = crate::draw::graph::draw(&graph, &server.links, true).into_string();
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("image/svg+xml"),
        ),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"heddle-mesh.svg\""),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, text).into_response()
}
