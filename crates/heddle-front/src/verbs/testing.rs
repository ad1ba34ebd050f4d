//! What the tests of decisions share: a small catalog, and instances and bindings in every state.

use std::sync::Arc;

use heddle_api::conditions::{Condition, Status};
use heddle_api::operation::{
    MaintenanceInfo, OperationKind, OperationProgress, OperationRequest, OperationState,
};
use heddle_api::service_binding::{
    InstanceReference, ServiceBinding, ServiceBindingSpec, ServiceBindingStatus,
};
use heddle_api::service_instance::{
    Applied, ServiceInstance, ServiceInstanceSpec, ServiceInstanceStatus,
};
use heddle_api::{Conditions, names};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

use super::{Decision, Fresh};
use crate::catalog::{Backing, Catalog, Coding, Document, Offering, Pace, Plan, Schemas};
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned};
use crate::offers::{CatalogView, Offers};
use crate::parameters::Validators;
use crate::version::Version;

pub(crate) const STANDINGS: [Lifecycle; 7] = [
    Lifecycle::Making,
    Lifecycle::MakeFailed,
    Lifecycle::Ready,
    Lifecycle::Changing,
    Lifecycle::ChangeFailed,
    Lifecycle::Removing,
    Lifecycle::RemoveFailed,
];

pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => unreachable!("{other} is not an object"),
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

pub(crate) fn fresh() -> Fresh {
    Fresh {
        tail: "new".to_owned(),
        now: now(),
    }
}

fn plan(id: &str, pace: Pace) -> Plan {
    Plan {
        id: id.to_owned(),
        name: id.to_owned(),
        description: id.to_owned(),
        withdrawn: false,
        free: true,
        bindable: None,
        plan_updateable: None,
        binding_rotatable: false,
        requires_app: false,
        maximum_polling_duration: 1000,
        maintenance_version: None,
        metadata: Map::new(),
        schemas: Schemas::default(),
        instances: pace,
        bindings: pace,
        backing: Backing::Application {
            name: "shop".to_owned(),
            service_id: "orders".to_owned(),
            events: true,
            api: true,
        },
    }
}

/// `svc` has plans of every sort, `fixed` such as cannot be left or bound, `old` is withdrawn.
pub(crate) fn catalog() -> Catalog {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer"}, "token": {"type": "string", "writeOnly": true},
            "nested": {"type": "object", "properties": {"key": {"type": "string", "writeOnly": true}}},
        },
    });
    let patient = Plan {
        maintenance_version: Some("1.0.0".to_owned()),
        binding_rotatable: true,
        schemas: Schemas {
            create: Some(schema),
            update: Some(json!({"properties": {"size": {"type": "integer"}}})),
            bind: Some(json!({"properties": {"role": {"enum": ["reader"]}}})),
        },
        ..plan("patient", Pace::Patient)
    };
    let app = Plan {
        requires_app: true,
        ..plan("app", Pace::Prompt)
    };
    let svc = Offering {
        id: "svc".to_owned(),
        bindable: true,
        plan_updateable: true,
        allow_context_updates: true,
        plans: vec![plan("prompt", Pace::Prompt), patient, app],
        ..Offering::default()
    };
    let fixed = Offering {
        id: "fixed".to_owned(),
        plans: vec![
            plan("fixed-one", Pace::Prompt),
            plan("fixed-two", Pace::Prompt),
        ],
        ..Offering::default()
    };
    let old = Offering {
        id: "old".to_owned(),
        bindable: true,
        plan_updateable: true,
        plans: vec![plan("old-one", Pace::Prompt), plan("old-two", Pace::Prompt)],
        ..Offering::default()
    };
    Catalog {
        offerings: [svc, fixed, old].map(Arc::new).into(),
        ..Catalog::default()
    }
}

/// A catalog that stands still.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) ready: bool,
}

impl Default for Fixed {
    fn default() -> Self {
        Self {
            catalog: Arc::new(catalog()),
            ready: true,
        }
    }
}

impl Offers for Fixed {
    fn is_ready(&self) -> bool {
        self.ready
    }
    fn catalog(&self) -> Arc<Catalog> {
        self.catalog.clone()
    }
    fn is_offered(&self, _: Option<&str>, service_id: &str, _: &str) -> bool {
        service_id != "old"
    }
    fn document(&self, _: Option<&str>, _: Version, coding: Coding) -> Document {
        Document::coded("{\"services\":[]}".to_owned(), coding)
    }
}

