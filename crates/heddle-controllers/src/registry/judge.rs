//! From a reading to what is to be written: the one place where evidence becomes knowledge. Pure.
//!
//! ```text
//!   seen, new or changed   ->  revision, bundle, `seen`
//!   seen, unusable         ->  `seen` says so; what was good stays
//!   proven absent          ->  counted in `seen`, unless many disappear at once: then nobody believes it yet
//!   unknown                ->  nothing
//! ```
//! Promises: what is unknown changes nothing; no absence is believed of a reading that had trouble; a reading that says
//! what the last one said is answered with nothing to write. Whether a bundle is withdrawn is decided elsewhere, from `seen`.

use std::collections::{BTreeMap, BTreeSet};

use heddle_api::Bundle;
use heddle_api::bundle::{Absence, BundleSpec, MarkReason, Seen};
use heddle_api::bundle_revision::BundleRevisionSpec;
use heddle_api::evidence::{Found, ImageEvidence, ImageName, Known, Reading};

use heddle_api::names;
use heddle_api::registry::{IdScheme, RegistrySpec, SUSPECTS_MAX, Suspicion};
use heddle_api::sync_run::{Finding, FindingVerdict, ImageError};
use kube::ResourceExt as _;

use heddle_api::offer::bundle::{Origin, service_id};

/// As many as a SyncRun holds.
const FINDINGS_MAX: usize = 200;
const ERRORS_MAX: usize = 100;
/// One line for people.
const MESSAGE_CHARS_MAX: usize = 500;

/// Everything that a judgement depends on.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// Name of the Registry.
    pub registry: &'a str,
    pub spec: &'a RegistrySpec,
    /// What was suspected after the reading before.
    pub suspicion: Option<&'a Suspicion>,
    /// The suspicion that somebody approved.
    pub approved: Option<&'a str>,
    /// Name of the SyncRun.
    pub run: &'a str,
    /// All bundles of the registry.
    pub bundles: &'a [Bundle],
    /// Names of their revisions.
    pub revisions: &'a BTreeSet<String>,
    pub reading: &'a Reading,
}

/// What is to be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Judged {
    /// By name.
    pub new_revisions: BTreeMap<String, BundleRevisionSpec>,
    /// By name.
    pub new_bundles: BTreeMap<String, BundleSpec>,
    /// What was seen of bundles by name, where it is new.
    pub seen: BTreeMap<String, Seen>,
    /// Absences, which are written last.
    pub absent: BTreeMap<String, Seen>,
    pub suspicion: Option<Suspicion>,
    pub counts: ReadingCounts,
    pub findings: Vec<Finding>,
    pub errors: Vec<ImageError>,
}

/// How much there was of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadingCounts {
    pub present: i32,
    pub absent: i32,
    pub unknown: i32,
    pub added: i32,
    pub updated: i32,
    pub marked: i32,
    pub unmarked: i32,
}

/// What is known of bundles before a reading. An image whose revision is missing is looked at anew, and so is, `afresh`,
/// one that was rejected: a newer release may understand it.
pub(crate) fn known(bundles: &[Bundle], revisions: &BTreeSet<String>, afresh: bool) -> Vec<Known> {
    let known = bundles.iter().map(|bundle| {
        let seen = seen_of(bundle);
        let is_there = |name: &String| revisions.contains(name);
        let is_understood = match &seen.rejected {
            Some(_) => !afresh,
            None => seen.revision.as_ref().is_some_and(is_there),
        };
        Known {
            image: image_of(bundle),
            digest: seen.digest.filter(|_| is_understood),
        }
    });
    known.collect()
}

/// Whether so many readings proved a bundle's absence that it is withdrawn.
pub(crate) fn is_confirmed(absence: &Absence, spec: &RegistrySpec) -> bool {
    absence.readings >= spec.removal_confirmations
}

pub(crate) fn judge(case: &Case<'_>) -> Judged {
    let mut judge = Judge {
        known: case
            .bundles
            .iter()
            .map(|bundle| (image_of(bundle), bundle))
            .collect(),
        judged: Judged::default(),
        absences: BTreeMap::new(),
        case,
    };
    let mut unheard: BTreeSet<ImageName> = judge.known.keys().cloned().collect();
    let mut heard = BTreeSet::new();
    for sighting in &case.reading.sightings {
        unheard.remove(&sighting.image);
        if heard.insert(&sighting.image) {
            judge.take_in(&sighting.image, &sighting.verdict);
        }
    }
    judge.judged.counts.unknown += count(unheard.len());
    judge.weigh_absences();
    let mut judged = judge.judged;
    judged.findings.truncate(FINDINGS_MAX);
    judged.errors.truncate(ERRORS_MAX);
    judged
}

struct Judge<'a> {
    case: &'a Case<'a>,
    known: BTreeMap<ImageName, &'a Bundle>,
    judged: Judged,
    /// By name of the bundle.
    absences: BTreeMap<String, (&'a Bundle, MarkReason, String)>,
}

