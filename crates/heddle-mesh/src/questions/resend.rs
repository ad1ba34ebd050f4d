//! `POST /heddle/v1/events/resend`: events of the log once more, to one consumer; and the operations that do it.
//!
//! Whoever asks must be able to act in the namespace of the consumer and to see the events. What never led to the consumer is
//! sent there only by those who may read its data: otherwise it could be led to where they read it.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use heddle_api::access::{Access, Right, namespace_of};
use heddle_api::audit::ChangeNote;
use heddle_api::resend::ResendRequest;
use http::{HeaderValue, StatusCode, header};

use super::{AskedBy, QuestionQuery, answer, asked, json, noted, read, refuse};
use crate::bulk::BulkKind;
use crate::ledger::Error;
use crate::mesh::Mesh;

pub(super) fn routes() -> Router<Mesh> {
    Router::new()
        .route("/events/resend", post(resend))
        .route("/events/operations", get(operations))
        .route("/events/operations/{id}", get(operation))
        .route("/events/operations/{id}/stop", post(stop))
}

async fn resend(State(mesh): State<Mesh>, Extension(access): AskedBy, body: Bytes) -> Response {
    let request: ResendRequest = match read(&body) {
        Ok(request) => request,
        Err(error) => return refuse(&error),
    };
    let begun = begin(&mesh, &access, &request).await;
    let response = begun.unwrap_or_else(|error| refuse(&error));
    let note = match request.dry_run {
        true => ChangeNote::question(),
        false => ChangeNote {
            namespace: namespace_of(&request.consumer).map(str::to_owned),
            name: Some(request.consumer),
            ..ChangeNote::default()
        },
    };
    noted(response, note)
}

async fn begin(mesh: &Mesh, access: &Access, request: &ResendRequest) -> Result<Response, Error> {
    let order = mesh.resend_order(request, access)?;
    let unnamed = QuestionQuery::of(None);
    if request.dry_run {
        let previewed = mesh.preview_resend(&order, &access.user);
        let preview = asked(mesh, access, &unnamed, previewed).await?;
        return Ok(json(StatusCode::OK, &preview));
    }
    let begun = mesh.resend(order, &access.user);
    let operation = asked(mesh, access, &unnamed, begun).await?;
    let place = format!("/heddle/v1/events/operations/{}", operation.id);
    let mut response = json(StatusCode::ACCEPTED, &operation);
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

async fn operations(State(mesh): State<Mesh>, Extension(access): AskedBy) -> Response {
    let may_see = |namespace: &str| may(&access, Right::Look, namespace);
    json(
        StatusCode::OK,
        &mesh.bulk_operations(BulkKind::Events, may_see),
    )
}

async fn operation(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(id): Path<String>,
) -> Response {
    let may_see = |namespace: &str| may(&access, Right::Look, namespace);
    answer(mesh.bulk_operation(BulkKind::Events, &id, may_see))
}

async fn stop(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(id): Path<String>,
) -> Response {
    if !access.has(Right::Operate) {
        return refuse(&Error::Forbidden(access.refusal(Right::Operate, None)));
    }
    let may_see = |namespace: &str| may(&access, Right::Operate, namespace);
    let stopped = mesh.stop_bulk(BulkKind::Events, &id, &access.user, may_see);
    let stopped = stopped.await;
    let note = ChangeNote {
        name: stopped.as_ref().ok().and_then(|one| one.consumer.clone()),
        namespace: stopped.as_ref().ok().and_then(|one| {
            let consumer = one.consumer.as_deref()?;
            namespace_of(consumer).map(str::to_owned)
        }),
        ..ChangeNote::default()
    };
    noted(answer(stopped), note)
}

/// Operations act in the namespace of their consumer.
fn may(access: &Access, right: Right, namespace: &str) -> bool {
    access.may(right, Some(namespace).filter(|name| !name.is_empty()))
}
