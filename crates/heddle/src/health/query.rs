//! What was asked besides the path: the query, and the headers of whoever asks again.

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use heddle_api::access::{Access, Scope};
use heddle_api::health::stream::{PULSE, VERDICT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

/// Where a client of server-sent events says what it heard last.
const LAST_EVENT_ID: &str = "last-event-id";

/// Everything that any of the paths understands.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthQuery {
    /// Answer with the status, for probes that read no bodies.
    pub(super) probe: bool,
    /// Leave nothing out.
    pub(super) all: bool,
    /// Every application with the mesh.
    pub(super) applications: bool,
    /// Only what is named so.
    pub(super) name: Option<String>,
    /// Only what is as well as one of these words says.
    pub(super) verdict: Vec<String>,
    /// Tell it again whenever it changes.
    pub(super) watch: bool,
    pub(super) verdicts: bool,
    pub(super) pulses: bool,
    /// Verdicts on this scope and those below it.
    pub(super) scope: Option<String>,
    /// The tag that is known already.
    pub(super) known: Option<HeaderValue>,
    /// The id of what was heard last.
    pub(super) heard: Option<String>,
    /// Where whoever asks has a role.
    pub(super) within: Scope,
    /// Who asks.
    pub(super) user: String,
}

impl HealthQuery {
    fn of(query: &str, headers: &HeaderMap) -> Self {
        let mut asked = Self {
            known: headers.get(header::IF_NONE_MATCH).cloned(),
            heard: (headers.get(LAST_EVENT_ID))
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            verdicts: true,
            pulses: true,
            ..Self::default()
        };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_set = !matches!(&*value, "0" | "false");
            match &*key {
                "probe" => asked.probe = is_set,
                "all" => asked.all = is_set,
                "applications" => asked.applications = is_set,
                "watch" => asked.watch = is_set,
                "q" => asked.name = Some(value.trim().to_owned()).filter(|name| !name.is_empty()),
                "verdict" => {
                    let words = value.split(',').map(|word| word.trim().to_lowercase());
                    asked.verdict.extend(words.filter(|word| !word.is_empty()));
                }
                "scope" => asked.scope = Some(value.into_owned()).filter(|scope| !scope.is_empty()),
                "topics" => {
                    asked.verdicts = value.split(',').any(|topic| topic == VERDICT);
                    asked.pulses = value.split(',').any(|topic| topic == PULSE);
                }
                _ => {}
            }
        }
        asked
    }

    /// Whether somebody wants to know of that scope.
    pub(super) fn wants(&self, scope: &str) -> bool {
        let Some(wanted) = &self.scope else {
            return true;
        };
        let rest = scope.strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl<S: Sync> FromRequestParts<S> for HealthQuery {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut asked = Self::of(parts.uri.query().unwrap_or_default(), &parts.headers);
        let access = parts.extensions.get::<Access>();
        // Nobody has a role nowhere.
        let nowhere = || Scope::Namespaces(BTreeSet::new());
        asked.user = access.map(|access| access.user.clone()).unwrap_or_default();
        asked.within = access.map_or_else(nowhere, |access| access.scope.clone());
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> HealthQuery {
        HealthQuery::of(query, &HeaderMap::new())
    }

    #[test]
    fn switches_are_on_unless_somebody_says_no() {
        for on in ["probe", "probe=1", "probe=true", "x=y&probe=yes"] {
            assert!(asked(on).probe, "{on}");
        }
        for off in ["", "probe=0", "probe=false", "prober=1"] {
            assert!(!asked(off).probe, "{off}");
        }
        assert!(asked("all").all && asked("watch=1").watch);
    }

    #[test]
    fn names_and_verdicts_are_asked_for_by_words() {
        let nothing = asked("q=&verdict=");
        assert_eq!((nothing.name, nothing.verdict.len()), (None, 0));
        let both = asked("q=%20Shop%2F&verdict=Unhealthy,degraded&verdict=unknown");
        assert_eq!(both.name.as_deref(), Some("Shop/"));
        assert_eq!(both.verdict, ["unhealthy", "degraded", "unknown"]);
    }

    #[test]
    fn topics_and_scopes_narrow_what_is_told() {
        let everything = asked("");
        assert!(everything.verdicts && everything.pulses && everything.wants("mesh"));
        let pulses = asked("topics=pulse");
        assert!(pulses.pulses && !pulses.verdicts);
        let shop = asked("topics=verdict,other&scope=application%2Fshop");
        assert!(shop.verdicts && !shop.pulses);
        assert!(shop.wants("application/shop") && shop.wants("application/shop/team-a"));
        assert!(!shop.wants("application/shopping") && !shop.wants("mesh"));
    }
}
