//! Which images are looked at: the registry's settings against what is listed and what is known. Pure.
//!
//! A repository is admitted when a white list matches all of its name, with or without the organisation, and no black list
//! does. Without a white list nothing is. The registry's default tag and those it selects are followed in every admitted
//! repository; named tags need no white list. What is known and not admitted any more is absent, without a question.

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::evidence::{ImageName, Known};
use heddle_api::registry::RegistrySpec;
use regex::{Regex, RegexBuilder};

use super::address::{is_repository, is_tag};
use super::selector::{self, Selector};

/// A compiled expression is not larger; they are compiled anew for every reading.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The settings, compiled.
#[derive(Debug)]
pub(super) struct Admission {
    org: Option<String>,
    white: Vec<Regex>,
    black: Vec<Regex>,
    default_tag: String,
    /// Further tags of every repository.
    select: Vec<Selector>,
    /// Repositories to look at beside the listed ones.
    images: Vec<String>,
    /// Repository and tag.
    named: Vec<(String, String)>,
}

/// What is to be asked, and what need not be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) questions: Vec<Question>,
    /// Known, and not admitted any more.
    pub(super) filtered: Vec<ImageName>,
}

/// An image to ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) image: ImageName,
    /// The digest that was seen last.
    pub(super) known: Option<String>,
    /// Whether somebody counts on it: it is known, or was asked for by name. That it is not there is then worth telling.
    pub(super) expected: bool,
}

impl Admission {
    /// Checks and compiles the settings. An error names what is wrong with them.
    pub(super) fn new(spec: &RegistrySpec) -> Result<Self, String> {
        let org = spec
            .org
            .as_deref()
            .map(|org| org.trim_matches('/').to_owned());
        let org = org.filter(|org| !org.is_empty());
        if let Some(org) = &org
            && !is_repository(org)
        {
            return Err(format!(
                "org {org:?} cannot be a part of a repository's name"
            ));
        }
        let with_org = |field: &str, name: &str| {
            let whole = match &org {
                Some(org) if !name.starts_with(&format!("{org}/")) => format!("{org}/{name}"),
                _ => name.to_owned(),
            };
            if is_repository(&whole) {
                Ok(whole)
            } else {
                Err(format!(
                    "{field} {name:?} cannot be the name of a repository"
                ))
            }
        };
        let tag = |field: &str, tag: &str| {
            if is_tag(tag) {
                Ok(tag.to_owned())
            } else {
                Err(format!("{field} {tag:?} cannot be a tag"))
            }
        };
        let select = spec.tags.select.iter().map(|text| {
            Selector::parse(text).map_err(|why| format!("tags.select: {text:?} {why}"))
        });
        let images = spec.images.iter().map(|name| with_org("images:", name));
        let named = spec.tags.named.iter().map(|named| {
            let repository = with_org("tags.named: image", &named.image)?;
            Ok((repository, tag("tags.named: tag", &named.tag)?))
        });
        Ok(Self {
            white: compile("whiteList", &spec.white_list)?,
            black: compile("blackList", &spec.black_list)?,
            default_tag: tag("tags.default", &spec.tags.default)?,
            select: select.collect::<Result<_, String>>()?,
            images: images.collect::<Result<_, String>>()?,
            named: named.collect::<Result<_, String>>()?,
            org,
        })
    }

    /// Whether a listing could tell anything.
    pub(super) fn wants_listing(&self) -> bool {
        !self.white.is_empty()
    }

    /// Whether there is something to look at without a listing.
    pub(super) fn names_images(&self) -> bool {
        !self.images.is_empty() || !self.named.is_empty()
    }

    /// Repositories of which all tags have to be known: none, unless tags are selected by something else than their name.
    pub(super) fn wants_tags(&self, listed: &BTreeSet<String>) -> Vec<String> {
        let by_name = |one: &Selector| matches!(one, Selector::Tag(_));
        if self.select.iter().all(by_name) {
            return Vec::new();
        }
        let admitted = self.admitted(listed);
        admitted.cloned().collect()
    }

    fn admitted<'a>(&'a self, listed: &'a BTreeSet<String>) -> impl Iterator<Item = &'a String> {
        let all = listed.iter().chain(&self.images);
        all.filter(|it| self.admits(it))
    }

