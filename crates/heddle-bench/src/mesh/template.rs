//! Requests that carry events, written once and changed in place.
//!
//! Only what must differ is rewritten before a request is sent: ids, so that no event is taken for a repetition; types, so
//! that a matcher is not measured on one cached event; and the time of sending. All have a fixed width, so the length of
//! a request never changes.

use std::net::SocketAddr;

/// The source of every event of a benchmark; triggers that want all of them ask for it.
pub(super) const SOURCE: &str = "/heddle/bench";
/// The extension that carries the time of sending: nanoseconds since 1970, twenty digits.
pub(super) const SENT_HEADER: &str = "ce-benchsent";
/// How many types the events take turns in.
pub(super) const TYPES: u64 = 4096;
/// Begins the type of every event; four digits follow.
pub(super) const TYPE_PREFIX: &str = "heddle.bench.event.";

const ID_DIGITS: usize = 16;
const TYPE_DIGITS: usize = 4;
const SENT_DIGITS: usize = 20;

/// What the requests of one connection have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    pub(super) host: SocketAddr,
    pub(super) path: &'a str,
    /// Makes ids differ from those of other connections and runs.
    pub(super) id_prefix: &'a str,
    /// The `time` attribute, RFC 3339.
    pub(super) time: &'a str,
    pub(super) data_bytes: usize,
}

/// A request, and where in it the changing parts are.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Vec<u8>,
    ids: Vec<usize>,
    types: Vec<usize>,
    sent: Option<usize>,
}

impl Template {
    /// One event in binary mode: six attributes as headers.
    pub(super) fn single(shape: Shape<'_>) -> Self {
        let mut request = Self::begin(shape, "application/json", shape.data_bytes);
        request.text("ce-specversion: 1.0\r\nce-type: ");
        request.type_();
        request.text(&format!("\r\nce-source: {SOURCE}\r\nce-id: "));
        request.id(shape.id_prefix);
        request.text(&format!("\r\nce-time: {}\r\n{SENT_HEADER}: ", shape.time));
        request.sent = Some(request.bytes.len());
        request.bytes.extend([b'0'; SENT_DIGITS]);
        request.text("\r\n\r\n");
        request.text(&data(shape.data_bytes));
        request
    }

    /// Many events as one JSON document.
    pub(super) fn batch(shape: Shape<'_>, events: usize) -> Self {
        let mut body = Self::empty();
        for index in 0..events {
            body.text(if index == 0 { "[" } else { "," });
            body.text("{\"specversion\":\"1.0\",\"type\":\"");
            body.type_();
            body.text(&format!("\",\"source\":\"{SOURCE}\",\"id\":\""));
            body.id(shape.id_prefix);
            body.text(&format!(
                "\",\"time\":\"{}\",\"datacontenttype\":\"application/json\",\"data\":{}}}",
                shape.time,
                data(shape.data_bytes)
            ));
        }
        body.text("]");
        let kind = "application/cloudevents-batch+json";
        let mut request = Self::begin(shape, kind, body.bytes.len());
        request.text("\r\n");
        let head = request.bytes.len();
        request.ids = body.ids.iter().map(|at| at + head).collect();
        request.types = body.types.iter().map(|at| at + head).collect();
        request.bytes.append(&mut body.bytes);
        request
    }

    /// How many events one request carries.
    pub(super) fn events(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The request whose events are numbered from `first` on.
    pub(super) fn fill(&mut self, first: u64, sent_nanos: u64) -> &[u8] {
        for (number, (id, type_)) in (first..).zip(self.ids.iter().zip(&self.types)) {
            digits(&mut self.bytes[*id..*id + ID_DIGITS], number);
            digits(
                &mut self.bytes[*type_..*type_ + TYPE_DIGITS],
                number % TYPES,
            );
        }
        if let Some(sent) = self.sent {
            digits(&mut self.bytes[sent..sent + SENT_DIGITS], sent_nanos);
        }
        &self.bytes
    }

    fn empty() -> Self {
        Self {
            bytes: Vec::new(),
            ids: Vec::new(),
            types: Vec::new(),
            sent: None,
        }
    }

    fn begin(shape: Shape<'_>, content_type: &str, length: usize) -> Self {
        let mut request = Self::empty();
        request.text(&format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n",
            shape.path, shape.host
        ));
        request
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn id(&mut self, prefix: &str) {
        self.text(prefix);
        self.ids.push(self.bytes.len());
        self.bytes.extend([b'0'; ID_DIGITS]);
    }

    fn type_(&mut self) {
        self.text(TYPE_PREFIX);
        self.types.push(self.bytes.len());
        self.bytes.extend([b'0'; TYPE_DIGITS]);
    }
}

/// A JSON document of exactly that many bytes; two at least.
fn data(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes.saturating_sub(2)))
}

/// `number` in decimal, filled up with zeroes, as many digits as there is room for.
fn digits(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::wire;
    use super::*;

    fn shape() -> Shape<'static> {
        Shape {
            host: ([127, 0, 0, 1], 80).into(),
            path: "/broker/default/one",
            id_prefix: "a-",
            time: "2026-01-01T00:00:00Z",
            data_bytes: 1024,
        }
    }

    fn body(request: &[u8]) -> &[u8] {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n");
        &request[end.unwrap() + 4..]
    }

    #[test]
    fn a_request_says_its_length_and_changes_only_where_it_must() {
        let mut template = Template::single(shape());
        let first = template.fill(7, 1).to_vec();
        assert_eq!(wire::header(&first, "content-length"), Some(&b"1024"[..]));
        assert_eq!(body(&first).len(), 1024);
        assert!(serde_json::from_slice::<Value>(body(&first)).is_ok());
        let second = template.fill(TYPES + 8, 12_345).to_vec();
        assert_eq!(first.len(), second.len());
        let value = |name| String::from_utf8_lossy(wire::header(&second, name).unwrap());
        assert_eq!(value("ce-id"), "a-0000000000004104");
        assert_eq!(value("ce-type"), "heddle.bench.event.0008");
        assert_eq!(value("ce-benchsent"), "00000000000000012345");
    }

    #[test]
    fn a_batch_is_json_in_which_every_event_has_its_own_id() {
        let mut template = Template::batch(shape(), 3);
        assert_eq!(template.events(), 3);
        let request = template.fill(9, 0).to_vec();
        let events: Vec<Value> = serde_json::from_slice(body(&request)).unwrap();
        let ids: Vec<&str> = events
            .iter()
            .filter_map(|event| event["id"].as_str())
            .collect();
        assert_eq!(
            ids,
            [
                "a-0000000000000009",
                "a-0000000000000010",
                "a-0000000000000011"
            ]
        );
        let length = wire::header(&request, "content-length").unwrap();
        assert_eq!(length, body(&request).len().to_string().as_bytes());
    }
}
