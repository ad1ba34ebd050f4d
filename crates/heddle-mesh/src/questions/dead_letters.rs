//! Dead letters over HTTP: listed, put into groups, which can be marked, shown, tried, and what is done with many of them.
//!
//! A letter belongs to the namespace of its consumer. Whoever may not look there does not see it, whoever may not act there
//! acts on none of it, and its event's data and what its subscriber said are for those who may read payloads.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::access::{Access, Right, Scope};
use heddle_api::audit::ChangeNote;
use heddle_api::dead_letters::marks::MarkRequest;
use heddle_api::dead_letters::{AT_ONCE_MAX, BulkAct};
use heddle_api::ledger::{DeadLetterDetail, DeadLetterSelection, ErrorBody};
use http::{HeaderValue, StatusCode, header};

use super::{AskedBy, PAGE, QuestionQuery, answer, asked, json, read};
use crate::bulk::BulkKind;
use crate::ledger::{Error, mask_for};
use crate::mesh::Mesh;
use crate::path::dead_letter::picker::{CauseKey, GroupBy, Picker, namespace_of};

/// The routes below `/dead-letters`.
pub(super) fn routes() -> Router<Mesh> {
    Router::new()
        .route("/dead-letters", get(list))
        .route("/dead-letters/groups", get(groups))
        .route("/dead-letters/groups/{key}/mark", post(mark).delete(unmark))
        .route("/dead-letters/redrive", post(redrive))
        .route("/dead-letters/discard", post(discard))
        .route("/dead-letters/operations", get(operations))
        .route("/dead-letters/operations/{id}", get(operation))
        .route("/dead-letters/operations/{id}/stop", post(stop))
        .route("/dead-letters/{name}", get(show))
        .route("/dead-letters/{name}/try", post(try_one))
}

/// Who asks, and what they may do.
struct AskerAccess(Access);

impl AskerAccess {
    /// The namespaces outside of which nothing is to be seen or done; `None` is everywhere.
    fn within(&self) -> Option<&BTreeSet<String>> {
        match &self.0.scope {
            Scope::All => None,
            Scope::Namespaces(names) => Some(names),
        }
    }

    fn may(&self, right: Right, consumer: &str) -> bool {
        self.0.may(right, Some(namespace_of(consumer)))
    }

    /// Whether something may be done in any namespace.
    fn may_anywhere(&self, right: Right) -> bool {
        let anywhere = Access {
            scope: Scope::All,
            ..self.0.clone()
        };
        anywhere.may(right, None)
    }

    /// For what concerns no namespace in particular, an empty one stands.
    fn may_in(&self, right: Right, namespace: &str) -> bool {
        let namespace = Some(namespace).filter(|name| !name.is_empty());
        self.0.may(right, namespace)
    }
}

fn picked(query: &QuestionQuery) -> DeadLetterSelection {
    DeadLetterSelection {
        consumer: query.text("consumer"),
        namespace: query.text("namespace"),
        type_: query.text("type"),
        source: query.text("source"),
        id: query.text("id"),
        application: query.text("application"),
        group: query.text("group"),
        up_to: query.text("upTo"),
        all: true,
        ..DeadLetterSelection::default()
    }
}

async fn list(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let access = AskerAccess(access);
    let query = QuestionQuery::of(query);
    let picker = Picker::new(&picked(&query), access.within());
    let (after, limit) = match (query.number("after"), query.number("limit")) {
        (Ok(after), Ok(limit)) => (after.unwrap_or(0), limit.unwrap_or(PAGE)),
        (Err(error), _) | (_, Err(error)) => return answer::<()>(Err(error)),
    };
    let found = async { Ok(mesh.dead_letters_picked(&picker, after, limit).await) };
    answer(asked(&mesh, &access.0, &query, found).await)
}

async fn groups(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let access = AskerAccess(access);
    let query = QuestionQuery::of(query);
    let picker = Picker::new(&picked(&query), access.within());
    let by = query.text("by").unwrap_or_else(|| "cause".to_owned());
    let by = GroupBy::read(&by).ok_or_else(|| {
        Error::Invalid(
            "say by what to put them together: by=cause, by=type or by=application".to_owned(),
        )
    });
    // All that are picked lie where whoever asks may look.
    let quotes = access.0.has(Right::Payloads) && mask_for(&mesh.shared, &access.0).is_none();
    let by = match by {
        Ok(by) => by,
        Err(error) => return answer::<()>(Err(error)),
    };
    let found = async { Ok(mesh.dead_letter_groups(&picker, by, quotes).await) };
    answer(asked(&mesh, &access.0, &query, found).await)
}

