//! An event by hand: `POST /heddle/v1/publish`.
//!
//! It goes through the door of publishers as any other: as the Application that is named, held to what policies allow that,
//! or into a broker. Who sent it stands in the event, for everybody who gets it. An Application's events go wherever its
//! policies lead them, so they take an operator of all namespaces; a broker's take one of its own.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use heddle_api::access::{Access, Right, namespace_of};
use heddle_api::audit::ChangeNote;
use heddle_api::test_event::{SENT_BY, TestEventAccepted, TestEventRequest};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::{AskedBy, check, json as json_answer, noted, read, refuse};
use crate::ledger::Error;
use crate::mesh::Mesh;
use crate::who::Who;

/// What tells the ids of such events apart.
const ID_CHARS: usize = 12;

pub(super) async fn publish(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    body: Bytes,
) -> Response {
    let request = match read::<TestEventRequest>(&body) {
        Ok(request) => request,
        Err(error) => return refuse(&error),
    };
    let door = match HandDoor::of(&request.to) {
        Ok(door) => door,
        Err(error) => return refuse(&error),
    };
    let note = door.note();
    noted(take_in(&mesh, access, door, request).await, note)
}

async fn take_in(
    mesh: &Mesh,
    access: Access,
    door: HandDoor,
    request: TestEventRequest,
) -> Response {
    if let Err(error) = check(&access, Right::Operate, door.namespace.as_deref()) {
        return refuse(&error);
    }
    let accepted = TestEventAccepted {
        id: request.id.clone().unwrap_or_else(|| {
            let suffix = mesh.shared.chance.suffix(ID_CHARS);
            format!("test-{suffix}")
        }),
        source: request.source.clone().unwrap_or(door.source),
        sent_by: access.user,
    };
    let event = event(request, &accepted);
    let publish = Request::post(door.path)
        .header(
            header::CONTENT_TYPE,
            "application/cloudevents+json; charset=utf-8",
        )
        .body(Full::new(Bytes::from(event)));
    let publish = match publish {
        Ok(publish) => publish,
        Err(error) => return refuse(&Error::Invalid(error.to_string())),
    };
    let response = mesh.source().handle(&door.who, publish).await;
    if !response.status().is_success() {
        return response.into_response();
    }
    let TestEventAccepted { id, sent_by, .. } = &accepted;
    tracing::info!(target: "heddle::audit", user = sent_by, id, "published an event by hand");
    json_answer(StatusCode::OK, &accepted)
}

/// Where it comes in.
struct HandDoor {
    path: String,
    who: Who,
    /// Whose rights it takes; `None` are those in all namespaces.
    namespace: Option<String>,
    source: String,
    /// The kind and the name of what is published to.
    object: (&'static str, String),
}

impl HandDoor {
    fn of(to: &str) -> Result<Self, Error> {
        let is_plain = |name: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !name.is_empty() && name.bytes().all(plain)
        };
        if let Some(name) = to
            .strip_prefix("application/")
            .filter(|name| is_plain(name))
        {
            // The short paths of these two are the old API's.
            let path = match name {
                "v1" | "v2" => format!("/channel/{INTEGRATION_NAMESPACE}/{name}"),
                _ => format!("/{name}/events"),
            };
            return Ok(Self {
                path,
                who: Who::Application(name.into()),
                namespace: None,
                source: name.to_owned(),
                object: ("application", name.to_owned()),
            });
        }
        let namespace = namespace_of(to).filter(|_| to.starts_with("broker/"));
        match namespace {
            Some(namespace) if to.split('/').all(is_plain) => Ok(Self {
                path: format!("/{to}"),
                who: Who::Administrator,
                namespace: Some(namespace.to_owned()),
                source: "/heddle/test".to_owned(),
                object: ("broker", to.rsplit('/').next().unwrap_or(to).to_owned()),
            }),
            _ => Err(Error::Invalid(format!(
                "to is {to:?}, wanted is application/NAME or broker/NAMESPACE/NAME"
            ))),
        }
    }

    /// What the log of changes is told.
    fn note(&self) -> ChangeNote {
        let (kind, name) = &self.object;
        ChangeNote {
            kind: Some((*kind).into()),
            namespace: self.namespace.clone(),
            name: Some(name.clone()),
            ..ChangeNote::default()
        }
    }
}

/// The event in the JSON format. Its data is put there as it came: to read it would round its numbers.
fn event(request: TestEventRequest, accepted: &TestEventAccepted) -> String {
    let mut event = request.extensions;
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            event.insert(name.to_owned(), value);
        }
    };
    put("specversion", Some(json!("1.0")));
    put("type", Some(json!(request.type_)));
    put("source", Some(json!(accepted.source)));
    put("id", Some(json!(accepted.id)));
    put("subject", request.subject.map(Value::String));
    put(
        "datacontenttype",
        request.datacontenttype.map(Value::String),
    );
    // Last, so that nobody can sign for somebody else.
    put(SENT_BY, Some(json!(accepted.sent_by)));
    let Some(data) = request.data else {
        return Value::Object(event).to_string();
    };
    event.remove("data");
    let mut text = Value::Object(event).to_string();
    text.truncate(text.len() - "}".len());
    text.push_str(&format!(",\"data\":{}}}", data.text()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_out_as_it_came_and_nobody_signs_for_somebody_else() {
        let data = r#"{"a":9007199254740993,"b":10.10,"c":123456789012345678901234567890}"#;
        let text = format!(
            r#"{{"to":"broker/a/b","type":"t","data":{data},"extensions":{{"data":1,"{SENT_BY}":"bob","tier":"gold"}}}}"#
        );
        let request = read::<TestEventRequest>(text.as_bytes()).unwrap();
        let accepted = TestEventAccepted {
            id: "1".to_owned(),
            source: "/s".to_owned(),
            sent_by: "ada".to_owned(),
        };
        let text = event(request, &accepted);
        assert!(text.ends_with(&format!(",\"data\":{data}}}")), "{text}");
        assert_eq!(text.matches("\"data\":").count(), 1, "{text}");
        assert!(
            text.contains("\"tier\":\"gold\"") && !text.contains("bob"),
            "{text}"
        );
    }
}