impl<'a> Judge<'a> {
    fn take_in(&mut self, image: &ImageName, verdict: &ImageEvidence) {
        let bundle = self.known.get(image).copied();
        match (verdict, bundle) {
            (ImageEvidence::Unchanged, Some(bundle)) => {
                let seen = seen_of(bundle);
                self.see(bundle, seen);
            }
            (ImageEvidence::Unchanged, None) => self.judged.counts.unknown += 1,
            (ImageEvidence::Present(found), _) => self.present(image, bundle, found),
            (ImageEvidence::Rejected { digest, why }, _) => {
                self.rejected(image, bundle, digest, why)
            }
            (ImageEvidence::Absent { reason, why }, Some(bundle)) => {
                if self.case.reading.trouble.is_some() {
                    self.unknown(image, &format!("not believed of a reading in part: {why}"));
                } else {
                    let name = bundle.name_any();
                    self.absences.insert(name, (bundle, *reason, why.clone()));
                }
            }
            // Such as a tag that somebody asked for by name.
            (ImageEvidence::Absent { why, .. }, None) => {
                self.judged.counts.absent += 1;
                self.error(image, why);
            }
            (ImageEvidence::Unknown { why }, _) => self.unknown(image, why),
        }
    }

    fn unknown(&mut self, image: &ImageName, why: &str) {
        self.judged.counts.unknown += 1;
        self.error(image, why);
    }

    fn present(&mut self, image: &ImageName, bundle: Option<&'a Bundle>, found: &Found) {
        let name = bundle_name(self.case.registry, image);
        let revision = names::revision(&name, found.digest());
        if !self.case.revisions.contains(&revision) {
            let spec = self.revision(&name, found);
            self.judged.new_revisions.insert(revision.clone(), spec);
        }
        let before = bundle.map(seen_of).unwrap_or_default();
        let is_new = before.revision.as_ref() != Some(&revision);
        let seen = Seen {
            digest: Some(found.digest().to_owned()),
            revision: Some(revision),
            ..Seen::default()
        };
        match bundle {
            Some(bundle) => {
                self.judged.counts.updated += i32::from(is_new);
                self.see(bundle, seen);
            }
            None => {
                let called = found.description.get("name").and_then(|name| name.as_str());
                self.add(name, image, called.unwrap_or_default(), seen);
            }
        }
        if is_new {
            let version = found.version.as_ref().map(|(version, _)| version.as_str());
            let message = match version {
                Some(version) => format!("version {version}, {}", found.manifest_digest),
                None => found.manifest_digest.clone(),
            };
            self.finding(image, FindingVerdict::Present, &message);
        }
    }

    fn rejected(&mut self, image: &ImageName, bundle: Option<&'a Bundle>, digest: &str, why: &str) {
        let before = bundle.map(seen_of).unwrap_or_default();
        let seen = Seen {
            digest: Some(digest.to_owned()),
            revision: before.revision.clone(),
            rejected: Some(one_line(why)),
            absence: None,
        };
        let is_new = (&before.digest, &before.rejected) != (&seen.digest, &seen.rejected);
        if is_new {
            self.finding(image, FindingVerdict::Rejected, why);
        }
        match bundle {
            Some(bundle) => self.see(bundle, seen),
            None => {
                // Where ids come from names, there is none without a description.
                if self.case.spec.id_scheme == IdScheme::Uuid {
                    let name = bundle_name(self.case.registry, image);
                    self.add(name, image, "", seen);
                } else {
                    self.judged.counts.present += 1;
                }
                self.error(image, why);
            }
        }
    }

    /// A bundle that is there, as `seen` says.
    fn see(&mut self, bundle: &Bundle, seen: Seen) {
        let before = seen_of(bundle);
        let spec = self.case.spec;
        let was_gone = before.absence.as_ref();
        let was_gone = was_gone.is_some_and(|absence| is_confirmed(absence, spec));
        let seen = Seen {
            absence: None,
            ..seen
        };
        self.judged.counts.present += 1;
        self.judged.counts.unmarked += i32::from(was_gone);
        if seen != before {
            self.judged.seen.insert(bundle.name_any(), seen);
        }
    }

    fn add(&mut self, name: String, image: &ImageName, called: &str, seen: Seen) {
        let case = self.case;
        let origin = Origin {
            registry: case.registry,
            repository: &image.repository,
            track: &image.track,
            is_default_track: image.track == case.spec.tags.default,
        };
        let spec = BundleSpec {
            registry: case.registry.to_owned(),
            repository: image.repository.clone(),
            track: image.track.clone(),
            service_id: service_id(case.spec.id_scheme, &origin, called),
        };
        self.judged.counts.present += 1;
        self.judged.counts.added += 1;
        self.judged.seen.insert(name.clone(), seen);
        self.judged.new_bundles.insert(name, spec);
    }

