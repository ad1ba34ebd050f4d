//! What a request means to change, and what it changed, for whoever keeps account of changes.
//!
//! The first is told from method and path alone, so it is known of requests that never get an answer as well. The second
//! travels among the extensions of the answer. Neither reads a body.

use heddle_api::audit::ChangeNote;
use heddle_store::Object;
use http::{Method, Response, Uri};

use crate::ApiServer;
use crate::request::{Params, Path, path, verb};
use crate::reviews;

impl ApiServer {
    /// What a request that is no read means to change. Reviews and dry runs change nothing.
    #[must_use]
    pub fn asked_change(&self, method: &Method, uri: &Uri) -> ChangeNote {
        let Path::Object(target) = path(uri.path()) else {
            return ChangeNote::default();
        };
        if reviews::of(&target).is_some() {
            return ChangeNote::question();
        }
        let params = Params::parse(method, uri.query().unwrap_or_default());
        if params.is_ok_and(|params| params.dry_run) {
            return ChangeNote::question();
        }
        let known = self
            .registry()
            .find(target.group, target.version, target.plural);
        let kind = known.map_or_else(
            || target.plural.to_owned(),
            |resource| resource.kind.to_lowercase(),
        );
        ChangeNote {
            verb: verb(method, &target, false),
            kind: Some(kind.into()),
            namespace: target.namespace.map(str::to_owned),
            name: target.name.map(str::to_owned),
            ..ChangeNote::default()
        }
    }
}

/// Notes which object it was.
pub(crate) fn noted<B>(mut response: Response<B>, object: &Object) -> Response<B> {
    response.extensions_mut().insert(ChangeNote {
        name: Some(object.key.name.to_string()),
        uid: Some(object.facts.uid.to_string()),
        ..ChangeNote::default()
    });
    response
}

/// Notes that nothing was changed.
pub(crate) fn rehearsed<B>(mut response: Response<B>) -> Response<B> {
    response.extensions_mut().insert(ChangeNote::question());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use heddle_rt::{Chance, Clock, MemoryVfs};
    use std::sync::Arc;

    async fn server() -> ApiServer {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let vfs = MemoryVfs::new().shared();
        let mut options = heddle_store::Options::new(vfs, "/data", clock.clone());
        options.mode = heddle_store::Mode::Inline;
        ApiServer::open(crate::Options {
            store: heddle_store::Store::open(options).unwrap(),
            clock,
            chance: Chance::seeded(1),
            registry: Arc::new(Registry::heddle().unwrap()),
            namespaces: vec!["default"],
            tokens: crate::Tokens::default(),
            limits: crate::Limits::default(),
        })
        .await
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_named_by_its_path_and_a_question_is_none() {
        let server = server().await;
        let asked = |method: Method, uri: &str| server.asked_change(&method, &uri.parse().unwrap());
        let triggers = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers";
        let created = asked(Method::POST, triggers);
        assert_eq!(created.verb, Some("create"));
        assert_eq!(created.kind.as_deref(), Some("trigger"));
        assert_eq!(created.namespace.as_deref(), Some("team-a"));
        assert_eq!(created.name, None);
        for (method, verb) in [
            (Method::PUT, "update"),
            (Method::PATCH, "patch"),
            (Method::DELETE, "delete"),
        ] {
            for part in ["", "/status"] {
                let note = asked(method.clone(), &format!("{triggers}/orders{part}?x=1"));
                assert_eq!(note.verb, Some(verb));
                assert_eq!(note.name.as_deref(), Some("orders"));
                assert!(!note.is_question);
            }
        }
        assert_eq!(
            asked(Method::DELETE, triggers).verb,
            Some("deletecollection")
        );
        let dry = format!("{triggers}/orders?dryRun=All");
        assert!(asked(Method::PATCH, &dry).is_question);
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert!(asked(Method::POST, review).is_question);
        assert_eq!(asked(Method::POST, "/api"), ChangeNote::default());
    }
}