    /// What to ask, given what is listed and known, and the tags of repositories where they were wanted. In order, each
    /// image once.
    pub(super) fn plan(
        &self,
        listed: &BTreeSet<String>,
        tags: &BTreeMap<String, Vec<String>>,
        known: &[Known],
    ) -> Plan {
        let mut questions: BTreeMap<ImageName, Question> = BTreeMap::new();
        let mut ask = |repository: &str, track: &str, expected: bool| {
            let image = ImageName {
                repository: repository.to_owned(),
                track: track.to_owned(),
            };
            let question = Question {
                image: image.clone(),
                known: None,
                expected,
            };
            questions.entry(image).or_insert(question).expected |= expected;
        };
        for repository in self.admitted(listed) {
            ask(repository, &self.default_tag, false);
            for one in &self.select {
                if let Selector::Tag(tag) = one {
                    ask(repository, tag, false);
                }
            }
            let tags = tags.get(repository).map_or(&[][..], Vec::as_slice);
            for tag in selector::choose(&self.select, tags) {
                ask(repository, tag, false);
            }
        }
        for (name, tag) in &self.named {
            // Without an organisation in the settings, a name without one means every repository of that name.
            let meant = listed
                .iter()
                .filter(|repository| self.is_called(repository, name));
            let mut meant: Vec<&String> = meant.collect();
            let known_as = known.iter().map(|known| &known.image.repository);
            meant.extend(known_as.filter(|repository| self.is_called(repository, name)));
            if meant.is_empty() {
                meant.push(name);
            }
            for repository in meant.into_iter().filter(|it| !self.is_black(it)) {
                ask(repository, tag, true);
            }
        }
        let mut plan = Plan::default();
        for known in known {
            if !self.admits_image(&known.image) {
                plan.filtered.push(known.image.clone());
                continue;
            }
            ask(&known.image.repository, &known.image.track, true);
        }
        plan.questions = questions.into_values().collect();
        for known in known {
            let found = plan
                .questions
                .binary_search_by(|it| it.image.cmp(&known.image));
            if let Ok(index) = found {
                plan.questions[index].known.clone_from(&known.digest);
            }
        }
        plan
    }

    fn admits_image(&self, image: &ImageName) -> bool {
        let by_name = |(name, tag): &(String, String)| {
            *tag == image.track && self.is_called(&image.repository, name)
        };
        let is_selected = image.track == self.default_tag
            || self.select.iter().any(|one| one.means(&image.track));
        let named = self.named.iter().any(by_name) && !self.is_black(&image.repository);
        (is_selected && self.admits(&image.repository)) || named
    }

    /// Whether the default tag of a repository is followed.
    fn admits(&self, repository: &str) -> bool {
        self.is_of_org(repository)
            && matches(&self.white, repository, self.short(repository))
            && !self.is_black(repository)
    }

    fn is_black(&self, repository: &str) -> bool {
        matches(&self.black, repository, self.short(repository))
    }

    fn is_of_org(&self, repository: &str) -> bool {
        let org = self.org.as_deref();
        org.is_none_or(|org| strip(repository, org).is_some())
    }

    /// Whether a repository is meant by a name, with or without its organisation.
    fn is_called(&self, repository: &str, name: &str) -> bool {
        repository == name || (self.is_of_org(repository) && self.short(repository) == name)
    }

    /// A repository without its organisation.
    fn short<'a>(&self, repository: &'a str) -> &'a str {
        let without = match &self.org {
            Some(org) => strip(repository, org),
            None => repository.split_once('/').map(|(_, name)| name),
        };
        without.unwrap_or(repository)
    }
}

fn strip<'a>(repository: &'a str, org: &str) -> Option<&'a str> {
    repository.strip_prefix(org)?.strip_prefix('/')
}

fn matches(expressions: &[Regex], repository: &str, short: &str) -> bool {
    expressions
        .iter()
        .any(|it| it.is_match(repository) || it.is_match(short))
}

/// Whether a text can stand in a white list or a black list; why not, if not.
pub fn check_pattern(text: &str) -> Result<(), String> {
    expression(text).map(drop)
}

fn compile(field: &str, texts: &[String]) -> Result<Vec<Regex>, String> {
    let one = |text: &String| {
        expression(text)
            .map_err(|why| format!("{field} {text:?} is not a regular expression: {why}"))
    };
    texts.iter().map(one).collect()
}

/// An expression that matches all of a name.
fn expression(text: &str) -> Result<Regex, String> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
    // The text must be sound by itself, or it could reach out of the parentheses.
    let whole = build(text).and_then(|_| build(&format!("^(?:{text})$")));
    whole.map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        reason.trim_start_matches("error: ").to_owned()
    })
}

#[cfg(test)]
mod tests;
