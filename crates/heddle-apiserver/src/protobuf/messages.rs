//! The messages that can be decoded: field numbers, JSON names and kinds, from the API's published definitions.

use Kind::{
    Boolean, BytesMap, FieldsV1, Integer, Message, Messages, MicroTime, OptionalBoolean,
    OptionalInteger, OptionalMessage, OptionalText, Text, TextMap, Texts, Time,
};

pub(super) struct Field {
    pub(super) number: u64,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Text,
    OptionalText,
    Integer,
    OptionalInteger,
    Boolean,
    OptionalBoolean,
    Time,
    MicroTime,
    FieldsV1,
    Message(&'static [Field]),
    OptionalMessage(&'static [Field]),
    Texts,
    Messages(&'static [Field]),
    TextMap,
    BytesMap,
}

/// The message of a kind, if it can be decoded.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    match (api_version, kind) {
        ("v1", "Namespace") => Some(NAMESPACE),
        ("v1", "ConfigMap") => Some(CONFIG_MAP),
        ("v1", "Secret") => Some(SECRET),
        ("v1", "Event") => Some(EVENT),
        ("coordination.k8s.io/v1", "Lease") => Some(LEASE),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => Some(ACCESS_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => Some(RULES_REVIEW),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(SUBJECT_REVIEW),
        // Clients name it in the group of whatever they delete.
        (_, "DeleteOptions") => Some(DELETE_OPTIONS),
        _ => None,
    }
}

const fn field(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

pub(super) const TYPE_META: &[Field] = &[field(1, "apiVersion", Text), field(2, "kind", Text)];

const OBJECT_META: &[Field] = &[
    field(1, "name", Text),
    field(2, "generateName", Text),
    field(3, "namespace", Text),
    field(4, "selfLink", Text),
    field(5, "uid", Text),
    field(6, "resourceVersion", Text),
    field(7, "generation", Integer),
    field(8, "creationTimestamp", Time),
    field(9, "deletionTimestamp", Time),
    field(10, "deletionGracePeriodSeconds", OptionalInteger),
    field(11, "labels", TextMap),
    field(12, "annotations", TextMap),
    field(13, "ownerReferences", Messages(OWNER_REFERENCE)),
    field(14, "finalizers", Texts),
    field(17, "managedFields", Messages(MANAGED_FIELDS)),
];

const OWNER_REFERENCE: &[Field] = &[
    field(1, "kind", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "controller", OptionalBoolean),
    field(7, "blockOwnerDeletion", OptionalBoolean),
];

const MANAGED_FIELDS: &[Field] = &[
    field(1, "manager", Text),
    field(2, "operation", Text),
    field(3, "apiVersion", Text),
    field(4, "time", Time),
    field(6, "fieldsType", Text),
    field(7, "fieldsV1", FieldsV1),
    field(8, "subresource", Text),
];

const NAMESPACE: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "spec", Message(&[field(1, "finalizers", Texts)])),
    field(
        3,
        "status",
        Message(&[
            field(1, "phase", Text),
            field(2, "conditions", Messages(CONDITION)),
        ]),
    ),
];

const CONDITION: &[Field] = &[
    field(1, "type", Text),
    field(2, "status", Text),
    field(4, "lastTransitionTime", Time),
    field(5, "reason", Text),
    field(6, "message", Text),
];

const CONFIG_MAP: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "data", TextMap),
    field(3, "binaryData", BytesMap),
    field(4, "immutable", OptionalBoolean),
];

const SECRET: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "data", BytesMap),
    field(3, "type", Text),
    field(4, "stringData", TextMap),
    field(5, "immutable", OptionalBoolean),
];

const OBJECT_REFERENCE: &[Field] = &[
    field(1, "kind", Text),
    field(2, "namespace", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "resourceVersion", Text),
    field(7, "fieldPath", Text),
];

const EVENT: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "involvedObject", Message(OBJECT_REFERENCE)),
    field(3, "reason", Text),
    field(4, "message", Text),
    field(
        5,
        "source",
        Message(&[field(1, "component", Text), field(2, "host", Text)]),
    ),
    field(6, "firstTimestamp", Time),
    field(7, "lastTimestamp", Time),
    field(8, "count", Integer),
    field(9, "type", Text),
    field(10, "eventTime", MicroTime),
    field(
        11,
        "series",
        OptionalMessage(&[
            field(1, "count", Integer),
            field(2, "lastObservedTime", MicroTime),
        ]),
    ),
    field(12, "action", Text),
    field(13, "related", OptionalMessage(OBJECT_REFERENCE)),
    field(14, "reportingComponent", Text),
    field(15, "reportingInstance", Text),
];

const LEASE: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "spec", Message(LEASE_SPEC)),
];

const LEASE_SPEC: &[Field] = &[
    field(1, "holderIdentity", OptionalText),
    field(2, "leaseDurationSeconds", OptionalInteger),
    field(3, "acquireTime", MicroTime),
    field(4, "renewTime", MicroTime),
    field(5, "leaseTransitions", OptionalInteger),
    field(6, "strategy", OptionalText),
    field(7, "preferredHolder", OptionalText),
];

const DELETE_OPTIONS: &[Field] = &[
    field(1, "gracePeriodSeconds", OptionalInteger),
    field(
        2,
        "preconditions",
        OptionalMessage(&[
            field(1, "uid", OptionalText),
            field(2, "resourceVersion", OptionalText),
        ]),
    ),
    field(3, "orphanDependents", OptionalBoolean),
    field(4, "propagationPolicy", OptionalText),
    field(5, "dryRun", Texts),
    field(
        6,
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        OptionalBoolean,
    ),
];

const ACCESS_REVIEW: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "spec", Message(ACCESS_REVIEW_SPEC)),
    field(3, "status", Message(ACCESS_REVIEW_STATUS)),
];

const RULES_REVIEW: &[Field] = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "spec", Message(&[field(1, "namespace", Text)])),
];

/// What is asked is in the request itself.
const SUBJECT_REVIEW: &[Field] = &[field(1, "metadata", Message(OBJECT_META))];

const ACCESS_REVIEW_SPEC: &[Field] = &[
    field(
        1,
        "resourceAttributes",
        OptionalMessage(RESOURCE_ATTRIBUTES),
    ),
    field(
        2,
        "nonResourceAttributes",
        OptionalMessage(&[field(1, "path", Text), field(2, "verb", Text)]),
    ),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    field(1, "namespace", Text),
    field(2, "verb", Text),
    field(3, "group", Text),
    field(4, "version", Text),
    field(5, "resource", Text),
    field(6, "subresource", Text),
    field(7, "name", Text),
    field(8, "fieldSelector", OptionalMessage(SELECTOR)),
    field(9, "labelSelector", OptionalMessage(SELECTOR)),
];

const SELECTOR: &[Field] = &[
    field(1, "rawSelector", Text),
    field(2, "requirements", Messages(REQUIREMENT)),
];

const REQUIREMENT: &[Field] = &[
    field(1, "key", Text),
    field(2, "operator", Text),
    field(3, "values", Texts),
];

const ACCESS_REVIEW_STATUS: &[Field] = &[
    field(1, "allowed", Boolean),
    field(2, "reason", Text),
    field(3, "evaluationError", Text),
    field(4, "denied", Boolean),
];