    fn revision(&self, bundle: &str, found: &Found) -> BundleRevisionSpec {
        let (bundle_version, version_source) = found.version.clone().unzip();
        BundleRevisionSpec {
            bundle: bundle.to_owned(),
            registry: self.case.registry.to_owned(),
            image: found.location.clone(),
            manifest_digest: found.manifest_digest.clone(),
            config_digest: found.config_digest.clone(),
            bundle_version,
            version_source,
            runtime: found.runtime,
            description: found.description.clone(),
        }
    }

    /// Believes absences, or not yet.
    fn weigh_absences(&mut self) {
        let (case, absences) = (self.case, std::mem::take(&mut self.absences));
        self.judged.counts.absent += count(absences.len());
        if case.reading.trouble.is_some() {
            self.judged.suspicion = case.suspicion.cloned();
            return;
        }
        let is_gone = |bundle: &Bundle| {
            let absence = seen_of(bundle).absence;
            absence.is_some_and(|absence| is_confirmed(&absence, case.spec))
        };
        let here = case.bundles.iter().filter(|bundle| !is_gone(bundle));
        let going = absences.iter().filter(|(_, (bundle, ..))| !is_gone(bundle));
        let going: Vec<&str> = going.map(|(name, _)| name.as_str()).collect();
        let suspicion = self.suspicion(&going, here.count());
        if let Some(suspicion) = &suspicion
            && !self.is_believed(suspicion)
        {
            self.judged.suspicion = Some(suspicion.clone());
            return;
        }
        for (name, (bundle, reason, why)) in absences {
            self.absent(name, bundle, reason, &why, suspicion.is_some());
        }
    }

    /// `None` unless suspiciously much would go at once.
    fn suspicion(&self, going: &[&str], here: usize) -> Option<Suspicion> {
        let limits = &self.case.spec.mass_removal;
        let (gone, here) = (count(going.len()), count(here));
        let is_many = gone >= limits.min
            && i64::from(gone) * 100 >= i64::from(limits.percent) * i64::from(here);
        let id = is_many.then(|| names::hashed("removal", going))?;
        let before = self.case.suspicion.filter(|before| before.id == id);
        Some(Suspicion {
            readings: before.map_or(0, |before| before.readings) + 1,
            count: gone,
            bundles: (going.iter().take(SUSPECTS_MAX))
                .map(|name| (*name).to_owned())
                .collect(),
            id,
        })
    }

    fn is_believed(&self, suspicion: &Suspicion) -> bool {
        self.case.approved == Some(&suspicion.id)
            || suspicion.readings >= self.case.spec.mass_removal.confirmations
    }

    /// A bundle that is proven absent. What was suspected and confirmed needs no more proof, nor does what the registry's
    /// settings say.
    fn absent(
        &mut self,
        name: String,
        bundle: &Bundle,
        reason: MarkReason,
        why: &str,
        is_beyond_doubt: bool,
    ) {
        let enough = self.case.spec.removal_confirmations;
        let before = seen_of(bundle);
        let earlier = before.absence.as_ref();
        let counted = earlier.map_or(0, |absence| absence.readings);
        let is_certain = is_beyond_doubt || reason == MarkReason::Filtered;
        let readings = if is_certain {
            enough
        } else {
            counted.saturating_add(1).min(enough).max(counted)
        };
        let run = earlier.map_or(self.case.run, |absence| absence.sync_run.as_str());
        let seen = Seen {
            absence: Some(Absence {
                reason,
                readings,
                sync_run: run.to_owned(),
            }),
            ..before.clone()
        };
        self.judged.counts.marked += i32::from(counted < enough && readings >= enough);
        if earlier.is_none() {
            let image = image_of(bundle);
            self.finding(&image, FindingVerdict::Absent, why);
        }
        if seen != before {
            self.judged.absent.insert(name, seen);
        }
    }

    fn finding(&mut self, image: &ImageName, verdict: FindingVerdict, message: &str) {
        self.judged.findings.push(Finding {
            image: image.to_string(),
            verdict,
            message: one_line(message),
        });
    }

    fn error(&mut self, image: &ImageName, message: &str) {
        self.judged.errors.push(ImageError {
            image: image.to_string(),
            message: one_line(message),
        });
    }
}

pub(crate) fn image_of(bundle: &Bundle) -> ImageName {
    ImageName {
        repository: bundle.spec.repository.clone(),
        track: bundle.spec.track.clone(),
    }
}

fn bundle_name(registry: &str, image: &ImageName) -> String {
    names::bundle(registry, &image.repository, &image.track)
}

fn seen_of(bundle: &Bundle) -> Seen {
    let status = bundle.status.as_ref();
    status
        .and_then(|status| status.seen.clone())
        .unwrap_or_default()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
