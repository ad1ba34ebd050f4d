//! Tags by what they look like: which of a repository's tags the settings mean. Pure.
//!
//! | written         | means                                                                       |
//! |-----------------|-----------------------------------------------------------------------------|
//! | `stable`        | that tag                                                                    |
//! | `v1.*`, `rc-?`  | tags of that form: `*` is any number of characters, `?` is one              |
//! | `>=1.2, <2`     | tags that are versions in that range, with or without a `v` before them      |
//!
//! A tag by name is asked for like any other. For the rest the registry's list of tags is needed, and of what it has only
//! the newest few are taken up. What is known stays known as long as it is meant, also when newer ones push it off that list.

use std::cmp::Reverse;

use regex::Regex;
use semver::{Version, VersionReq};

use super::address::is_tag;

/// As many tags of one repository are taken up; each is an offering.
const CHOSEN_MAX: usize = 20;

/// One way to mean tags.
#[derive(Debug)]
pub(super) enum Selector {
    Tag(String),
    Form(Regex),
    Range(VersionReq),
}

impl Selector {
    /// Reads a selector; an error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with(['<', '>', '=', '^', '~']) {
            let range = VersionReq::parse(text);
            return range
                .map(Self::Range)
                .map_err(|error| format!("is no range of versions: {error}"));
        }
        if text.contains(['*', '?']) {
            // A tag in which the signs stand for letters, so that nothing else can be in it.
            if !is_tag(&text.replace(['*', '?'], "x")) {
                return Err("is no form that a tag can have".to_owned());
            }
            let form = regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".");
            let form = Regex::new(&format!("^{form}$"));
            return form.map(Self::Form).map_err(|error| error.to_string());
        }
        if is_tag(text) {
            return Ok(Self::Tag(text.to_owned()));
        }
        Err("cannot be a tag".to_owned())
    }

    /// Whether it means a tag.
    pub(super) fn means(&self, tag: &str) -> bool {
        match self {
            Self::Tag(meant) => meant == tag,
            Self::Form(form) => form.is_match(tag),
            Self::Range(range) => version(tag).is_some_and(|version| range.matches(&version)),
        }
    }
}

/// The tags that selectors mean, newest versions first and then whatever is no version, and no more than are taken up.
pub(super) fn choose<'a>(selectors: &[Selector], tags: &'a [String]) -> Vec<&'a str> {
    let meant = |tag: &&String| is_tag(tag) && selectors.iter().any(|one| one.means(tag));
    let mut chosen: Vec<&str> = tags.iter().filter(meant).map(String::as_str).collect();
    chosen.sort_by_cached_key(|tag| Reverse((version(tag), *tag)));
    chosen.dedup();
    chosen.truncate(CHOSEN_MAX);
    chosen
}

fn version(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

#[cfg(test)]
mod tests;
