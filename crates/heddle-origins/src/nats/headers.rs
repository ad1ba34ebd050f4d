//! Headers of a message: a version, a status when a server answers in somebody's place, and lines. Pure.

/// The most headers that are kept of a message.
const HEADERS_MAX: usize = 256;

/// Headers as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// What a server says without a payload: 503 when nobody is there, 404 when nothing is.
    pub(crate) status: Option<u16>,
    /// What it adds to that.
    pub(crate) description: String,
    pub(crate) lines: Vec<(String, String)>,
}

impl Headers {
    /// `NATS/1.0 404 No Messages`, lines of `name: value`, and an empty one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let text = text.strip_suffix("\r\n\r\n")?;
        let mut lines = text.split("\r\n");
        let first = lines.next()?.strip_prefix("NATS/1.0")?.trim();
        let (status, description) = first.split_once(' ').unwrap_or((first, ""));
        let status = if status.is_empty() {
            None
        } else {
            Some(status.parse().ok()?)
        };
        let mut headers = Self {
            status,
            description: description.trim().to_owned(),
            lines: Vec::new(),
        };
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            if headers.lines.len() == HEADERS_MAX {
                return None;
            }
            let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
            headers.lines.push((name, value));
        }
        Some(headers)
    }
}
