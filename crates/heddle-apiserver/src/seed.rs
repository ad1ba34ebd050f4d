//! What every client expects to find: the definitions of the served kinds, and the system namespaces.
//!
//! Seeding is idempotent: an object that is already as it should be is not written again.

use heddle_store::{Expect, Op, Write};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::Inner;
use crate::apply::Manager;
use crate::object::{self, meta_mut};
use crate::registry::BuiltIn;
use crate::request::FieldValidation;
use crate::status::{Result, StatusError};
use crate::strategy::{self, Context, Ownership};
use crate::write::refuse;

/// One commit for everything that is missing or out of date, so that a first start costs one sync.
pub(crate) async fn seed(inner: &Inner, names: &[&str]) -> Result<()> {
    let mut batch = definitions(inner)?;
    for name in names {
        batch.extend(namespace(inner, name)?);
    }
    if batch.is_empty() {
        return Ok(());
    }
    inner.store.commit(batch).await.map(drop).map_err(refuse)
}

fn namespace(inner: &Inner, name: &str) -> Result<Option<Write>> {
    let resource = inner.registry.builtin(BuiltIn::Namespace);
    let key = object::key(resource, None, name);
    if inner.store.get(&key).is_some() {
        return Ok(None);
    }
    let ctx = Context {
        resource,
        now: inner.clock.now(),
        chance: &inner.chance,
        manager: Manager {
            name: "heddle".to_owned(),
            api_version: resource.api_version(),
            subresource: None,
        },
        validation: FieldValidation::Strict,
    };
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let object = strategy::create(&ctx, object, Ownership::Track)?;
    Ok(Some(Write {
        key,
        expect: Expect::Absent,
        op: Op::Put(object::draft(&object)),
    }))
}

fn definitions(inner: &Inner) -> Result<Vec<Write>> {
    let resource = inner.registry.builtin(BuiltIn::CustomResourceDefinition);
    let mut batch = Vec::new();
    for crd in inner.registry.crds() {
        let wanted = established(inner, crd)?;
        let key = object::key(resource, None, object::name(&wanted));
        let Some(live) = inner.store.get(&key) else {
            batch.push(Write {
                key,
                expect: Expect::Absent,
                op: Op::Put(object::draft(&wanted)),
            });
            continue;
        };
        let mut next = object::parse(&live);
        if next["spec"] == wanted["spec"] {
            continue;
        }
        next["spec"] = wanted["spec"].clone();
        next["status"] = wanted["status"].clone();
        let generation = next["metadata"]["generation"].as_i64().unwrap_or(1);
        meta_mut(&mut next).insert("generation".to_owned(), json!(generation + 1));
        batch.push(Write {
            key,
            expect: Expect::Version(live.version),
            op: Op::Put(object::draft(&next)),
        });
    }
    Ok(batch)
}

fn established(inner: &Inner, crd: &CustomResourceDefinition) -> Result<Value> {
    let mut object =
        serde_json::to_value(crd).map_err(|error| StatusError::internal(error.to_string()))?;
    object["apiVersion"] = json!("apiextensions.k8s.io/v1");
    object["kind"] = json!("CustomResourceDefinition");
    let names = &mut object["spec"]["names"];
    if names["listKind"].is_null() {
        names["listKind"] = json!(format!("{}List", crd.spec.names.kind));
    }
    let now = strategy::seconds(inner.clock.now());
    let meta = meta_mut(&mut object);
    meta.insert("uid".to_owned(), json!(inner.chance.uuid()));
    meta.insert("creationTimestamp".to_owned(), json!(now));
    meta.insert("generation".to_owned(), json!(1));
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    object["status"] = json!({
        "acceptedNames": object["spec"]["names"],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": crd.spec.versions.iter().filter(|v| v.storage).map(|v| &v.name).collect::<Vec<_>>(),
    });
    Ok(object)
}
