//! The index of a repository of charts: what it says there is. Pure: bytes in, charts out.
//!
//! It comes from strangers and is one file for everything, so it may be large: its size, its depth and what its aliases add
//! up to are bounded, and only what offerings are made of is kept. A text that is no index is no empty index.

use std::collections::BTreeMap;

use semver::Version;
use serde::Deserialize;
use serde_json::Value;

/// The largest that are known have some twenty megabytes.
pub(super) const INDEX_BYTES_MAX: usize = 32 << 20;
/// The most values an index may have, those that aliases repeat included: a chart has some thirty for each version.
const VALUES_MAX: usize = 4_000_000;
/// How deep values may lie in each other.
const DEPTH_MAX: usize = 32;
/// As long as Helm lets names be.
const NAME_BYTES_MAX: usize = 250;
/// A version is a word, not a text.
const VERSION_BYTES_MAX: usize = 128;

/// What a repository has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::registries) struct Index {
    pub(in crate::registries) charts: BTreeMap<String, Chart>,
    /// Whether it says when it was made, which every tool writes last: without that, it may have been cut short.
    pub(super) is_whole: bool,
}

/// One chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::registries) struct Chart {
    /// Newest first, without those whose version nobody could compare.
    pub(in crate::registries) releases: Vec<Release>,
    /// Of the newest release.
    pub(super) description: String,
    pub(super) icon: String,
    pub(super) home: String,
}

/// One version of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::registries) struct Release {
    pub(in crate::registries) version: Version,
    /// As the index spells it, which is how Helm is asked for it.
    pub(super) spelled: String,
}

impl Chart {
    /// What new instances can have, newest first: releases, or pre-releases where there are only those.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Release> {
        let is_release = |release: &&Release| release.version.pre.is_empty();
        let only_previews = !self.releases.iter().any(|release| is_release(&release));
        let offered = self.releases.iter();
        offered.filter(move |release| only_previews || is_release(release))
    }

    /// The release of a version, however it is spelled.
    pub(super) fn release(&self, text: &str) -> Option<&Release> {
        let version = version(text);
        let is_meant = |release: &&Release| {
            release.spelled == text || version.as_ref() == Some(&release.version)
        };
        self.releases.iter().find(is_meant)
    }
}

/// The file, as far as it is of interest.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "apiVersion")]
    api_version: String,
    /// Nothing at all is not the same as no entries.
    entries: Option<BTreeMap<String, Vec<Entry>>>,
    #[serde(default)]
    generated: Option<Value>,
}

/// One version of a chart. What is no text is as good as nothing: one author's slip must not cost the others.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    version: Value,
    #[serde(default)]
    description: Value,
    #[serde(default)]
    icon: Value,
    #[serde(default)]
    home: Value,
}

/// Reads an index, or says why it is none.
pub(in crate::registries) fn read(bytes: &[u8]) -> Result<Index, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: VALUES_MAX,
            max_events: 4 * VALUES_MAX,
            max_documents: 1,
            max_anchors: 256,
            max_aliases: 1024,
            max_merge_keys: 1024,
            max_recorded_anchor_events: 100_000,
            max_recorded_anchor_bytes: INDEX_BYTES_MAX,
            max_total_scalar_bytes: 2 * INDEX_BYTES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: DEPTH_MAX,
            max_alias_expansions_per_anchor: 1024,
        },
    };
    let file: File =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    if file.api_version != "v1" {
        return Err(format!(
            "its apiVersion is {:?}, and only v1 is known",
            file.api_version
        ));
    }
    let entries = file.entries.ok_or("it has no entries")?;
    let charts = entries.into_iter().filter(|(name, _)| is_chart(name));
    Ok(Index {
        charts: charts
            .map(|(name, entries)| (name, chart(entries)))
            .collect(),
        is_whole: file.generated.is_some_and(|at| !at.is_null()),
    })
}

fn chart(entries: Vec<Entry>) -> Chart {
    let mut known: Vec<(Release, Entry)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let spelled = entry.version.as_str().unwrap_or_default();
        if let Some(version) = version(spelled) {
            let spelled = spelled.to_owned();
            known.push((Release { version, spelled }, entry));
        }
    }
    // Of two that are equal the first in the file stays, whatever else the order of the file is.
    known.sort_by(|(a, _), (b, _)| b.version.cmp(&a.version));
    known.dedup_by(|(b, _), (a, _)| a.version == b.version);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut chart = Chart::default();
    let stable = known
        .iter()
        .find(|(release, _)| release.version.pre.is_empty());
    if let Some((_, newest)) = stable.or_else(|| known.first()) {
        chart.description = text(&newest.description);
        chart.icon = text(&newest.icon);
        chart.home = text(&newest.home);
    }
    chart.releases = known.into_iter().map(|(release, _)| release).collect();
    chart
}

/// As Helm reads them: a `v` before the number is no part of it.
fn version(text: &str) -> Option<Version> {
    if text.len() > VERSION_BYTES_MAX {
        return None;
    }
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

/// Whether text can be the name of a chart. Names come from strangers, and go into names of offerings and to the runner.
fn is_chart(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let first = name.bytes().next();
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(inner)
        && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests;
