//! Trying a subscriber: `POST /heddle/v1/subscribers/try`. For those who may make a Trigger in the namespace it would be for.

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use heddle_api::access::Right;
use heddle_api::audit::ChangeNote;
use heddle_api::subscriber_trial::SubscriberTrialRequest;

use super::{AskedBy, QuestionQuery, answer, asked, check, noted, read, refuse};
use crate::mesh::Mesh;

pub(super) async fn try_one(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let query = QuestionQuery::of(query);
    let request = match read::<SubscriberTrialRequest>(&body) {
        Ok(request) => request,
        Err(error) => return refuse(&error),
    };
    let tried = match check(&access, Right::Operate, Some(&request.namespace)) {
        Ok(()) => asked(&mesh, &access, &query, mesh.try_subscriber(&request)).await,
        Err(error) => Err(error),
    };
    // Its address is not written down: what people put there may be a secret.
    let note = ChangeNote {
        namespace: Some(request.namespace),
        ..ChangeNote::default()
    };
    noted(answer(tried), note)
}
