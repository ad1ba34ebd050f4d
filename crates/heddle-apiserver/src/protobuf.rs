//! Request bodies in the Kubernetes protobuf encoding, turned into JSON.
//!
//! kubectl sends some kinds as `application/vnd.kubernetes.protobuf` whatever the server says it speaks: the bytes `k8s\0`, then an envelope
//! with apiVersion, kind and the object. Only the kinds that clients are known to send are decoded; answers are always JSON.
//!
//! The work is table-driven (see `messages`): a message is a list of numbered fields. Unknown fields are skipped, as protobuf asks.
//! Every length is checked against what is there, and messages nest only as deep as the tables do, so no input can hurt.

mod messages;

#[cfg(test)]
mod tests;

use base64::Engine as _;
use heddle_api::protobuf::{Fields, Malformed, Wire};
use jiff::Timestamp;
use serde_json::{Map, Value};

use messages::{Field, Kind};

const MAGIC: &[u8] = b"k8s\0";

/// A body that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// 400: not what it says it is.
    #[error("cannot decode protobuf body: {0}")]
    Malformed(&'static str),
    /// 415: send JSON instead.
    #[error("cannot decode {api_version} {kind} from protobuf; send application/json")]
    Unsupported { api_version: String, kind: String },
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.0)
    }
}

/// Decodes a whole body into the JSON object it stands for.
pub(crate) fn decode(body: &[u8]) -> Result<Value, Error> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or(Error::Malformed("the magic number is missing"))?;
    let (mut type_meta, mut raw) = (Map::new(), &[][..]);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => type_meta = message(bytes, messages::TYPE_META)?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let text = |name: &str| {
        type_meta
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(fields) = messages::of(&api_version, &kind) else {
        return Err(Error::Unsupported { api_version, kind });
    };
    let mut object = message(raw, fields)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// The JSON object of a message whose fields are `fields`.
fn message(bytes: &[u8], fields: &[Field]) -> Result<Map<String, Value>, Error> {
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, content) = field?;
        if let Some(field) = fields.iter().find(|field| field.number == number) {
            insert(&mut object, field, content)?;
        }
    }
    Ok(object)
}

/// Puts a decoded field into an object. Fields that Go always sends are left out when they hold nothing, as in Go's JSON; optional ones are
/// only sent when set, so what they hold counts even if it is zero.
fn insert(object: &mut Map<String, Value>, field: &Field, content: Wire<'_>) -> Result<(), Error> {
    let value = match (&field.kind, content) {
        (Kind::Text, Wire::Bytes(bytes)) => match text(bytes)? {
            text if text.is_empty() => return Ok(()),
            text => text.into(),
        },
        (Kind::OptionalText, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Kind::Integer | Kind::Boolean, Wire::Varint(0)) => return Ok(()),
        (Kind::Integer | Kind::OptionalInteger, Wire::Varint(number)) => {
            number.cast_signed().into()
        }
        (Kind::Boolean | Kind::OptionalBoolean, Wire::Varint(number)) => (number != 0).into(),
        (Kind::Time | Kind::MicroTime, Wire::Bytes([])) => return Ok(()),
        (Kind::Time, Wire::Bytes(bytes)) => time(bytes)?
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string()
            .into(),
        (Kind::MicroTime, Wire::Bytes(bytes)) => time(bytes)?
            .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
            .to_string()
            .into(),
        (Kind::Message(fields), Wire::Bytes(bytes)) => match message(bytes, fields)? {
            object if object.is_empty() => return Ok(()),
            object => object.into(),
        },
        (Kind::OptionalMessage(fields), Wire::Bytes(bytes)) => message(bytes, fields)?.into(),
        (Kind::FieldsV1, Wire::Bytes(bytes)) => fields_v1(bytes)?,
        (Kind::Texts, Wire::Bytes(bytes)) => return push(object, field.name, text(bytes)?.into()),
        (Kind::Messages(fields), Wire::Bytes(bytes)) => {
            return push(object, field.name, message(bytes, fields)?.into());
        }
        (Kind::TextMap, Wire::Bytes(bytes)) => {
            return entry(object, field.name, bytes, |bytes| Ok(text(bytes)?.into()));
        }
        (Kind::BytesMap, Wire::Bytes(bytes)) => {
            let encode = |bytes: &[u8]| {
                Ok(base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into())
            };
            return entry(object, field.name, bytes, encode);
        }
        _ => return Err(Error::Malformed("a field has the wrong wire type")),
    };
    object.insert(field.name.to_owned(), value);
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::Malformed("a text is not UTF-8"))
}

fn time(bytes: &[u8]) -> Result<Timestamp, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    let invalid = Error::Malformed("a time is out of range");
    i32::try_from(nanos)
        .ok()
        .and_then(|nanos| Timestamp::new(seconds, nanos).ok())
        .ok_or(invalid)
}

/// Managed fields travel as JSON inside the message.
fn fields_v1(bytes: &[u8]) -> Result<Value, Error> {
    let mut raw = &[][..];
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(bytes)) = field? {
            raw = bytes;
        }
    }
    serde_json::from_slice(raw).map_err(|_| Error::Malformed("managed fields are not JSON"))
}

fn push(object: &mut Map<String, Value>, name: &str, item: Value) -> Result<(), Error> {
    let list = object
        .entry(name)
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(items) = list {
        items.push(item);
    }
    Ok(())
}

/// Adds one entry of a map: a message with the key as field 1 and the value as field 2, either of which may be left out when empty.
fn entry(
    object: &mut Map<String, Value>,
    name: &str,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<Value, Error>,
) -> Result<(), Error> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    let map = object
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entries) = map {
        entries.insert(key, decode(value)?);
    }
    Ok(())
}
