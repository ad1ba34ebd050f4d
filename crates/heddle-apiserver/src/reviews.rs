//! Questions that a caller asks about itself: who am I, may I do this, what may I do here.
//!
//! Nothing is stored: a review is posted and answered at once, from the identity of the request and by the same function
//! that guards the requests themselves.

use std::collections::BTreeMap;

use axum::body::Body;
use heddle_rt::net::receive::RequestBody;
use http::{Method, Response, StatusCode, request};
use serde_json::{Value, json};

use crate::auth::{self, Identity};
use crate::registry::{Registry, Resource};
use crate::request::Target;
use crate::serve::json_response;
use crate::status::{Result, StatusError};
use crate::{body, negotiate};

/// One kind of question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    answer: fn(&Registry, &Identity, &Value) -> Value,
}

pub(crate) const VERSION: &str = "v1";

/// All of them; discovery lists them as they are here.
pub(crate) const REVIEWS: [Review; 3] = [
    Review {
        group: "authentication.k8s.io",
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        answer: who_am_i,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        answer: may_i,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
        answer: what_may_i,
    },
];

/// The review that a path names, if it names one.
pub(crate) fn of(target: &Target<'_>) -> Option<Review> {
    let named = |review: &Review| {
        (review.group, VERSION, review.plural) == (target.group, target.version, target.plural)
    };
    REVIEWS.into_iter().find(named)
}

impl Review {
    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Reads the question and answers it.
    pub(crate) async fn ask<B: RequestBody + 'static>(
        self,
        registry: &Registry,
        identity: &Identity,
        parts: &request::Parts,
        body: B,
    ) -> Result<Response<Body>> {
        if parts.method != Method::POST {
            return Err(StatusError::method_not_allowed());
        }
        let encoding = negotiate::encoding(&parts.headers)?;
        let received = body::read(body, parts, identity).await?;
        let mut review = body::decode(&received.bytes, encoding)?.value;
        let Some(fields) = review.as_object_mut() else {
            return Err(StatusError::bad_request(
                "the body of the request is not an object",
            ));
        };
        let spec = fields.get("spec").cloned().unwrap_or_default();
        fields.insert("kind".to_owned(), json!(self.kind));
        let api_version = format!("{}/{VERSION}", self.group);
        fields.insert("apiVersion".to_owned(), json!(api_version));
        fields
            .entry("metadata")
            .or_insert_with(|| json!({"creationTimestamp": null}));
        fields.insert(
            "status".to_owned(),
            (self.answer)(registry, identity, &spec),
        );
        Ok(json_response(StatusCode::CREATED, &review))
    }
}

/// `kubectl auth whoami`.
fn who_am_i(_: &Registry, identity: &Identity, _: &Value) -> Value {
    json!({"userInfo": {"username": *identity.user, "groups": *identity.groups}})
}

/// `kubectl auth can-i`.
fn may_i(registry: &Registry, identity: &Identity, spec: &Value) -> Value {
    let text = |field: &str| {
        spec["resourceAttributes"][field]
            .as_str()
            .unwrap_or_default()
    };
    let (group, plural, verb) = (text("group"), text("resource"), text("verb"));
    let set = |field: &str| Some(text(field)).filter(|text| !text.is_empty());
    let resource = registry
        .resources()
        .iter()
        .find(|r| r.group == group && r.plural == plural);
    let allowed = match resource {
        Some(resource) => auth::allows(
            identity,
            &auth::ObjectRequest {
                verb,
                resource,
                namespace: set("namespace"),
                name: set("name"),
                is_status: text("subresource") == "status",
            },
        ),
        None => identity.is_in(auth::ADMINS) || identity.is_in(auth::CONTROLLERS),
    };
    json!({"allowed": allowed})
}

