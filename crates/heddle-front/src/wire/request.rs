//! The three bodies that platforms send.
//!
//! `null` counts as absent: there are clients that print every member they know. So does an empty `maintenance_info`. An empty
//! `predecessor_binding_id` does not: taken for absent, a rotation would become a binding like any other.

use serde_json::{Map, Value};

use super::body::Body;
use super::numbers::Exact;
use crate::error::OsbError;

type JsonObject = Map<String, Value>;

/// `PUT` of an instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Provision {
    pub(crate) service_id: String,
    pub(crate) plan_id: String,
    pub(crate) organization_guid: String,
    pub(crate) space_guid: String,
    pub(crate) parameters: JsonObject,
    /// The parameters with numbers as they were written.
    pub(crate) exact: Exact,
    pub(crate) context: JsonObject,
    pub(crate) maintenance_version: Option<String>,
}

impl Provision {
    pub(crate) fn parse(body: &Body) -> Result<Self, OsbError> {
        Ok(Self {
            service_id: body.required("service_id")?,
            plan_id: body.required("plan_id")?,
            organization_guid: body.required("organization_guid")?,
            space_guid: body.required("space_guid")?,
            parameters: body.object("parameters")?.unwrap_or_default(),
            exact: body.exact("parameters"),
            context: body.object("context")?.unwrap_or_default(),
            maintenance_version: body.maintenance_version()?,
        })
    }

    /// The namespace that the platform names, if it is one that has namespaces.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.context
            .get("namespace")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
    }
}

/// `PATCH` of an instance. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Update {
    pub(crate) service_id: String,
    pub(crate) plan_id: Option<String>,
    pub(crate) parameters: Option<JsonObject>,
    /// The parameters with numbers as they were written.
    pub(crate) exact: Exact,
    pub(crate) context: Option<JsonObject>,
    pub(crate) maintenance_version: Option<String>,
}

impl Update {
    /// `previous_values` is a hint that is not needed: what was before is known here better.
    pub(crate) fn parse(body: &Body) -> Result<Self, OsbError> {
        Ok(Self {
            service_id: body.required("service_id")?,
            plan_id: body.optional("plan_id")?,
            parameters: body.object("parameters")?,
            exact: body.exact("parameters"),
            context: body.object("context")?,
            maintenance_version: body.maintenance_version()?,
        })
    }
}

/// `PUT` of a binding.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bind {
    /// Absent only when there is a predecessor to take it from.
    pub(crate) service_id: Option<String>,
    /// The same.
    pub(crate) plan_id: Option<String>,
    pub(crate) parameters: JsonObject,
    /// The parameters with numbers as they were written.
    pub(crate) exact: Exact,
    pub(crate) context: JsonObject,
    pub(crate) bind_resource: JsonObject,
    pub(crate) predecessor: Option<String>,
}

impl Bind {
    pub(crate) fn parse(body: &Body) -> Result<Self, OsbError> {
        let predecessor = body.optional("predecessor_binding_id")?;
        if body.members.get("predecessor_binding_id") == Some(&Value::from("")) {
            let text = "predecessor_binding_id is empty; name a binding, or leave it out";
            return Err(OsbError::Invalid(text.to_owned()));
        }
        let id = |field| match predecessor {
            Some(_) => body.optional(field),
            None => body.required(field).map(Some),
        };
        let mut bind_resource = body.object("bind_resource")?.unwrap_or_default();
        // Where it stood before there was a `bind_resource`.
        if let Some(app) = body.optional("app_guid")? {
            bind_resource
                .entry("app_guid")
                .or_insert(Value::String(app));
        }
        Ok(Self {
            service_id: id("service_id")?,
            plan_id: id("plan_id")?,
            parameters: body.object("parameters")?.unwrap_or_default(),
            exact: body.exact("parameters"),
            context: body.object("context")?.unwrap_or_default(),
            bind_resource,
            predecessor,
        })
    }
}

