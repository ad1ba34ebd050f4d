//! Somebody who looks at pages that are made from given answers.

use axum::Router;
use axum::extract::FromRequestParts as _;
use heddle_api::access::{Access, Role, Scope};
use http::Request;

use super::PageLook;
use crate::ask::Inquirer;
use crate::links::PageLinks;
use crate::visit::Visit;

/// An administrator who opened that path.
pub(crate) async fn looking(answers: Router, path: &str, payloads: bool) -> PageLook {
    let access = Access {
        user: "ada".to_owned(),
        role: Role::Administrator,
        scope: Scope::All,
        payloads,
    };
    let request = Request::get(path).extension(access).body(()).unwrap();
    let (mut parts, ()) = request.into_parts();
    let Ok(visit) = Visit::from_request_parts(&mut parts, &()).await;
    PageLook {
        ask: Inquirer::new(answers, visit.extensions.clone()),
        links: PageLinks::new(""),
        now: "2026-05-01T12:00:10Z".parse().unwrap(),
        visit,
    }
}
