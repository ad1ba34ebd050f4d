//! What the publish API of old Kyma asks a table: who asked for which events of an Application, whether anybody wants this
//! one, and until when that API is there for whom.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use heddle_api::Application;
use heddle_api::attributes::Attributes;
use heddle_api::filter::{Filter, FilterSource};
use heddle_api::well_known::{LEGACY_DEPRECATION, LEGACY_LINK, LEGACY_SUNSET};
use http::header::LINK;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::Table;

/// Alternatives of one filter that are looked at; who asks for more types in one filter lists them elsewhere.
const ALTERNATIVES_MAX: usize = 256;

/// Headers that tell publishers of an Application about the end of that API.
pub(super) type EndNotice = Vec<(HeaderName, HeaderValue)>;

/// By source: type and version of what is asked for, each once.
pub(super) type AskedFor = HashMap<String, Vec<(String, String)>>;

/// What an event must have, as far as a filter says so in plain words.
type ExactAttributes = BTreeMap<String, String>;

impl Table {
    /// Whether an event that came in at an entry is wanted by any consumer. It costs less than [`Table::matches`].
    pub(crate) fn is_wanted(&self, entry: &str, event: &dyn Attributes) -> bool {
        let Some(entry) = self.entries.get(entry) else {
            return false;
        };
        let mut wanted = false;
        self.index.candidates(&entry.reach, event, |number| {
            wanted = wanted || self.consumers[number as usize].predicate.matches(event);
        });
        wanted
    }

    /// Type and version of the events that Triggers ask for of an Application by name. The first question makes the list.
    pub(crate) fn asked_of(&self, application: &str) -> &[(String, String)] {
        let asked = self.asked_for.get_or_init(|| self.list_asked_for());
        asked.get(application).map_or(&[], Vec::as_slice)
    }

    /// What is said to publishers of an Application about the end of that API.
    pub(crate) fn legacy_notice(&self, application: &str) -> &[(HeaderName, HeaderValue)] {
        self.notices.get(application).map_or(&[], Vec::as_slice)
    }

    fn list_asked_for(&self) -> AskedFor {
        let mut asked: HashMap<String, BTreeSet<(String, String)>> = HashMap::new();
        let consumers = self.consumers.iter();
        for consumer in consumers.filter(|one| one.key.starts_with("trigger/")) {
            for exact in exactly(&consumer.filters) {
                let source = exact.get("source").or_else(|| exact.get("sourceid"));
                let (Some(source), Some(type_)) = (source, exact.get("type")) else {
                    continue;
                };
                let version = exact.get("eventtypeversion").cloned();
                let of_source = asked.entry(source.clone()).or_default();
                of_source.insert((type_.clone(), version.unwrap_or_default()));
            }
        }
        let sorted =
            |(source, of_source): (String, BTreeSet<_>)| (source, of_source.into_iter().collect());
        asked.into_iter().map(sorted).collect()
    }
}

/// What must be exactly so, for each alternative.
fn exactly(source: &FilterSource) -> Vec<ExactAttributes> {
    match source {
        FilterSource::Everything => Vec::new(),
        FilterSource::Attributes(attributes) => {
            let mut exact = attributes.clone();
            // An empty one asks only that the attribute is there.
            exact.retain(|_, value| !value.is_empty());
            vec![exact]
        }
        FilterSource::Filters(filters) => all_of(filters.iter().map(alternatives)),
    }
}

fn alternatives(filter: &Filter) -> Vec<ExactAttributes> {
    let nested = |filters: &[heddle_api::filter::Nested]| -> Vec<Vec<ExactAttributes>> {
        let read = filters.iter().map(|nested| nested.read().ok());
        read.map(|filter| {
            filter.map_or_else(
                || vec![ExactAttributes::new()],
                |filter| alternatives(&filter),
            )
        })
        .collect()
    };
    if !filter.any.is_empty() {
        let any = nested(&filter.any).into_iter().flatten();
        return any.take(ALTERNATIVES_MAX).collect();
    }
    if !filter.all.is_empty() {
        return all_of(nested(&filter.all).into_iter());
    }
    vec![filter.exact.clone()]
}

/// Every combination of alternatives that contradicts itself nowhere.
fn all_of(parts: impl Iterator<Item = Vec<ExactAttributes>>) -> Vec<ExactAttributes> {
    let mut combined = vec![ExactAttributes::new()];
    for part in parts {
        let mut next = Vec::new();
        for (one, other) in combined
            .iter()
            .flat_map(|one| part.iter().map(move |other| (one, other)))
            .take(ALTERNATIVES_MAX)
        {
            let mut both = one.clone();
            let agree = other.iter().all(|(name, value)| {
                let known = both.entry(name.clone()).or_insert_with(|| value.clone());
                known == value
            });
            if agree {
                next.push(both);
            }
        }
        combined = next;
    }
    combined
}

/// The notices of all Applications that have one. What cannot be understood says nothing.
pub(super) fn notices<'a>(
    applications: impl Iterator<Item = &'a Application>,
) -> HashMap<String, EndNotice> {
    let notice = |application: &Application| {
        let annotations = application.annotations();
        let time = |name| -> Option<Timestamp> { annotations.get(name)?.parse().ok() };
        let mut notice = EndNotice::new();
        let mut say = |name: HeaderName, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                notice.push((name, value));
            }
        };
        if let Some(since) = time(LEGACY_DEPRECATION) {
            let name = HeaderName::from_static("deprecation");
            say(name, format!("@{}", since.as_second()));
        }
        if let Some(until) = time(LEGACY_SUNSET) {
            // The format has no years before 1970 and none behind 9999.
            let until = SystemTime::from(until.max(Timestamp::UNIX_EPOCH));
            let name = HeaderName::from_static("sunset");
            say(name, httpdate::fmt_http_date(until));
        }
        let link = annotations.get(LEGACY_LINK);
        if let Some(link) = link.filter(|link| !link.contains(['<', '>', ' '])) {
            say(LINK, format!("<{link}>; rel=\"deprecation\""));
        }
        (application.name_any(), notice)
    };
    let all = applications.map(notice);
    all.filter(|(_, notice)| !notice.is_empty()).collect()
}
