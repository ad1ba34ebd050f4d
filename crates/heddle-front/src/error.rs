//! The one place where a refusal becomes a status, a word and a sentence.
//!
//! Platforms branch on status and word, and some of them badly: a 400 is final, a 5xx to a PUT is followed by a DELETE, and
//! only `ConcurrencyError` is simply tried again. So whatever time alone will heal is refused with that word, and 5xx is kept
//! for when something was or may have been written and is not finished: no 4xx is ever answered while work that the request
//! started goes on. People read the sentence: it names the thing and the remedy, and
//! never a parameter's value or a credential.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::version::Version;
use crate::wire::response::OsbResponse;

/// After how many seconds a refusal that time heals is worth another try.
const RETRY_SECONDS: u32 = 2;
/// The same for what waits for a registry to be read.
const REGISTRY_SECONDS: u32 = 5;

/// Why a request is not carried out, by what the platform can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OsbError {
    #[error("send the user name and password of a platform, as basic authentication")]
    Unauthorized,
    #[error(
        "the header X-Broker-API-Version is missing; send 2.17, or the version that the platform speaks"
    )]
    VersionMissing { strict: bool },
    #[error(
        "the header X-Broker-API-Version names no version that is spoken here; use 2.13 up to 2.17"
    )]
    VersionUnsupported,
    #[error("nothing is served at this path; see the Open Service Broker API, version 2.17")]
    NoSuchPath,
    #[error("this path allows only {allow}")]
    MethodNotAllowed { allow: &'static str },
    #[error("the body is longer than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body arrived too slowly; send it again, at once")]
    TooSlow,
    /// The request is wrong, whatever the state of things.
    #[error("{0}")]
    Invalid(String),
    /// The catalog does not have it, or has it no longer.
    #[error("{0}")]
    NotOffered(String),
    /// The platform's catalog is not ours: what it names is withdrawn, or was never there.
    #[error("{text}")]
    OutOfSync { lapse: Lapse, text: String },
    /// Too many wait for the same thing already.
    #[error("{0}; try again later")]
    Crowded(String),
    /// It cannot be told yet.
    #[error("{0}; try again later")]
    NotYet(String),
    #[error("{what} does not exist")]
    NotFound { what: String },
    #[error("{what} is gone")]
    Gone { what: String },
    #[error(
        "{what} exists already with another {attribute}; ask with the attributes it has, or use another id"
    )]
    Conflict {
        what: String,
        attribute: &'static str,
    },
    #[error("{what} takes longer than a request; repeat it with accepts_incomplete=true")]
    AsyncRequired { what: String },
    /// Something else is under way, or was in between; a later try finds it done.
    #[error("{0}; try again later")]
    Busy(String),
    #[error("plan {plan} binds to applications only; name one in bind_resource.app_guid")]
    RequiresApp { plan: String },
    #[error(
        "plan {plan} has {has}, not the maintenance version that was asked for; fetch the catalog again"
    )]
    MaintenanceConflict { plan: String, has: String },
    #[error("instance {instance} cannot change from plan {from} to plan {to}: {why}")]
    PlanChange {
        instance: String,
        from: String,
        to: String,
        why: String,
    },
    #[error(
        "namespace {namespace} does not exist; create it, or name another in context.namespace"
    )]
    NamespaceMissing { namespace: String },
    #[error("namespace {namespace} is being removed; name another in context.namespace")]
    NamespaceEnding { namespace: String },
    /// What was asked for was tried, while the platform waited, and failed for good.
    #[error("{description}")]
    Failed {
        description: String,
        instance_usable: Option<bool>,
        update_repeatable: Option<bool>,
    },
    /// It was written and how it ends is not known yet. A 4xx would say that nothing was done, and the platform would leave
    /// behind what is being made.
    #[error("{0}; repeat the request to hear how it ends, or remove what was asked for")]
    Unsettled(String),
    /// It is not known whether anything was written.
    #[error("the broker cannot reach its own records now; try again later")]
    Unavailable,
}

/// In which way a platform's catalog is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lapse {
    ServiceWithdrawn,
    PlanWithdrawn,
    ServiceUnknown,
    PlanUnknown,
}

