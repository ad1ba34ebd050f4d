//! What a platform asked to have changed, for whoever keeps account of changes: the names in a request, and nothing of its body.
//!
//! The user name of a platform's credentials is told only once they were found to be good.

use heddle_api::audit::{ChangeNote, bounded};
use heddle_api::operation::OriginatingIdentity;
use http::request::Parts;
use serde_json::Value;

use crate::auth;
use crate::identity::{self, AdmittedPerson};
use crate::route::{OsbVerb, Route, Target};

/// The longest text that says on whose behalf a platform asks.
const BEHALF_BYTES_MAX: usize = 256;

/// What of a person tells who it is, as platforms call it.
const WHO: [&str; 4] = ["username", "user_name", "user_id", "uid"];

/// What a request asks for, as far as its head says.
pub(crate) fn asked(parts: &Parts) -> ChangeNote {
    let Ok(route) = Route::of(parts.uri.path()) else {
        return ChangeNote::default();
    };
    let verb = route.target.verb(&parts.method).ok();
    let (kind, name) = match &route.target {
        Target::Catalog => ("catalog", None),
        Target::Instance { instance } | Target::InstanceOperation { instance } => {
            ("serviceinstance", Some(instance.clone()))
        }
        Target::Binding { binding, .. } | Target::BindingOperation { binding, .. } => {
            ("servicebinding", Some(binding.clone()))
        }
    };
    ChangeNote {
        verb: verb.map(OsbVerb::name),
        kind: Some(kind.into()),
        namespace: route.scope,
        name,
        ..ChangeNote::default()
    }
}

/// Who asks, of whom it is known that they may.
pub(crate) fn by(note: &mut ChangeNote, parts: &Parts) {
    // Who they are was told at the door.
    if parts.extensions.get::<AdmittedPerson>().is_some() {
        return;
    }
    note.user = auth::username(&parts.headers);
    let originating = identity::originating(&parts.headers).ok().flatten();
    note.on_behalf_of = originating.as_ref().map(behalf);
}

/// A platform, and whom it names: not all that it says of them.
fn behalf(identity: &OriginatingIdentity) -> String {
    let named = WHO
        .into_iter()
        .find_map(|key| match identity.value.get(key) {
            Some(Value::String(text)) => Some(text.as_str()),
            _ => None,
        });
    let told = match named {
        Some(named) => format!("{} {named}", identity.platform),
        None => identity.platform.clone(),
    };
    bounded(&told, BEHALF_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use http::Request;

    use super::*;

    fn parts(method: &str, path: &str, headers: &[(&str, String)]) -> Parts {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_change_is_told_by_its_path() {
        let cases = [
            (
                "PUT",
                "/v2/service_instances/one",
                "provision",
                "serviceinstance",
                "one",
                None,
            ),
            (
                "DELETE",
                "/osb/team-a/v2/service_instances/a%2Fb",
                "deprovision",
                "serviceinstance",
                "a/b",
                Some("team-a"),
            ),
            (
                "PUT",
                "/v2/service_instances/one/service_bindings/two",
                "bind",
                "servicebinding",
                "two",
                None,
            ),
            (
                "DELETE",
                "/v2/service_instances/one/service_bindings/two",
                "unbind",
                "servicebinding",
                "two",
                None,
            ),
            (
                "PATCH",
                "/v2/service_instances/one",
                "update",
                "serviceinstance",
                "one",
                None,
            ),
        ];
        for (method, path, verb, kind, name, namespace) in cases {
            let note = asked(&parts(method, path, &[]));
            assert_eq!(note.verb, Some(verb), "{path}");
            assert_eq!(note.kind.as_deref(), Some(kind));
            assert_eq!(note.name.as_deref(), Some(name));
            assert_eq!(note.namespace.as_deref(), namespace);
        }
        assert_eq!(
            asked(&parts("PUT", "/v2/nothing", &[])),
            ChangeNote::default()
        );
    }

    #[test]
    fn who_asks_is_told_without_what_proves_it() {
        let basic = format!("Basic {}", STANDARD.encode("cf:se:cret"));
        let person = STANDARD.encode(r#"{"user_id": "683ea748", "email": "jo@example.org"}"#);
        let headers = [
            ("authorization", basic),
            (
                "x-broker-api-originating-identity",
                format!("cloudfoundry {person}"),
            ),
        ];
        let mut note = ChangeNote::default();
        by(
            &mut note,
            &parts("PUT", "/v2/service_instances/one", &headers),
        );
        assert_eq!(note.user.as_deref(), Some("cf"));
        assert_eq!(note.on_behalf_of.as_deref(), Some("cloudfoundry 683ea748"));
        let mut nobody = ChangeNote::default();
        by(&mut nobody, &parts("PUT", "/v2/service_instances/one", &[]));
        assert_eq!(nobody, ChangeNote::default());
    }
}