/// Lets `decide` look at a catalog.
pub(crate) fn with_catalog<T>(offers: &Fixed, decide: impl FnOnce(&CatalogView<'_>) -> T) -> T {
    decide(&CatalogView::new(offers, None, &Validators::default()))
}

fn operation(kind: OperationKind, hash: &str) -> OperationRequest {
    OperationRequest {
        id: "op".to_owned(),
        kind,
        request_hash: hash.to_owned(),
        accepted_at: Time(now()),
        deadline: None,
    }
}

fn progress(kind: OperationKind, state: OperationState) -> OperationProgress {
    OperationProgress {
        id: "op".to_owned(),
        kind,
        state,
        description: Some("as the test says".to_owned()),
        attempts: None,
        finished_at: None,
        instance_usable: None,
        update_repeatable: None,
    }
}

fn step(
    lifecycle: Lifecycle,
    make: OperationKind,
    remove: OperationKind,
) -> (OperationKind, OperationState) {
    match lifecycle {
        Lifecycle::Making => (make, OperationState::InProgress),
        Lifecycle::MakeFailed => (make, OperationState::Failed),
        Lifecycle::Ready => (make, OperationState::Succeeded),
        Lifecycle::Changing => (OperationKind::Update, OperationState::InProgress),
        Lifecycle::ChangeFailed => (OperationKind::Update, OperationState::Failed),
        Lifecycle::Removing => (remove, OperationState::InProgress),
        Lifecycle::RemoveFailed => (remove, OperationState::Failed),
    }
}

/// An instance of `svc` in that state, made with `{"size": 1}`.
pub(crate) fn instance(plan_id: &str, lifecycle: Lifecycle) -> ServiceInstance {
    instance_of("svc", plan_id, lifecycle)
}

pub(crate) fn instance_of(
    service_id: &str,
    plan_id: &str,
    lifecycle: Lifecycle,
) -> ServiceInstance {
    let (kind, state) = step(
        lifecycle,
        OperationKind::Provision,
        OperationKind::Deprovision,
    );
    let parameters = members(json!({"size": 1}));
    let version = (plan_id == "patient").then(|| MaintenanceInfo {
        version: "1.0.0".to_owned(),
    });
    let spec = ServiceInstanceSpec {
        instance_id: "i".to_owned(),
        service_id: service_id.to_owned(),
        plan_id: plan_id.to_owned(),
        parameters: parameters.clone(),
        organization_guid: Some("org".to_owned()),
        space_guid: Some("space".to_owned()),
        maintenance_info: version.clone(),
        operation: Some(operation(kind, "hash")),
        ..ServiceInstanceSpec::default()
    };
    let in_force = !matches!(lifecycle, Lifecycle::Making | Lifecycle::MakeFailed);
    let status = ServiceInstanceStatus {
        operation: Some(progress(kind, state)),
        applied: in_force.then(|| Applied {
            plan_id: plan_id.to_owned(),
            parameters,
            maintenance_info: version,
            revision_ref: None,
            since: None,
        }),
        ..ServiceInstanceStatus::default()
    };
    let mut instance = ServiceInstance::new(&names::instance("i"), spec);
    instance.status = Some(status);
    instance.metadata.namespace = Some("team-a".to_owned());
    instance.metadata.generation = Some(1);
    assert_eq!(
        Lifecycle::of(&instance),
        lifecycle,
        "the fixture is what it should be"
    );
    instance
}

/// The same, broken by the operation that failed.
pub(crate) fn unusable_instance(plan_id: &str, lifecycle: Lifecycle) -> ServiceInstance {
    let mut broken = instance(plan_id, lifecycle);
    let operation = broken
        .status
        .as_mut()
        .and_then(|status| status.operation.as_mut());
    operation.unwrap().instance_usable = Some(false);
    broken
}

/// A binding `b` of the instance `i` of `svc`, made without parameters. Nothing changes a binding.
pub(crate) fn binding(plan_id: &str, lifecycle: Lifecycle) -> ServiceBinding {
    let (kind, state) = step(lifecycle, OperationKind::Bind, OperationKind::Unbind);
    let spec = ServiceBindingSpec {
        binding_id: "b".to_owned(),
        instance_ref: InstanceReference {
            name: names::instance("i"),
        },
        service_id: "svc".to_owned(),
        plan_id: plan_id.to_owned(),
        operation: Some(operation(kind, "hash")),
        ..ServiceBindingSpec::default()
    };
    let mut binding = ServiceBinding::new(&names::binding("b"), spec);
    binding.status = Some(ServiceBindingStatus {
        operation: Some(progress(kind, state)),
        ..ServiceBindingStatus::default()
    });
    binding.metadata.namespace = Some("team-a".to_owned());
    assert_eq!(
        Lifecycle::of(&binding),
        lifecycle,
        "the fixture is what it should be"
    );
    binding
}

/// Conditions under which an object is ready.
pub(crate) fn ready() -> Conditions {
    let mut conditions = Conditions::default();
    let ready = Condition {
        type_: heddle_api::conditions::READY.to_owned(),
        status: Status::True,
        ..Condition::default()
    };
    conditions.set(ready, now());
    conditions
}

/// Checks what is decided about something that is there or not, by the catalog of [`Fixed`].
pub(crate) fn check_decision<K: Provisioned>(
    live: Option<&K>,
    query: &str,
    expected: &str,
    decide: impl FnOnce(&CatalogView<'_>, &Fresh) -> Result<Decision<K>, OsbError>,
) {
    let decision = with_catalog(&Fixed::default(), |view| decide(view, &fresh()));
    let lifecycle = live.map(Lifecycle::of);
    assert_eq!(told(decision), expected, "{lifecycle:?} {query}");
}

/// A decision in a few words.
pub(crate) fn told<K: Provisioned>(decision: Result<Decision<K>, OsbError>) -> String {
    match decision {
        Ok(Decision::Done(_)) => "done".to_owned(),
        Ok(Decision::Pending(_)) => "pending".to_owned(),
        Ok(Decision::Create(object)) => format!("create {}", object.requested().unwrap().id),
        Ok(Decision::Replace(object)) => match object.requested() {
            Some(asked) if asked.id != "op" => format!("replace {}", asked.id),
            _ => "replace without operation".to_owned(),
        },
        Err(error) => refused(&error),
    }
}

pub(crate) fn refused(error: &OsbError) -> String {
    format!("{} {}", error.status().as_u16(), error.word())
}
