//! Which form an answer takes, and in which form a body came: the `Accept` and `Content-Type` headers.
//!
//! kubectl asks for a Table, controllers for metadata only, discovery for its aggregated form, each as a
//! parameter of `application/json`. Entries nobody knows are skipped; only when none fits is it a 406.
//!
//! One form is our own: `without=managedFields`. Who wrote which field is often half of an object and concerns only those
//! who ask about it; heddle's controllers do not, and name plain JSON after it for servers that know nothing of this.

use http::{HeaderMap, HeaderValue, header};

use crate::status::{Result, StatusError};

/// The shape in which objects are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    /// The object, but for `metadata.managedFields`.
    Lean,
    Table,
    /// `PartialObjectMetadata` for one object, `PartialObjectMetadataList` for many.
    Metadata,
}

const ACCEPTED: &str = "application/json, application/json;as=Table;v=v1;g=meta.k8s.io, \
     application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// Picks the first form we can give, in the client's order. No header, `*/*` and plain JSON mean the object.
pub(crate) fn form(headers: &HeaderMap) -> Result<Form> {
    let mut asked = false;
    for entry in entries(headers) {
        asked = true;
        let params = Params::of(entry);
        if !matches!(params.media, "application/json" | "application/*" | "*/*") {
            continue;
        }
        match (params.get("as"), params.get("g"), params.get("v")) {
            (None, ..) if params.get("without") == Some("managedFields") => return Ok(Form::Lean),
            (None, ..) => return Ok(Form::Object),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => return Ok(Form::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => {
                return Ok(Form::Metadata);
            }
            _ => {}
        }
    }
    if asked {
        Err(StatusError::not_acceptable(ACCEPTED))
    } else {
        Ok(Form::Object)
    }
}

/// Asks for lean objects where whole ones were asked for.
pub(crate) fn prefer_lean(headers: &mut HeaderMap) {
    const LEAN: HeaderValue =
        HeaderValue::from_static("application/json;without=managedFields, application/json");
    if form(headers).is_ok_and(|form| form == Form::Object) {
        headers.insert(header::ACCEPT, LEAN);
    }
}

/// Whether the client prefers aggregated discovery, and in which of the two versions it reads.
pub(crate) fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    for entry in entries(headers) {
        let params = Params::of(entry);
        if params.media != "application/json" {
            continue;
        }
        match (params.get("g"), params.get("v"), params.get("as")) {
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => {
                return Some("v2");
            }
            (None, None, None) => return None,
            _ => {}
        }
    }
    None
}

/// Whether the client wants to leave HTTP for a WebSocket.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::UPGRADE).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket"))
}

pub(crate) fn accepts_openapi_protobuf(headers: &HeaderMap) -> bool {
    entries(headers).any(|entry| entry.contains("proto-openapi.spec.v2"))
}

fn entries(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

struct Params<'a> {
    media: &'a str,
    rest: &'a str,
}

impl<'a> Params<'a> {
    fn of(entry: &'a str) -> Self {
        let (media, rest) = entry.split_once(';').unwrap_or((entry, ""));
        Self {
            media: media.trim(),
            rest,
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.rest.split(';').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then_some(value.trim())
        })
    }
}

/// How a request body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// How a PATCH wants to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

pub(crate) fn encoding(headers: &HeaderMap) -> Result<Encoding> {
    match media_type(headers) {
        None | Some("" | "application/json" | "*/*") => Ok(Encoding::Json),
        Some("application/yaml") => Ok(Encoding::Yaml),
        Some("application/vnd.kubernetes.protobuf") => Ok(Encoding::Protobuf),
        Some(_) => Err(StatusError::unsupported_media_type(
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

pub(crate) fn patch_type(headers: &HeaderMap, strategic: bool) -> Result<PatchType> {
    match media_type(headers) {
        Some("application/json-patch+json") => Ok(PatchType::Json),
        Some("application/merge-patch+json") => Ok(PatchType::Merge),
        Some("application/apply-patch+yaml") => Ok(PatchType::Apply),
        Some("application/strategic-merge-patch+json") if strategic => Ok(PatchType::Strategic),
        _ => {
            let mut accepted =
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml".to_owned();
            if strategic {
                accepted.push_str(", application/strategic-merge-patch+json");
            }
            Err(StatusError::unsupported_media_type(&accepted))
        }
    }
}

#[cfg(test)]
mod tests;
