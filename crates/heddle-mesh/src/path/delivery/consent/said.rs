//! What a destination said when it was asked for consent.

use http::{HeaderMap, HeaderName};

use crate::routes::Webhook;

static ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
static ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

/// How much of a header is repeated to people.
const SHOWN_BYTES_MAX: usize = 100;

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Yes {
        /// Per minute; `None` is any.
        rate: Option<u32>,
    },
    /// It answered, and that was no consent.
    No(String),
    /// No answer, or one of somebody in between who had none either.
    Nothing(String),
}

/// A rate that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("WebHook-Allowed-Rate is {0:?}, wanted is * or a number of requests per minute above 0")]
pub(crate) struct BadRate(String);

/// What an answer means. Its status never consents.
pub(super) fn read(status: u16, headers: &HeaderMap, webhook: &Webhook) -> Said {
    let Some(allowed) = text(headers, &ALLOWED_ORIGIN) else {
        let why = format!("it answered {status} without WebHook-Allowed-Origin");
        return match status {
            429 | 500.. => Said::Nothing(why),
            _ => Said::No(why),
        };
    };
    if allowed != "*" && !allowed.eq_ignore_ascii_case(&webhook.origin) {
        return Said::No(format!(
            "it allows WebHook-Allowed-Origin {allowed:?} and not {}",
            webhook.origin
        ));
    }
    match rate(headers) {
        Err(bad) => Said::No(bad.to_string()),
        Ok(None) if webhook.rate.is_some() => Said::No(
            "it answered without WebHook-Allowed-Rate, although it was told the rate that is wanted"
                .to_owned(),
        ),
        Ok(rate) => Said::Yes {
            rate: rate.flatten(),
        },
    }
}

/// The rate that is allowed; `None` when nothing is said about it, `Some(None)` for any.
pub(super) fn rate(headers: &HeaderMap) -> Result<Option<Option<u32>>, BadRate> {
    let Some(text) = text(headers, &ALLOWED_RATE) else {
        return Ok(None);
    };
    if text == "*" {
        return Ok(Some(None));
    }
    // The standard parser also takes a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let rate = text.parse().ok().filter(|rate| digits && *rate > 0);
    rate.map(|rate| Some(Some(rate))).ok_or(BadRate(text))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    let mut text = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    text.truncate(end);
    Some(text)
}