async fn mark(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(key): Path<String>,
    body: Bytes,
) -> Response {
    let access = AskerAccess(access);
    let request: MarkRequest = match read(&body) {
        Ok(request) => request,
        Err(error) => return answer::<()>(Err(error)),
    };
    let key = match markable(&mesh, &access, &key) {
        Ok(key) => key,
        Err(refusal) => return *refusal,
    };
    let marked = mesh.mark_group(&key, &request, &access.0.user).await;
    noted(answer(marked), "mark", &key)
}

async fn unmark(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(key): Path<String>,
) -> Response {
    let access = AskerAccess(access);
    let key = match markable(&mesh, &access, &key) {
        Ok(key) => key,
        Err(refusal) => return *refusal,
    };
    let former = mesh.unmark_group(&key, &access.0.user).await;
    noted(answer(former), "unmark", &key)
}

/// The group that is meant, if whoever asks may say something about it.
fn markable(mesh: &Mesh, access: &AskerAccess, text: &str) -> Result<CauseKey, Box<Response>> {
    let key = mesh.cause_key(text);
    let key = key.filter(|key| access.may(Right::Look, &key.consumer));
    let Some(key) = key else {
        let missing = Error::NotFound(format!("there is no group {text} of dead letters by cause"));
        return Err(Box::new(answer::<()>(Err(missing))));
    };
    match access.may(Right::Operate, &key.consumer) {
        true => Ok(key),
        false => Err(Box::new(forbidden("mark"))),
    }
}

/// With what the account of changes is told.
fn noted(mut response: Response, verb: &'static str, key: &CauseKey) -> Response {
    if response.status().is_success() {
        response.extensions_mut().insert(ChangeNote {
            verb: Some(verb),
            namespace: Some(namespace_of(&key.consumer).to_owned()),
            name: Some(key.key()),
            ..ChangeNote::default()
        });
    }
    response
}

async fn show(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(name): Path<String>,
) -> Response {
    let access = AskerAccess(access);
    let asked = name.clone();
    let mask = mask_for(&mesh.shared, &access.0);
    let is_masked = mask.is_some();
    let found = mesh.aside(move |mesh| mesh.dead_letter_for(&asked, mask.as_deref()));
    let found = found.await;
    let seen = found.and_then(|detail| {
        let consumer = detail.summary.consumer.clone();
        match (
            access.may(Right::Look, &consumer),
            access.may(Right::Payloads, &consumer),
        ) {
            (false, _) => Err(Error::NotFound(format!("there is no dead letter {name}"))),
            (true, true) if is_masked => Ok(without_answer(detail)),
            (true, true) => Ok(detail),
            (true, false) => Ok(without_payload(detail)),
        }
    });
    answer(seen)
}

/// What a subscriber says may quote what is hidden in the data it was sent.
fn without_answer(mut detail: DeadLetterDetail) -> DeadLetterDetail {
    detail.answer = None;
    detail
}

/// The attributes, and nothing that somebody wrote into the event or about it.
fn without_payload(mut detail: DeadLetterDetail) -> DeadLetterDetail {
    detail.event = detail.event.without(&["data", "data_base64"]);
    detail.answer = None;
    detail.data_hidden = true;
    detail
}

async fn redrive(State(mesh): State<Mesh>, Extension(access): AskedBy, body: Bytes) -> Response {
    let access = AskerAccess(access);
    take(&mesh, &access, BulkAct::Redrive, &body).await
}

async fn discard(State(mesh): State<Mesh>, Extension(access): AskedBy, body: Bytes) -> Response {
    let access = AskerAccess(access);
    take(&mesh, &access, BulkAct::Discard, &body).await
}

