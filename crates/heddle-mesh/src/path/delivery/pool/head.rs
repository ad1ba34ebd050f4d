//! The head of an HTTP/1 answer: its status, where its body ends, and the few headers that anybody looks at.
//!
//! Strict where leniency would let two readers see different answers: lengths that contradict each other are no answer.

use std::mem::MaybeUninit;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::framing::Framing;
use super::single::Broken;

/// More headers than this are no answer to an event.
const HEADERS_MAX: usize = 100;

/// What the beginning of an answer says.
#[derive(Debug)]
pub(in super::super) struct Head {
    pub(in super::super) status: StatusCode,
    /// Those that say what the body is, when to come back, what is consented to, and the attributes of an event.
    pub(in super::super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the connection may be used again after this answer.
    pub(super) stays_open: bool,
}

/// Reads a head and tells how long it is; `None` while it has not come whole.
pub(super) fn read(input: &[u8]) -> Result<Option<(Head, usize)>, Broken> {
    let mut fields = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        &mut fields,
    );
    let length = match parsed? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(httparse::Error::Status)?;
    let mut said = MessageHeaders {
        // Version 1.0 closes unless it says otherwise, and who still speaks it may close.
        stays_open: response.version == Some(1) && status != StatusCode::SWITCHING_PROTOCOLS,
        ..MessageHeaders::default()
    };
    let mut headers = HeaderMap::new();
    for field in response.headers.iter() {
        said.hear(field)?;
        if matters(field.name) {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            let value = HeaderValue::from_bytes(field.value);
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
    }
    let head = Head {
        status,
        headers,
        framing: said.framing(status),
        stays_open: said.stays_open,
    };
    Ok(Some((head, length)))
}

/// Whether anybody looks at this header. What nobody reads is not copied.
fn matters(name: &str) -> bool {
    let known = [CONTENT_TYPE, CONTENT_ENCODING, RETRY_AFTER];
    let begins = |start: &str| {
        let beginning = name.get(..start.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    begins("ce-")
        || begins("webhook-allowed-")
        || known
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_str()))
}

/// What the headers say about the message itself.
#[derive(Debug, Default)]
struct MessageHeaders {
    length: Option<u64>,
    /// Whether there is a transfer coding, and whether the last of them checkpoints the end.
    coding: Option<bool>,
    stays_open: bool,
}

impl MessageHeaders {
    fn hear(&mut self, field: &httparse::Header<'_>) -> Result<(), Broken> {
        if field.name.eq_ignore_ascii_case("content-length") {
            for text in tokens(field.value) {
                let length = length(text).ok_or(Broken::Length)?;
                if self
                    .length
                    .replace(length)
                    .is_some_and(|other| other != length)
                {
                    return Err(Broken::Length);
                }
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            let last = tokens(field.value).last();
            self.coding = Some(last.is_some_and(|last| last.eq_ignore_ascii_case(b"chunked")));
        } else if field.name.eq_ignore_ascii_case("connection") {
            let closes = tokens(field.value).any(|token| token.eq_ignore_ascii_case(b"close"));
            self.stays_open &= !closes;
        }
        Ok(())
    }

    fn framing(&mut self, status: StatusCode) -> Framing {
        let has_none = status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        if has_none {
            return Framing::Length(0);
        }
        match (self.coding, self.length) {
            (Some(true), length) => {
                // Both are a known way to make two readers disagree about where the next answer begins.
                self.stays_open &= length.is_none();
                Framing::chunked()
            }
            (None, Some(length)) => Framing::Length(length),
            (Some(false), _) | (None, None) => {
                self.stays_open = false;
                Framing::UntilClosed
            }
        }
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn length(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> Result<Head, Broken> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, length) = read(text.as_bytes())?.expect("it is whole");
        assert_eq!(length, text.len());
        Ok(head)
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        let table = [
            ("content-length: 5\r\n", Framing::Length(5), true),
            ("Content-Length: 5, 5\r\n", Framing::Length(5), true),
            (
                "content-length: 0\r\nconnection: close\r\n",
                Framing::Length(0),
                false,
            ),
            (
                "content-length: 0\r\nconnection: x, Close\r\n",
                Framing::Length(0),
                false,
            ),
            ("transfer-encoding: chunked\r\n", Framing::chunked(), true),
            (
                "transfer-encoding: gzip, chunked\r\n",
                Framing::chunked(),
                true,
            ),
            (
                "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
                Framing::chunked(),
                false,
            ),
            ("transfer-encoding: gzip\r\n", Framing::UntilClosed, false),
            ("", Framing::UntilClosed, false),
        ];
        for (fields, framing, stays_open) in table {
            let head = head(fields).unwrap();
            assert_eq!(
                (head.framing, head.stays_open),
                (framing, stays_open),
                "{fields}"
            );
        }
    }

    #[test]
    fn lengths_that_contradict_each_other_are_no_answer() {
        let bad = [
            "5, 6",
            "5\r\ncontent-length: 6",
            "-5",
            "+5",
            "five",
            "",
            "99999999999999999999",
        ];
        for value in bad {
            let broken = head(&format!("content-length: {value}\r\n"));
            assert!(matches!(broken, Err(Broken::Length)), "{value}: {broken:?}");
        }
    }

    #[test]
    fn some_answers_have_no_body_whatever_they_say() {
        for status in [100, 101, 204, 304] {
            let text = format!("HTTP/1.1 {status} X\r\ncontent-length: 7\r\n\r\n");
            let (head, _) = read(text.as_bytes()).unwrap().unwrap();
            assert_eq!(head.framing, Framing::Length(0));
            assert_eq!(head.stays_open, status != 101);
        }
    }

    #[test]
    fn only_what_somebody_reads_is_kept() {
        let head =
            head("Date: now\r\nCE-Id: 7\r\nretry-after: 1\r\ncontent-type: a/b\r\nWebHook-Allowed-Rate: 1\r\n").unwrap();
        let mut names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "ce-id",
                "content-type",
                "retry-after",
                "webhook-allowed-rate"
            ]
        );
    }
}