/// `kubectl auth can-i --list`, in one namespace.
fn what_may_i(registry: &Registry, identity: &Identity, spec: &Value) -> Value {
    let namespace = spec["namespace"].as_str().filter(|name| !name.is_empty());
    let mut rules: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
    for resource in registry.resources() {
        for is_status in [false, true] {
            let verbs = allowed_verbs(identity, resource, namespace, is_status);
            if verbs.is_empty() || (is_status && !resource.has_status) {
                continue;
            }
            let resources = rules.entry((resource.group.as_str(), verbs)).or_default();
            resources.push(match is_status {
                false => resource.plural.clone(),
                true => format!("{}/status", resource.plural),
            });
        }
    }
    let mut resource_rules: Vec<Value> = rules
        .into_iter()
        .map(|((group, verbs), resources)| {
            json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
        })
        .collect();
    for review in REVIEWS {
        resource_rules.push(json!({
            "apiGroups": [review.group], "resources": [review.plural], "verbs": ["create"],
        }));
    }
    let paths = [
        "/",
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/openapi",
        "/openapi/*",
        "/version",
    ];
    json!({
        "resourceRules": resource_rules,
        "nonResourceRules": [{"nonResourceURLs": paths, "verbs": ["get"]}],
        "incomplete": false,
    })
}

fn allowed_verbs<'a>(
    identity: &Identity,
    resource: &'a Resource,
    namespace: Option<&str>,
    is_status: bool,
) -> Vec<&'a str> {
    let verbs = resource.verbs().iter().copied();
    let allowed = |verb: &str| {
        let wanted = auth::ObjectRequest {
            verb,
            resource,
            namespace: namespace.filter(|_| resource.namespaced),
            // The Namespace that is asked about can be read by whoever has a role in it.
            name: namespace.filter(|_| !resource.namespaced),
            is_status,
        };
        auth::allows(identity, &wanted)
    };
    let mut verbs: Vec<&str> = verbs.filter(|verb| allowed(verb)).collect();
    verbs.sort_unstable();
    verbs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(groups: &[&str]) -> Value {
        let registry = Registry::heddle().unwrap();
        let spec = json!({"namespace": "team-a"});
        what_may_i(&registry, &Identity::new("somebody", groups), &spec)
    }

    fn verbs(rules: &Value, group: &str, resource: &str) -> Vec<String> {
        let rules = rules["resourceRules"].as_array().unwrap();
        let about = |rule: &&Value| {
            let has = |field: &str, name: &str| {
                let list = rule[field].as_array().unwrap();
                list.iter().any(|entry| entry == name)
            };
            has("apiGroups", group) && has("resources", resource)
        };
        let verbs = rules.iter().filter(about).map(|rule| &rule["verbs"]);
        let verbs = verbs.flat_map(|verbs| verbs.as_array().unwrap());
        verbs
            .map(|verb| verb.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_rules_that_are_listed_are_those_that_are_applied() {
        let registry = Registry::heddle().unwrap();
        let everybody = [
            &[auth::ADMINS][..],
            &[auth::VIEWERS],
            &[auth::OPERATORS],
            &["system:heddle:viewers:team-a"],
            &["system:heddle:operators:team-a"],
            &["system:heddle:administrators:team-a"],
            &["system:heddle:administrators:team-b"],
            &[],
        ];
        for groups in everybody {
            let (identity, listed) = (Identity::new("somebody", groups), rules(groups));
            for resource in registry.resources() {
                let listed = verbs(&listed, &resource.group, &resource.plural);
                for verb in resource.verbs() {
                    let wanted = auth::ObjectRequest {
                        verb,
                        resource,
                        namespace: resource.namespaced.then_some("team-a"),
                        name: (!resource.namespaced).then_some("team-a"),
                        is_status: false,
                    };
                    let applied = auth::allows(&identity, &wanted);
                    assert_eq!(
                        listed.iter().any(|listed| listed == verb),
                        applied,
                        "{groups:?} {verb} {}",
                        resource.qualified()
                    );
                    let attributes = json!({"resourceAttributes": {
                        "group": resource.group, "resource": resource.plural, "verb": verb,
                        "namespace": wanted.namespace, "name": wanted.name,
                    }});
                    let said = may_i(&registry, &identity, &attributes);
                    assert_eq!(
                        said["allowed"],
                        applied,
                        "{groups:?} {verb} {}",
                        resource.qualified()
                    );
                }
            }
        }
        assert!(verbs(&rules(&[auth::VIEWERS]), "", "secrets").is_empty());
    }

    #[test]
    fn everybody_may_ask_about_themselves() {
        for review in REVIEWS {
            assert_eq!(verbs(&rules(&[]), review.group, review.plural), ["create"]);
        }
    }
}