impl OsbError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::VersionMissing { strict: false }
            | Self::Invalid(_)
            | Self::NotOffered(_)
            | Self::OutOfSync { .. } => StatusCode::BAD_REQUEST,
            Self::Crowded(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::VersionMissing { strict: true } | Self::VersionUnsupported => {
                StatusCode::PRECONDITION_FAILED
            }
            Self::NoSuchPath | Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Gone { .. } => StatusCode::GONE,
            Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::AsyncRequired { .. }
            | Self::Busy(_)
            | Self::RequiresApp { .. }
            | Self::MaintenanceConflict { .. }
            | Self::PlanChange { .. }
            | Self::NamespaceMissing { .. }
            | Self::NamespaceEnding { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unsettled(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Unavailable | Self::NotYet(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The `error` of the body: four words are the specification's, the others are ours.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::VersionMissing { .. } => "VersionMissing",
            Self::VersionUnsupported => "VersionUnsupported",
            Self::NoSuchPath => "NoSuchPath",
            Self::MethodNotAllowed { .. } => "MethodNotAllowed",
            Self::TooLarge { .. } => "TooLarge",
            Self::TooSlow => "TooSlow",
            Self::Invalid(_) => "BadRequest",
            Self::NotOffered(_) => "NotOffered",
            Self::OutOfSync { lapse, .. } => match lapse {
                Lapse::ServiceWithdrawn => "ServiceWithdrawn",
                Lapse::PlanWithdrawn => "PlanWithdrawn",
                Lapse::ServiceUnknown => "ServiceUnknown",
                Lapse::PlanUnknown => "PlanUnknown",
            },
            Self::Crowded(_) => "TooManyRequests",
            Self::NotFound { .. } => "NotFound",
            Self::Gone { .. } => "Gone",
            Self::Conflict { .. } => "Conflict",
            Self::AsyncRequired { .. } => "AsyncRequired",
            Self::Busy(_) => "ConcurrencyError",
            Self::RequiresApp { .. } => "RequiresApp",
            Self::MaintenanceConflict { .. } => "MaintenanceInfoConflict",
            Self::PlanChange { .. } => "PlanChangeNotSupported",
            Self::NamespaceMissing { .. } => "NamespaceNotFound",
            Self::NamespaceEnding { .. } => "NamespaceTerminating",
            Self::Failed { .. } => "OperationFailed",
            Self::Unsettled(_) => "OperationUnsettled",
            Self::Unavailable | Self::NotYet(_) => "Unavailable",
        }
    }

    fn retry_seconds(&self) -> Option<u32> {
        match self {
            Self::Busy(_) | Self::Unsettled(_) | Self::Unavailable => Some(RETRY_SECONDS),
            Self::Crowded(_) | Self::NotYet(_) => Some(REGISTRY_SECONDS),
            _ => None,
        }
    }

    /// The same refusal about something that exists already, or may: that it cannot be read now must not be mistaken for
    /// "nothing was done".
    pub(crate) fn about_existing(self) -> Self {
        match self {
            Self::Busy(_) => Self::Unavailable,
            other => other,
        }
    }

    /// Whether the platform would not have asked, had it known our catalog.
    pub(crate) fn is_out_of_sync(&self) -> bool {
        matches!(
            self,
            Self::OutOfSync { .. } | Self::MaintenanceConflict { .. }
        )
    }

    /// The answer, with the fields that a platform of that version knows.
    pub(crate) fn into_answer(self, version: Version) -> OsbResponse {
        let mut body = Map::new();
        body.insert("error".to_owned(), json!(self.word()));
        body.insert("description".to_owned(), json!(self.to_string()));
        let (usable, repeatable) = match &self {
            Self::Failed {
                instance_usable,
                update_repeatable,
                ..
            } => (*instance_usable, *update_repeatable),
            Self::PlanChange { .. } => (None, Some(false)),
            _ => (None, None),
        };
        if version >= Version::V2_16 {
            let told = [
                ("instance_usable", usable),
                ("update_repeatable", repeatable),
            ];
            let told = told
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), Value::Bool(value?))));
            body.extend(told);
        }
        let mut answer = OsbResponse::new(self.status(), body);
        answer.retry_seconds = self.retry_seconds();
        match self {
            Self::Unauthorized => answer.authenticate = true,
            Self::MethodNotAllowed { allow } => answer.allow = Some(allow),
            _ => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_about_failed_changes_are_shown_to_platforms_that_know_them() {
        let error = || OsbError::PlanChange {
            instance: "i".to_owned(),
            from: "small".to_owned(),
            to: "large".to_owned(),
            why: "the offering has fixed plans".to_owned(),
        };
        let old = error().into_answer(Version::V2_15);
        assert_eq!(
            Value::from(old.body),
            json!({
                "error": "PlanChangeNotSupported",
                "description": "instance i cannot change from plan small to plan large: the offering has fixed plans",
            })
        );
        let new = error().into_answer(Version::V2_16);
        assert_eq!(new.body["update_repeatable"], json!(false));
        assert_eq!(new.body.get("instance_usable"), None);
    }

    #[test]
    fn what_time_heals_is_a_concurrency_error_with_a_hint_when_to_come_back() {
        let answer =
            OsbError::Busy("instance i is being made".to_owned()).into_answer(Version::NEWEST);
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.body["error"], json!("ConcurrencyError"));
        assert_eq!(answer.retry_seconds, Some(RETRY_SECONDS));
    }
}
