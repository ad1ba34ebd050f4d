//! Who came, and what they want: the one place where it is decided whether a page is shown, its frame, or the way in.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use heddle_api::access::{Access, Right, Visitor, namespace_of};
use http::request::Parts;
use http::{Extensions, HeaderMap, header};

/// Set by the script when it wants what is inside of the frame only.
pub(crate) const PIECE: &str = "x-heddle-piece";

/// The cookie with the theme that somebody chose; no secret, and written by the script.
const THEME: &str = "heddle-theme";

/// What is known of whoever came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// They may look, as far as what answers lets them.
    Known(Access),
    /// The script has the other half of the session, and fetches what is inside.
    Half,
    Stranger,
}

/// One request for a page.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) guest: Guest,
    /// Whether only what is inside of the frame is wanted.
    pub(crate) piece: bool,
    /// `light` or `dark`, if somebody chose.
    pub(crate) theme: Option<&'static str>,
    /// Path and query.
    pub(crate) path: String,
    query: String,
    /// What the door found out, to be handed on to what answers; nothing else of the request is, least of all its parameters.
    pub(crate) extensions: Extensions,
    pub(crate) gzip: bool,
}

impl Visit {
    /// The value of a key of the query, unless it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let (_, value) = pairs.find(|(found, _)| found == key)?;
        (!value.is_empty()).then(|| value.into_owned())
    }

    /// All values of a key of the query that are not empty.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        let values = pairs.filter(|(found, value)| found == key && !value.is_empty());
        values.map(|(_, value)| value.into_owned()).collect()
    }

    /// The same, where nothing is something else than absent.
    pub(crate) fn any_text(&self, key: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let (_, value) = pairs.find(|(found, _)| found == key)?;
        Some(value.into_owned())
    }

    /// Who looks, if they are known.
    pub(crate) fn access(&self) -> Option<&Access> {
        match &self.guest {
            Guest::Known(access) => Some(access),
            Guest::Half | Guest::Stranger => None,
        }
    }

    /// Whether they may change what becomes of events: those of an object that is named `trigger/NAMESPACE/NAME` or alike, or
    /// of some.
    pub(crate) fn may_operate(&self, object: Option<&str>) -> bool {
        self.access().is_some_and(|access| match object {
            Some(object) => access.may(Right::Operate, namespace_of(object)),
            None => access.has(Right::Operate),
        })
    }
}

fn guest(extensions: &Extensions) -> Guest {
    match extensions.get::<Access>() {
        Some(access) => Guest::Known(access.clone()),
        None if extensions.get() == Some(&Visitor::CookieOnly) => Guest::Half,
        None => Guest::Stranger,
    }
}

fn handed_on(extensions: &Extensions) -> Extensions {
    let mut handed_on = Extensions::new();
    if let Some(access) = extensions.get::<Access>() {
        handed_on.insert(access.clone());
    }
    handed_on
}

fn theme(headers: &HeaderMap) -> Option<&'static str> {
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let cookies = cookies.filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let chosen = pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == THEME).then_some(value)
    })?;
    ["light", "dark"].into_iter().find(|known| *known == chosen)
}

/// Whether a compressed body is welcome.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let wishes = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let wishes = wishes.filter_map(|value| value.to_str().ok());
    wishes.flat_map(|value| value.split(',')).any(|wish| {
        let mut parts = wish.split(';').map(str::trim);
        let is_gzip = parts.next() == Some("gzip");
        is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let path = parts.uri.path_and_query().map(|path| path.as_str());
        Ok(Self {
            guest: guest(&parts.extensions),
            piece: parts.headers.contains_key(PIECE),
            theme: theme(&parts.headers),
            path: path.unwrap_or("/ui/").to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            extensions: handed_on(&parts.extensions),
            gzip: takes_gzip(&parts.headers),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_theme_is_one_of_two_and_nothing_else_from_a_cookie_is_believed() {
        let of = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
            theme(&headers)
        };
        assert_eq!(of("a=b; heddle-theme=dark"), Some("dark"));
        assert_eq!(of("heddle-theme=light"), Some("light"));
        assert_eq!(of("heddle-theme=\"><script>"), None);
        assert_eq!(of("other=dark"), None);
    }

    #[test]
    fn compression_is_for_who_asks_for_it() {
        let of = |wish: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(wish));
            takes_gzip(&headers)
        };
        assert!(of("gzip, deflate, br") && of("br;q=1.0, gzip;q=0.5"));
        assert!(!of("br") && !of("gzip;q=0") && !of("identity"));
    }
}
