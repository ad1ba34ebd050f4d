//! What a chart is offered as: a description of a bundle that nobody wrote. Pure.
//!
//! One plan, whose parameters are what the runner needs to know. Repository and chart are said once and for all, as lists of
//! one; the version is one of those that the repository has, unless the track is a version itself.

use serde_json::{Map, Value, json};

use super::index::{Chart, Release};
use crate::images::Digest;

/// Versions that are offered; consoles show them as a list.
const VERSIONS_MAX: usize = 50;
/// The longest description that is handed on.
const DESCRIPTION_CHARS_MAX: usize = 1000;
/// The longest link that is handed on; an icon may as well be the whole picture.
const LINK_CHARS_MAX: usize = 1024;
/// The longest values that an instance may have, as YAML.
const VALUES_CHARS_MAX: usize = 64 * 1024;
/// 32 bits of the runner's digest: what tells the runners of one version of a chart apart.
const RUNNER_CHARS: usize = 8;

/// What is offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'a> {
    /// Address of the repository.
    pub(super) repository: &'a str,
    pub(super) name: &'a str,
    pub(super) chart: &'a Chart,
    /// What new instances get by default.
    pub(super) release: &'a Release,
    /// Whether any other version can be chosen.
    pub(super) is_fixed: bool,
    pub(super) runner: &'a Digest,
}

impl Offer<'_> {
    pub(super) fn description(&self) -> Value {
        let Self { name, chart, .. } = self;
        let said = cut(&chart.description, DESCRIPTION_CHARS_MAX);
        let said = if said.is_empty() {
            format!("the Helm chart {name}")
        } else {
            said
        };
        let versions: Vec<&str> = if self.is_fixed {
            vec![&self.release.spelled]
        } else {
            let offered = self.chart.offered().take(VERSIONS_MAX);
            offered.map(|release| release.spelled.as_str()).collect()
        };
        json!({
            "version": "1.0",
            "name": name,
            "description": said,
            "bindable": false,
            "async": "optional",
            "tags": ["helm"],
            "metadata": self.metadata(),
            "bundleVersion": self.version(),
            "plans": [{
                "name": "default",
                "description": format!("a release of the Helm chart {name}"),
                "free": true,
                "metadata": {},
                "parameters": [
                    one_of("repo", "Repository", &[self.repository], false),
                    one_of("chart", "Chart", &[name], false),
                    one_of("version", "Version of the chart", &versions, true),
                    {
                        "name": "values", "title": "Values, as YAML", "type": "string", "default": "",
                        "required": false, "updatable": true, "maxlength": VALUES_CHARS_MAX, "display_type": "textarea",
                    },
                ],
            }],
        })
    }

    /// The chart's version, told apart by the runner, as builds of one version are.
    fn version(&self) -> String {
        let version = &self.release.version;
        let sign = if version.build.is_empty() { '+' } else { '.' };
        let runner = self.runner.hex();
        let runner = runner.get(..RUNNER_CHARS).unwrap_or(runner);
        format!("{version}{sign}runner.{runner}")
    }

    fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert(
            "displayName".to_owned(),
            format!("{} (Helm)", self.name).into(),
        );
        let links = [
            ("imageUrl", &self.chart.icon),
            ("documentationUrl", &self.chart.home),
        ];
        for (key, link) in links {
            let is_link = link.starts_with("https://") || link.starts_with("http://");
            if is_link && link.len() <= LINK_CHARS_MAX && !link.contains(char::is_control) {
                metadata.insert(key.to_owned(), link.as_str().into());
            }
        }
        metadata
    }
}

/// A parameter with a choice, the first of which is made unless somebody makes another.
fn one_of(name: &str, title: &str, choices: &[&str], updatable: bool) -> Value {
    json!({
        "name": name, "title": title, "type": "enum", "enum": choices, "default": choices.first(),
        "required": true, "updatable": updatable,
    })
}

/// One paragraph of bounded length.
fn cut(text: &str, chars_max: usize) -> String {
    let plain = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<&str> = plain.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests;
