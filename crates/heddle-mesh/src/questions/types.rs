//! Which types of events there are: `GET /heddle/v1/types?last=[&type=][&namespace=]`.

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;

use super::{AskedBy, QuestionQuery, answer, asked};
use crate::ledger::TypesRequest;
use crate::mesh::Mesh;

pub(super) async fn list(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let last = query.text("last").and_then(|last| last.parse().ok());
    let request = TypesRequest {
        last: last.unwrap_or(TypesRequest::LAST_DEFAULT),
        type_: query.text("type"),
        namespace: query.text("namespace"),
        visible: mesh.visible_to(&access),
    };
    answer(asked(&mesh, &access, &query, mesh.types(request)).await)
}
