//! Who asks through a platform, and which of its requests this is.
//!
//! Both headers are optional: removing an orphan, a platform acts for nobody. What is not readable is refused, for an audit
//! that holds garbage is worse than one that says it knows nothing.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use heddle_api::operation::OriginatingIdentity;
use http::HeaderMap;
use serde_json::{Map, Value};

use crate::error::OsbError;

/// Names one request; comes back with every answer.
pub(crate) const REQUEST_IDENTITY: &str = "x-broker-api-request-identity";
const ORIGINATING_IDENTITY: &str = "x-broker-api-originating-identity";

/// Somebody whom this process knows and let in itself: among the extensions of a request, which no peer can set. They bring no
/// credentials of a platform, and whatever they say of themselves is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedPerson {
    pub user: String,
}

impl AdmittedPerson {
    pub(crate) fn identity(&self) -> OriginatingIdentity {
        let value = Map::from_iter([("username".to_owned(), self.user.clone().into())]);
        OriginatingIdentity {
            platform: "heddle".to_owned(),
            value,
        }
    }
}

/// On whose behalf the platform asks: `<platform> <base64 of a JSON object>`.
pub(crate) fn originating(headers: &HeaderMap) -> Result<Option<OriginatingIdentity>, OsbError> {
    let Some(header) = headers.get(ORIGINATING_IDENTITY) else {
        return Ok(None);
    };
    let identity = header.to_str().ok().and_then(parse);
    let malformed = || {
        let text = "the header X-Broker-API-Originating-Identity is not a platform followed by a JSON object in base64";
        OsbError::Invalid(text.to_owned())
    };
    identity.map(Some).ok_or_else(malformed)
}

fn parse(text: &str) -> Option<OriginatingIdentity> {
    let (platform, encoded) = text.trim().split_once(' ')?;
    let encoded = encoded.trim();
    let bytes = STANDARD
        .decode(encoded)
        .or_else(|_| STANDARD_NO_PAD.decode(encoded));
    match serde_json::from_slice(&bytes.ok()?).ok()? {
        Value::Object(value) if !platform.is_empty() => Some(OriginatingIdentity {
            platform: platform.to_owned(),
            value,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use serde_json::json;

    #[test]
    fn an_identity_is_read_whole_or_refused() {
        let read = |text: &str| {
            let value = HeaderValue::from_str(text).unwrap();
            originating(&HeaderMap::from_iter([(
                http::HeaderName::from_static(ORIGINATING_IDENTITY),
                value,
            )]))
        };
        let encoded = STANDARD.encode(r#"{"username":"jo","groups":["a"]}"#);
        let identity = read(&format!("kubernetes {encoded}")).unwrap().unwrap();
        assert_eq!(identity.platform, "kubernetes");
        assert_eq!(
            Value::from(identity.value),
            json!({"username": "jo", "groups": ["a"]})
        );
        assert_eq!(originating(&HeaderMap::new()), Ok(None));
        for text in [
            "",
            "kubernetes",
            "kubernetes !",
            &format!(" {encoded}"),
            &format!("cf {}", STANDARD.encode("[]")),
        ] {
            assert_eq!(read(text).unwrap_err().status(), 400, "{text:?}");
        }
    }
}
