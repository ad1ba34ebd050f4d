//! The Open Service Broker front, as a platform uses it.
//!
//! The commands speak the same protocol as any platform, so what they can do a platform can do too. They show a token instead
//! of a password, and ask below `/heddle/v1/osb/{namespace}`, where people are let in by their role, and a namespace sees what
//! its mappings enable.

use std::time::Duration;

use anyhow::Context as _;
use heddle_api::well_known::OSB_FRONT_ANNOTATION;
use heddle_rt::net::percent_encoded;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::{ClientResponse, Remote};
use crate::failure::Failure;
use crate::output::harmless;

/// The version of the protocol that the commands announce.
const VERSION: &str = "2.17";
const VERSION_HEADER: &str = "X-Broker-API-Version";

/// Between two questions, when the server does not say how long to wait.
const POLL_DEFAULT: Duration = Duration::from_millis(500);
/// However long the server would like us to wait: somebody is looking at the screen.
const POLL_MAX: Duration = Duration::from_secs(2);

/// The front of one namespace, or of the whole server.
#[derive(Debug)]
pub(crate) struct Osb<'a> {
    remote: &'a Remote,
    base: String,
    namespace: Option<String>,
}

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It is done; the body says more.
    Done(Value),
    /// It goes on under this id.
    Accepted(Option<String>),
}

/// How far an operation has come.
#[derive(Debug, PartialEq)]
pub(crate) struct Progress {
    /// `in progress`, `succeeded` or `failed`.
    pub(crate) state: String,
    pub(crate) description: String,
    pub(crate) pause: Duration,
}

/// One plan of one offering.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) service_id: String,
    pub(crate) plan_id: String,
}

/// What an instance should be changed to. What is absent stays.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// What it is an instance of.
    pub(crate) before: Choice,
    pub(crate) plan: Option<String>,
    pub(crate) parameters: Option<Value>,
    pub(crate) version: Option<String>,
}

impl<'a> Osb<'a> {
    /// The front that offers what the mappings of a namespace enable.
    pub(crate) fn of_namespace(remote: &'a Remote, namespace: &str) -> Self {
        Self {
            remote,
            base: format!("/heddle/v1/osb/{namespace}/v2"),
            namespace: Some(namespace.to_owned()),
        }
    }

    /// The front that an existing instance was asked for at, which is the only one that knows it.
    pub(crate) fn of_instance(remote: &'a Remote, instance: &Value, namespace: &str) -> Self {
        let front = &instance["metadata"]["annotations"][OSB_FRONT_ANNOTATION];
        let mut osb = Self::of_namespace(remote, namespace);
        if front.as_str() == Some("/v2") {
            osb.base = "/v2".to_owned();
        }
        osb
    }

    /// The front that offers everything.
    pub(crate) fn of_server(remote: &'a Remote) -> Self {
        Self {
            remote,
            base: "/v2".to_owned(),
            namespace: None,
        }
    }

    /// The offerings, in the catalog's order.
    pub(crate) async fn catalog(&self) -> anyhow::Result<Vec<Value>> {
        let answer = self.send(self.request("GET", "/catalog", None)?).await?;
        let mut catalog = done(&answer, "catalog")?;
        let services = catalog["services"].as_array_mut().map(std::mem::take);
        services.context("catalog: the answer has no services")
    }

    /// Asks for an instance.
    pub(crate) async fn provision(
        &self,
        id: &str,
        choice: &Choice,
        parameters: &Value,
    ) -> anyhow::Result<Reply> {
        let mut body = self.body(choice, parameters);
        // The protocol demands both and means Cloud Foundry's; here a namespace is all the tenant there is.
        body["organization_guid"] = json!("heddle");
        body["space_guid"] = json!(self.namespace.as_deref().unwrap_or("default"));
        let path = format!("{}?accepts_incomplete=true", instance(id));
        let request = self.request("PUT", &path, Some(&body))?;
        reply(&self.send(request).await?, &format!("instance {id}"))
    }

