//! Request bodies: bounded, decoded strictly, never trusted.
//!
//! Duplicate JSON keys are noticed (a silent "last one wins" is how two readers of one document come to
//! disagree), nesting is bounded by the decoder, and YAML aliases cannot expand without limit.

use bytes::Bytes;
use heddle_rt::net::receive::{Intake, NotReceived, Received, receive};
use http::request;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::auth::Identity;
use crate::negotiate::Encoding;
use crate::protobuf;
use crate::status::{Result, StatusError};

/// What etcd takes by default, so that an object accepted here is accepted on a cluster as well.
pub(crate) const BODY_BYTES_MAX: usize = 1_572_864;

/// Up to here every whole number has a double of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A decoded document, with what a strict reader would object to.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// The whole body, on the account of whoever sent it.
pub(crate) async fn read<B>(
    body: B,
    parts: &request::Parts,
    identity: &Identity,
) -> Result<Received>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let intake = Intake::of(&parts.extensions);
    let account = intake.map(|intake| intake.account_of(&identity.user));
    let received = receive(body, BODY_BYTES_MAX, account).await;
    received.map_err(|error| match error {
        NotReceived::TooLarge(limit) => StatusError::too_large(limit),
        NotReceived::Broken(_) => {
            StatusError::bad_request("the request body ended before it was complete")
        }
        NotReceived::TooSlow => StatusError::too_slow(),
        NotReceived::NoRoom => StatusError::too_many_requests(),
    })
}

pub(crate) fn decode(bytes: &[u8], encoding: Encoding) -> Result<Decoded> {
    match encoding {
        Encoding::Json => json(bytes),
        Encoding::Yaml => yaml(bytes),
        Encoding::Protobuf => protobuf::decode(bytes)
            .map(|value| Decoded {
                value,
                duplicates: Vec::new(),
            })
            .map_err(|error| {
                StatusError::bad_request(format!("cannot decode the protobuf body: {error}"))
            }),
    }
}

pub(crate) fn json(bytes: &[u8]) -> Result<Decoded> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let strict = Strict {
        path: String::new(),
        duplicates: &mut duplicates,
    };
    let value = strict
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| {
            StatusError::bad_request(format!(
                "the body of the request is not valid JSON: {error}"
            ))
        })?;
    Ok(Decoded { value, duplicates })
}

/// YAML is a superset of JSON, and apply patches are sent as either under one media type.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Decoded> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return json(bytes);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| StatusError::bad_request("the body of the request is not valid UTF-8"))?;
    let value = serde_saphyr::from_str::<Value>(text).map_err(|error| {
        StatusError::bad_request(format!(
            "the body of the request is not valid YAML: {error}"
        ))
    })?;
    Ok(Decoded {
        value,
        duplicates: Vec::new(),
    })
}

/// Builds a `Value` like serde_json does, and writes down every key that stands twice in one object.
struct Strict<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    /// A whole number stays one however it is written: `3.0` is stored and shown as `3`.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
            return Ok((value as i64).into());
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            match seq.next_element_seed(Strict {
                path,
                duplicates: self.duplicates,
            })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            if map.contains_key(&key) {
                self.duplicates.push(path.clone());
            }
            let value = access.next_value_seed(Strict {
                path,
                duplicates: self.duplicates,
            })?;
            if map.len() > 100_000 {
                return Err(A::Error::custom("an object has too many keys"));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests;
