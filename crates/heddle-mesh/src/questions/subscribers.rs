//! Trying a subscriber: `POST /heddle/v1/subscribers/try`. For those who may make a Trigger in the namespace it would be for.

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use heddle_api::access::Right;
use heddle_api::subscriber_trial::SubscriberTrialRequest;

use super::{AskedBy, QuestionQuery, answer, asked, check, read};
use crate::mesh::Mesh;

pub(super) async fn try_one(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let query = QuestionQuery::of(query);
    let request = read::<SubscriberTrialRequest>(&body).and_then(|request| {
        check(&access, Right::Operate, Some(&request.namespace))?;
        Ok(request)
    });
    answer(match request {
        Ok(request) => {
            let trying = mesh.try_subscriber(&request);
            asked(&mesh, &access, &query, trying).await
        }
        Err(error) => Err(error),
    })
}