    /// Asks for a change of an instance.
    pub(crate) async fn update(&self, id: &str, change: &Change) -> anyhow::Result<Reply> {
        let mut body = json!({
            "service_id": change.before.service_id,
            "previous_values": {"service_id": change.before.service_id, "plan_id": change.before.plan_id},
        });
        if let Some(namespace) = &self.namespace {
            body["context"] = json!({"platform": "heddle", "namespace": namespace});
        }
        if let Some(plan) = &change.plan {
            body["plan_id"] = json!(plan);
        }
        if let Some(parameters) = &change.parameters {
            body["parameters"] = parameters.clone();
        }
        if let Some(version) = &change.version {
            body["maintenance_info"] = json!({"version": version});
        }
        let path = format!("{}?accepts_incomplete=true", instance(id));
        let request = self.request("PATCH", &path, Some(&body))?;
        reply(&self.send(request).await?, &format!("instance {id}"))
    }

    /// Asks for an instance's end.
    pub(crate) async fn deprovision(&self, id: &str, choice: &Choice) -> anyhow::Result<Reply> {
        let path = format!("{}?accepts_incomplete=true&{}", instance(id), query(choice));
        let request = self.request("DELETE", &path, None)?;
        reply(&self.send(request).await?, &format!("instance {id}"))
    }

    /// Asks for credentials.
    pub(crate) async fn bind(
        &self,
        id: &str,
        binding: &str,
        choice: &Choice,
        parameters: &Value,
    ) -> anyhow::Result<Reply> {
        let body = self.body(choice, parameters);
        let path = format!("{}?accepts_incomplete=true", bound(id, binding));
        let request = self.request("PUT", &path, Some(&body))?;
        reply(&self.send(request).await?, &format!("binding {binding}"))
    }

    /// Takes credentials back.
    pub(crate) async fn unbind(
        &self,
        id: &str,
        binding: &str,
        choice: &Choice,
    ) -> anyhow::Result<Reply> {
        let path = format!(
            "{}?accepts_incomplete=true&{}",
            bound(id, binding),
            query(choice)
        );
        let request = self.request("DELETE", &path, None)?;
        reply(&self.send(request).await?, &format!("binding {binding}"))
    }

    /// The credentials and whatever else a binding consists of.
    pub(crate) async fn binding(&self, id: &str, binding: &str) -> anyhow::Result<Value> {
        let request = self.request("GET", &bound(id, binding), None)?;
        done(&self.send(request).await?, &format!("binding {binding}"))
    }

    /// How far an operation on an instance, or on one of its bindings, has come.
    pub(crate) async fn progress(
        &self,
        id: &str,
        binding: Option<&str>,
        operation: Option<&str>,
    ) -> anyhow::Result<Progress> {
        let (mut path, object) = match binding {
            Some(binding) => (bound(id, binding), format!("binding {binding}")),
            None => (instance(id), format!("instance {id}")),
        };
        path.push_str("/last_operation");
        if let Some(operation) = operation {
            path.push_str(&format!("?operation={}", percent_encoded(operation)));
        }
        let answer = self.send(self.request("GET", &path, None)?).await?;
        if answer.code == StatusCode::GONE {
            return Ok(Progress {
                state: "succeeded".to_owned(),
                description: "it is gone".to_owned(),
                pause: Duration::ZERO,
            });
        }
        let body = done(&answer, &object)?;
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        let asked = answer
            .header("retry-after")
            .and_then(|value| value.parse().ok());
        Ok(Progress {
            state: text("state"),
            description: harmless(&text("description")),
            pause: asked
                .map_or(POLL_DEFAULT, Duration::from_secs)
                .min(POLL_MAX),
        })
    }

    fn body(&self, choice: &Choice, parameters: &Value) -> Value {
        let mut body = json!({"service_id": choice.service_id, "plan_id": choice.plan_id});
        if let Some(namespace) = &self.namespace {
            body["context"] = json!({"platform": "heddle", "namespace": namespace});
        }
        if parameters.as_object().is_some_and(|map| !map.is_empty()) {
            body["parameters"] = parameters.clone();
        }
        body
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Request<Vec<u8>>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(VERSION_HEADER, VERSION);
        Ok(match body {
            Some(body) => request
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(serde_json::to_vec(body)?)?,
            None => request.body(Vec::new())?,
        })
    }

