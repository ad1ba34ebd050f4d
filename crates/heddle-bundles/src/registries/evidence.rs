//! What an answer proves. Pure: an answer in, a verdict out.
//!
//! | answer                                                                   | verdict                                  |
//! |--------------------------------------------------------------------------|------------------------------------------|
//! | manifest and configuration with a sound description                      | present                                  |
//! | the digest that is known                                                 | unchanged                                |
//! | 404 in a registry's own words, everything was asked for, listing complete | absent                                   |
//! | any other 404, or one that speaks of the accept header                   | unknown                                  |
//! | 401, 403, 408, 429, 5xx, no answer, half an answer, another digest       | unknown                                  |
//! | an image without a description                                           | absent: no bundle any more               |
//! | an image with a description that cannot be used                          | rejected; what was good stays            |
//!
//! What the registry's settings do not admit is absent without a question; `admission` decides that.

use std::collections::BTreeMap;

use heddle_api::bundle::MarkReason;
use heddle_api::evidence::{Found, ImageEvidence, ImageName};
use serde::Deserialize;

use super::label;

/// What a registry said about one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageResponse {
    /// It has the digest that is known.
    Same,
    /// It is there, all of it verified.
    Image(Seen),
    /// Something other than success, and what was said about it in the words of the distribution protocol.
    Refusal { status: u16, errors: Vec<Refused> },
    /// No answer, half of one, or one that cannot be true.
    Failed(String),
}

impl ImageResponse {
    /// A list that is known to be whole does not have it; perhaps it has other tags of the repository.
    pub(super) fn not_listed(repository_is_there: bool, message: String) -> Self {
        let code = if repository_is_there {
            MANIFEST_UNKNOWN
        } else {
            NAME_UNKNOWN
        };
        Self::Refusal {
            status: 404,
            errors: vec![Refused {
                code: code.to_owned(),
                message,
            }],
        }
    }
}

/// An image that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub manifest_digest: String,
    pub config_digest: String,
    /// As in [`Found`].
    pub state_digest: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Why the image cannot run here, whatever its description says.
    pub unfit: Option<String>,
}

/// One error as registries report them.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct Refused {
    pub code: String,
    #[serde(deserialize_with = "text_or_nothing")]
    pub message: String,
}

fn text_or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What is known beside the answer.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    pub image: &'a ImageName,
    /// `host/repository`.
    pub location: &'a str,
    /// Whether every page of the listing was read, or none was needed.
    pub listing_complete: bool,
    /// Whether the listing has the repository, where there is a listing.
    pub listed: Option<bool>,
}

/// What an answer proves.
#[must_use]
pub fn classify(answer: ImageResponse, circumstances: Circumstances<'_>) -> ImageEvidence {
    match answer {
        ImageResponse::Same => ImageEvidence::Unchanged,
        ImageResponse::Image(seen) => judge(seen, circumstances),
        ImageResponse::Refusal { status, errors } => refused(status, &errors, circumstances),
        ImageResponse::Failed(why) => ImageEvidence::Unknown { why },
    }
}

fn judge(seen: Seen, circumstances: Circumstances<'_>) -> ImageEvidence {
    let digest = seen.state_digest.clone();
    let digest = digest.unwrap_or_else(|| seen.manifest_digest.clone());
    let described = match label::describe(&seen.labels, &circumstances.image.track) {
        Ok(Some(described)) => described,
        Ok(None) => {
            let why = "the image has no label with a description of a bundle".to_owned();
            return ImageEvidence::Absent {
                reason: MarkReason::NotABundle,
                why,
            };
        }
        Err(why) => return ImageEvidence::Rejected { digest, why },
    };
    if let Some(why) = seen.unfit {
        return ImageEvidence::Rejected { digest, why };
    }
    ImageEvidence::Present(Box::new(Found {
        manifest_digest: seen.manifest_digest,
        state_digest: seen.state_digest,
        config_digest: seen.config_digest,
        location: circumstances.location.to_owned(),
        description: described.description,
        version: described.version,
        runtime: described.runtime,
    }))
}

/// The registry knows no such manifest, and says so itself.
const MANIFEST_UNKNOWN: &str = "MANIFEST_UNKNOWN";
/// The registry knows no such repository, and says so itself.
const NAME_UNKNOWN: &str = "NAME_UNKNOWN";

fn refused(status: u16, errors: &[Refused], circumstances: Circumstances<'_>) -> ImageEvidence {
    let said = match errors.first() {
        Some(error) => format!("{status} {}: {}", error.code, error.message),
        None => format!("{status}"),
    };
    let unknown = |because: &str| ImageEvidence::Unknown {
        why: format!("the registry answered {said}{because}"),
    };
    if status != 404 {
        return unknown("");
    }
    // All of what is said must be that it is gone; one of several errors could be the cause of the others.
    let gone = |error: &Refused| [MANIFEST_UNKNOWN, NAME_UNKNOWN].contains(&error.code.as_str());
    if errors.is_empty() || !errors.iter().all(gone) {
        return unknown(", which is not how a registry says that something is gone");
    }
    // An old registry denies images whose kind it would have to translate.
    if errors
        .iter()
        .any(|error| error.message.to_ascii_lowercase().contains("accept header"))
    {
        return unknown("");
    }
    if !circumstances.listing_complete {
        return unknown(", but its listing could not be read to the end");
    }
    let repository_gone = circumstances.listed == Some(false)
        || errors.iter().any(|error| error.code == NAME_UNKNOWN);
    let reason = if repository_gone {
        MarkReason::RemovedFromRegistry
    } else {
        MarkReason::TagRemoved
    };
    let why = format!("the registry answered {said}");
    ImageEvidence::Absent { reason, why }
}

/// Reads the errors out of a body; none if it is not a registry's.
#[must_use]
pub fn errors(body: &[u8]) -> Vec<Refused> {
    #[derive(Deserialize)]
    struct Envelope {
        errors: Vec<Refused>,
    }
    let envelope: Result<Envelope, _> = serde_json::from_slice(body);
    envelope.map(|envelope| envelope.errors).unwrap_or_default()
}

#[cfg(test)]
mod tests;