impl Body {
    /// A text that must be there and hold something.
    fn required(&self, field: &str) -> Result<String, OsbError> {
        let text = self.optional(field)?;
        text.ok_or_else(|| OsbError::Invalid(format!("{field} is missing or empty")))
    }

    /// A text, if there is one that holds something.
    fn optional(&self, field: &str) -> Result<Option<String>, OsbError> {
        optional(&self.members, field)
    }

    fn object(&self, field: &str) -> Result<Option<JsonObject>, OsbError> {
        match self.members.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members.clone())),
            Some(_) => Err(OsbError::Invalid(format!("{field} is not an object"))),
        }
    }

    fn maintenance_version(&self) -> Result<Option<String>, OsbError> {
        let Some(info) = self.object("maintenance_info")? else {
            return Ok(None);
        };
        optional(&info, "version")
            .map_err(|_| OsbError::Invalid("maintenance_info.version is not a string".to_owned()))
    }
}

fn optional(members: &JsonObject, field: &str) -> Result<Option<String>, OsbError> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok((!text.is_empty()).then(|| text.clone())),
        Some(_) => Err(OsbError::Invalid(format!("{field} is not a string"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn members(value: Value) -> Body {
        match value {
            Value::Object(members) => Body::from(members),
            _ => unreachable!("the test gives objects"),
        }
    }

    #[test]
    fn required_texts_are_missed_in_every_way_they_can_be_missing() {
        let whole =
            json!({"service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "x"});
        assert!(Provision::parse(&members(whole.clone())).is_ok());
        for field in ["service_id", "plan_id", "organization_guid", "space_guid"] {
            for bad in [
                None,
                Some(json!(null)),
                Some(json!("")),
                Some(json!(1)),
                Some(json!({})),
            ] {
                let mut body = members(whole.clone());
                body.members.remove(field);
                body.members
                    .extend(bad.clone().map(|bad| (field.to_owned(), bad)));
                let error = Provision::parse(&body).unwrap_err();
                assert_eq!(error.status(), 400);
                assert!(error.to_string().contains(field), "{error}");
            }
        }
    }

    #[test]
    fn what_clients_send_without_meaning_it_means_nothing() {
        let body = members(json!({
            "service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "x", "maintenance_info": {},
            "previous_values": {}, "parameters": null, "context": null, "x-foo": {"y": []},
        }));
        let parsed = Provision::parse(&body).unwrap();
        assert_eq!(
            (parsed.maintenance_version, parsed.parameters.len()),
            (None, 0)
        );
        for (field, bad) in [
            ("parameters", json!([])),
            ("context", json!("x")),
            ("maintenance_info", json!({"version": 1})),
        ] {
            let mut body = body.clone();
            body.members.insert(field.to_owned(), bad);
            assert_eq!(
                Provision::parse(&body).unwrap_err().status(),
                400,
                "{field}"
            );
        }
    }

    #[test]
    fn a_rotation_may_leave_to_its_predecessor_what_it_does_not_say() {
        let rotation = Bind::parse(&members(json!({"predecessor_binding_id": "b"}))).unwrap();
        assert_eq!((rotation.service_id, rotation.plan_id), (None, None));
        assert_eq!(
            Bind::parse(&members(json!({"service_id": "s"})))
                .unwrap_err()
                .status(),
            400
        );
        for (predecessor, is_taken) in [(json!(null), true), (json!(""), false), (json!(1), false)]
        {
            let whole =
                json!({"service_id": "s", "plan_id": "p", "predecessor_binding_id": predecessor});
            assert_eq!(
                Bind::parse(&members(whole)).is_ok(),
                is_taken,
                "{predecessor}"
            );
        }
        let old = Bind::parse(&members(
            json!({"service_id": "s", "plan_id": "p", "app_guid": "a"}),
        ))
        .unwrap();
        assert_eq!(old.bind_resource["app_guid"], json!("a"));
    }
}