    async fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<ClientResponse> {
        self.remote.send(request).await
    }
}

fn instance(id: &str) -> String {
    format!("/service_instances/{}", percent_encoded(id))
}

fn bound(id: &str, binding: &str) -> String {
    format!(
        "{}/service_bindings/{}",
        instance(id),
        percent_encoded(binding)
    )
}

fn query(choice: &Choice) -> String {
    format!(
        "service_id={}&plan_id={}",
        percent_encoded(&choice.service_id),
        percent_encoded(&choice.plan_id)
    )
}

fn reply(answer: &ClientResponse, object: &str) -> anyhow::Result<Reply> {
    let body = done(answer, object)?;
    Ok(match answer.code {
        StatusCode::ACCEPTED => Reply::Accepted(body["operation"].as_str().map(str::to_owned)),
        _ => Reply::Done(body),
    })
}

fn done(answer: &ClientResponse, object: &str) -> anyhow::Result<Value> {
    let body = serde_json::from_slice::<Value>(&answer.body);
    if answer.code.is_success() {
        return body.with_context(|| format!("{object}: the answer is not JSON"));
    }
    let body = body.unwrap_or_default();
    // Whatever stands in front of the broker refuses in its own words.
    let Some(description) = body["description"].as_str() else {
        return Err(answer.refusal(object).into());
    };
    let mut text = format!("{object}: {}", harmless(description));
    if let Some(word) = body["error"].as_str() {
        text.push_str(&format!(" ({})", harmless(word)));
    }
    Err(match answer.code {
        StatusCode::NOT_FOUND | StatusCode::GONE => Failure::NotFound(text),
        StatusCode::CONFLICT => Failure::Conflict(text),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Refused(text),
        _ => Failure::Rejected(text),
    }
    .into())
}

/// The version that a plan has in the catalog.
pub(crate) fn version_of(services: &[Value], plan_id: &str) -> Option<String> {
    let plans = services
        .iter()
        .flat_map(|service| service["plans"].as_array());
    let plan = plans.flatten().find(|plan| plan["id"] == plan_id)?;
    let version = plan["maintenance_info"]["version"].as_str();
    version.map(str::to_owned)
}

/// The plan that a person means by `OFFERING` or `OFFERING/PLAN`: names or ids.
pub(crate) fn choose(services: &[Value], words: &str) -> Result<Choice, Failure> {
    let (offering, plan) = match words.split_once('/') {
        Some((offering, plan)) => (offering, Some(plan)),
        None => (words, None),
    };
    let called = |value: &Value, word: &str| value["name"] == word || value["id"] == word;
    let names = |values: &[Value]| {
        let names = values.iter().filter_map(|value| value["name"].as_str());
        names.map(harmless).collect::<Vec<_>>().join(", ")
    };
    let Some(service) = services.iter().find(|service| called(service, offering)) else {
        let offered = match names(services) {
            none if none.is_empty() => {
                "nothing is: an ApplicationMapping enables an Application's services".to_owned()
            }
            names => names,
        };
        let text = format!("`{offering}` is not offered here; offered: {offered}");
        return Err(Failure::NotFound(text));
    };
    let plans = service["plans"].as_array().map_or(&[][..], Vec::as_slice);
    let plan = match (plan, plans) {
        (None, [only]) => only,
        (None, _) => {
            let text = format!(
                "`{offering}` has several plans: {}; write {offering}/PLAN",
                names(plans)
            );
            return Err(Failure::Usage(text));
        }
        (Some(word), _) => match plans.iter().find(|plan| called(plan, word)) {
            Some(plan) => plan,
            None => {
                let text = format!("`{offering}` has no plan `{word}`; it has {}", names(plans));
                return Err(Failure::NotFound(text));
            }
        },
    };
    let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
    Ok(Choice {
        service_id: id(service),
        plan_id: id(plan),
    })
}

#[cfg(test)]
mod tests;