async fn take(mesh: &Mesh, access: &AskerAccess, act: BulkAct, body: &[u8]) -> Response {
    let selection: DeadLetterSelection = match read(body) {
        Ok(selection) => selection,
        Err(error) => return answer::<()>(Err(error)),
    };
    if !access.may_anywhere(Right::Operate) {
        return forbidden(act.word());
    }
    let within = access.within();
    let picker = Picker::new(&selection, within);
    let previewed = async { Ok(mesh.preview(&picker, act).await) };
    let unnamed = QuestionQuery::of(None);
    let preview = match asked(mesh, &access.0, &unnamed, previewed).await {
        Ok(preview) => preview,
        Err(error) => return answer::<()>(Err(error)),
    };
    if selection.dry_run {
        let mut response = json(StatusCode::OK, &preview);
        response.extensions_mut().insert(ChangeNote::question());
        return response;
    }
    let note = chosen(mesh, &selection);
    let by = &access.0.user;
    let mut response = if preview.count <= AT_ONCE_MAX && !selection.detach {
        json(StatusCode::OK, &mesh.take(&picker, act, by).await)
    } else {
        begin(mesh, &selection, access, act).await
    };
    if response.status().is_success() {
        response.extensions_mut().insert(note);
    }
    response
}

/// Which of them, for the account of changes: the one that was named, or what they have in common.
fn chosen(mesh: &Mesh, selection: &DeadLetterSelection) -> ChangeNote {
    let one = match &*selection.names {
        [one] => Some(one.as_str()),
        _ => None,
    };
    let consumer = selection.consumer.as_deref();
    let within = match one {
        Some(one) => mesh
            .dead_letter_consumer(one)
            .map(|key| namespace_of(&key).to_owned()),
        None => consumer.map(|key| namespace_of(key).to_owned()),
    };
    ChangeNote {
        namespace: selection.namespace.clone().or(within),
        name: one.or(consumer).map(str::to_owned),
        ..ChangeNote::default()
    }
}

/// Begins what is done with many of them.
async fn begin(
    mesh: &Mesh,
    selection: &DeadLetterSelection,
    access: &AskerAccess,
    act: BulkAct,
) -> Response {
    let (within, by) = (access.within(), &access.0.user);
    match mesh.begin_bulk(selection, within, act, by).await {
        Ok(operation) => {
            let place = format!("/heddle/v1/dead-letters/operations/{}", operation.id);
            let mut response = json(StatusCode::ACCEPTED, &operation);
            if let Ok(place) = HeaderValue::from_str(&place) {
                response.headers_mut().insert(header::LOCATION, place);
            }
            response
        }
        Err(error) => answer::<()>(Err(error)),
    }
}

async fn operations(State(mesh): State<Mesh>, Extension(access): AskedBy) -> Response {
    let access = AskerAccess(access);
    let all = mesh.bulk_operations(BulkKind::Letters, |namespace| {
        access.may_in(Right::Look, namespace)
    });
    json(StatusCode::OK, &all)
}

async fn operation(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(id): Path<String>,
) -> Response {
    let access = AskerAccess(access);
    answer(mesh.bulk_operation(BulkKind::Letters, &id, |namespace| {
        access.may_in(Right::Look, namespace)
    }))
}

async fn stop(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(id): Path<String>,
) -> Response {
    let access = AskerAccess(access);
    if !access.may_anywhere(Right::Operate) {
        return forbidden("stop what is done with");
    }
    let may_see = |namespace: &str| access.may_in(Right::Operate, namespace);
    answer(
        mesh.stop_bulk(BulkKind::Letters, &id, &access.0.user, may_see)
            .await,
    )
}

async fn try_one(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(name): Path<String>,
) -> Response {
    let access = AskerAccess(access);
    let consumer = mesh.dead_letter_consumer(&name);
    let consumer = consumer.filter(|consumer| access.may(Right::Look, consumer));
    let Some(consumer) = consumer else {
        let missing = Error::NotFound(format!("there is no dead letter {name}"));
        return answer::<()>(Err(missing));
    };
    if !access.may(Right::Operate, &consumer) {
        return forbidden("try");
    }
    let tried = mesh.try_dead_letter(&name, &access.0.user).await;
    let mut response = answer(tried.map(|mut tried| {
        let is_masked = mask_for(&mesh.shared, &access.0).is_some();
        if is_masked || !access.may(Right::Payloads, &consumer) {
            tried.answer = None;
        }
        tried
    }));
    if response.status().is_success() {
        response.extensions_mut().insert(ChangeNote {
            namespace: Some(namespace_of(&consumer).to_owned()),
            ..ChangeNote::default()
        });
    }
    response
}

fn forbidden(what: &str) -> Response {
    let refusal = ErrorBody {
        code: "forbidden".to_owned(),
        message: format!(
            "you may not {what} dead letters; ask for a token with the role operator in their namespace"
        ),
        ..ErrorBody::default()
    };
    json(StatusCode::FORBIDDEN, &refusal).into_response()
}
