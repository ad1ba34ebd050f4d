use heddle_api::bundle::BundleStatus;
use heddle_api::bundle_revision::VersionSource;
use heddle_api::evidence::{ImageSighting, Trouble};
use serde_json::json;

use super::*;

const RUN: &str = "run-9";

fn spec(more: serde_json::Value) -> RegistrySpec {
    let mut spec = json!({"type": "apiv2", "url": "http://r.example", "whiteList": [".*"]});
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn image(repository: &str) -> ImageName {
    ImageName {
        repository: repository.to_owned(),
        track: "latest".to_owned(),
    }
}

/// A bundle whose image was accepted with the digest `d1`.
fn bundle(repository: &str, change: impl FnOnce(&mut Seen)) -> Bundle {
    let name = names::bundle("hub", repository, "latest");
    let mut seen = Seen {
        digest: Some("d1".to_owned()),
        revision: Some(names::revision(&name, "d1")),
        ..Seen::default()
    };
    change(&mut seen);
    let spec = BundleSpec {
        registry: "hub".to_owned(),
        repository: repository.to_owned(),
        track: "latest".to_owned(),
        service_id: format!("service-{repository}"),
    };
    let mut bundle = Bundle::new(&name, spec);
    bundle.status = Some(BundleStatus {
        seen: Some(seen),
        ..BundleStatus::default()
    });
    bundle
}

fn absent_since(run: &str, readings: i32) -> impl FnOnce(&mut Seen) {
    let absence = Absence {
        reason: MarkReason::TagRemoved,
        readings,
        sync_run: run.to_owned(),
    };
    |seen| seen.absence = Some(absence)
}

fn found(digest: &str) -> ImageEvidence {
    ImageEvidence::Present(Box::new(Found {
        manifest_digest: digest.to_owned(),
        config_digest: "c".to_owned(),
        state_digest: None,
        location: "r.example/x".to_owned(),
        description: json!({"name": "x"}).as_object().cloned().unwrap(),
        version: Some(("1.0.0".to_owned(), VersionSource::Label)),
        runtime: 2,
    }))
}

fn gone(reason: MarkReason) -> ImageEvidence {
    ImageEvidence::Absent {
        reason,
        why: "404".to_owned(),
    }
}

fn reading(sightings: &[(&str, ImageEvidence)]) -> Reading {
    let sightings = sightings.iter().map(|(repository, verdict)| ImageSighting {
        image: image(repository),
        verdict: verdict.clone(),
    });
    Reading {
        sightings: sightings.collect(),
        trouble: None,
        requests: 1,
    }
}

/// Judges with every revision that bundles name at hand.
fn judged(spec: &RegistrySpec, bundles: &[Bundle], reading: &Reading) -> Judged {
    with_suspicion(spec, bundles, reading, None, None)
}

fn with_suspicion(
    spec: &RegistrySpec,
    bundles: &[Bundle],
    reading: &Reading,
    suspicion: Option<&Suspicion>,
    approved: Option<&str>,
) -> Judged {
    judge(&Case {
        registry: "hub",
        spec,
        suspicion,
        approved,
        run: RUN,
        bundles,
        revisions: &revisions(bundles),
        reading,
    })
}

fn revisions(bundles: &[Bundle]) -> BTreeSet<String> {
    let named = bundles.iter().filter_map(|bundle| seen_of(bundle).revision);
    named.collect()
}

/// What a judgement wants written, in words.
fn writes(judged: &Judged) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(
        judged
            .new_revisions
            .values()
            .map(|spec| format!("revision {}", spec.manifest_digest)),
    );
    words.extend(
        judged
            .new_bundles
            .values()
            .map(|spec| format!("bundle {}", spec.repository)),
    );
    for seen in judged.seen.values().chain(judged.absent.values()) {
        let digest = seen.digest.as_deref().unwrap_or("-");
        let rejected = if seen.rejected.is_some() {
            " rejected"
        } else {
            ""
        };
        let absence = seen.absence.as_ref();
        let absence =
            absence.map_or_else(String::new, |a| format!(" {:?}x{}", a.reason, a.readings));
        words.push(format!("seen {digest}{rejected}{absence}"));
    }
    words
}

#[test]
fn every_kind_of_evidence_about_a_known_bundle_is_written_as_the_table_says() {
    use MarkReason::{Filtered, NotABundle, RemovedFromRegistry, TagRemoved};
    let rejected = |digest: &str| ImageEvidence::Rejected {
        digest: digest.to_owned(),
        why: "runtime 99".to_owned(),
    };
    let unknown = ImageEvidence::Unknown {
        why: "503".to_owned(),
    };
    let cases: [(&str, ImageEvidence, &[&str]); 11] = [
        ("unchanged", ImageEvidence::Unchanged, &[]),
        ("the same image again", found("d1"), &[]),
        ("another image", found("d2"), &["revision d2", "seen d2"]),
        ("an unusable image", rejected("d3"), &["seen d3 rejected"]),
        (
            "the tag is gone",
            gone(TagRemoved),
            &["seen d1 TagRemovedx1"],
        ),
        (
            "all is gone",
            gone(RemovedFromRegistry),
            &["seen d1 RemovedFromRegistryx1"],
        ),
        (
            "no label any more",
            gone(NotABundle),
            &["seen d1 NotABundlex1"],
        ),
        (
            "not admitted any more",
            gone(Filtered),
            &["seen d1 Filteredx1"],
        ),
        ("nobody can tell", unknown.clone(), &[]),
        ("an accept header is missing", unknown.clone(), &[]),
        ("a digest does not fit", unknown, &[]),
    ];
    for (what, verdict, expected) in cases {
        let bundles = [bundle("a", |_| {})];
        let judged = judged(&spec(json!({})), &bundles, &reading(&[("a", verdict)]));
        assert_eq!(writes(&judged), expected, "{what}");
    }
}

#[test]
fn an_unusable_image_keeps_the_last_good_revision() {
    let bundles = [bundle("a", |_| {})];
    let rejected = ImageEvidence::Rejected {
        digest: "d2".to_owned(),
        why: "runtime\n 99".to_owned(),
    };
    let judged = judged(
        &spec(json!({})),
        &bundles,
        &reading(&[("a", rejected.clone())]),
    );
    let seen = judged.seen.values().next().unwrap();
    assert_eq!(seen.revision, seen_of(&bundles[0]).revision);
    assert_eq!(seen.rejected.as_deref(), Some("runtime 99"));
    // The next reading says the same, so nothing is written.
    let seen = seen.clone();
    let bundles = [bundle("a", |known| *known = seen)];
    let again = judged_again(&bundles, &reading(&[("a", rejected)]));
    assert!(again.is_empty(), "{again:?}");
    let again = judged_again(&bundles, &reading(&[("a", ImageEvidence::Unchanged)]));
    assert!(again.is_empty(), "{again:?}");
}

fn judged_again(bundles: &[Bundle], reading: &Reading) -> Vec<String> {
    writes(&judged(&spec(json!({})), bundles, reading))
}

#[test]
fn new_images_become_bundles_and_their_ids_follow_from_where_they_are() {
    let reading = reading(&[("a", found("d1")), ("b", found("d1"))]);
    let judged = judged(&spec(json!({})), &[], &reading);
    assert_eq!(judged.counts.added, 2);
    assert_eq!(
        writes(&judged),
        [
            "revision d1",
            "revision d1",
            "bundle a",
            "bundle b",
            "seen d1",
            "seen d1"
        ]
        .map(str::to_owned)
        .into_iter()
        .collect::<Vec<_>>()
    );
    let ids: BTreeSet<&String> = judged
        .new_bundles
        .values()
        .map(|spec| &spec.service_id)
        .collect();
    assert_eq!(ids.len(), 2);
    for (name, spec) in &judged.new_bundles {
        assert_eq!(*name, names::bundle("hub", &spec.repository, "latest"));
    }
    for (name, spec) in &judged.new_revisions {
        assert_eq!(*name, names::revision(&spec.bundle, "d1"));
        assert_eq!(spec.bundle_version.as_deref(), Some("1.0.0"));
    }
}

#[test]
fn what_is_new_and_useless_is_shown_where_an_id_can_be_told() {
    let rejected = ImageEvidence::Rejected {
        digest: "d".to_owned(),
        why: "no plans".to_owned(),
    };
    let reading = reading(&[
        ("a", rejected),
        ("b", gone(MarkReason::TagRemoved)),
        ("c", ImageEvidence::Unchanged),
        (
            "d",
            ImageEvidence::Unknown {
                why: "503".to_owned(),
            },
        ),
    ]);
    let uuid = judged(&spec(json!({})), &[], &reading);
    assert_eq!(writes(&uuid), ["bundle a", "seen d rejected"]);
    let asb = judged(&spec(json!({"idScheme": "asb-md5"})), &[], &reading);
    assert!(writes(&asb).is_empty());
    // A tag that was asked for by name and is not there is told, and so are all others.
    let told: Vec<&str> = asb
        .errors
        .iter()
        .map(|error| error.image.as_str())
        .collect();
    assert_eq!(told, ["a:latest", "b:latest", "d:latest"]);
    assert_eq!((asb.counts.absent, asb.counts.unknown), (1, 2));
}

#[test]
fn a_reading_in_trouble_proves_no_absence() {
    let bundles = [
        bundle("a", |_| {}),
        bundle("b", |_| {}),
        bundle("c", |_| {}),
    ];
    for trouble in [
        Trouble::Unreachable("x".to_owned()),
        Trouble::AuthenticationFailed("x".to_owned()),
        Trouble::ListingIncomplete("x".to_owned()),
        Trouble::Misconfigured("x".to_owned()),
    ] {
        let reasons = [MarkReason::TagRemoved, MarkReason::Filtered];
        for reason in reasons {
            let mut reading = reading(&[("a", gone(reason)), ("b", found("d2"))]);
            reading.trouble = Some(trouble.clone());
            let judged = judged(&spec(json!({})), &bundles, &reading);
            assert!(judged.absent.is_empty(), "{trouble:?}");
            // What was seen was seen.
            assert_eq!(writes(&judged), ["revision d2", "seen d2"]);
            assert_eq!(
                judged.counts.unknown, 2,
                "a is not believed, c was not mentioned"
            );
        }
    }
}

#[test]
fn what_a_reading_does_not_mention_is_unknown() {
    let bundles = [bundle("a", |_| {}), bundle("b", |_| {})];
    let judged = judged(&spec(json!({})), &bundles, &reading(&[]));
    assert!(writes(&judged).is_empty());
    assert_eq!(judged.counts.unknown, 2);
}

#[test]
fn absences_are_counted_up_to_what_is_asked_for_and_no_further() {
    let spec = spec(json!({"removalConfirmations": 3}));
    let mut bundles = [bundle("a", |_| {})];
    let absent = reading(&[("a", gone(MarkReason::TagRemoved))]);
    for (expected, marked) in [(1, 0), (2, 0), (3, 1)] {
        let judged = judged(&spec, &bundles, &absent);
        let seen = judged.absent.values().next().unwrap().clone();
        let absence = seen.absence.clone().unwrap();
        assert_eq!((absence.readings, judged.counts.marked), (expected, marked));
        assert_eq!(absence.sync_run, RUN);
        bundles = [bundle("a", |known| *known = seen)];
        // What nobody can tell neither counts nor starts anew.
        let unknown = reading(&[(
            "a",
            ImageEvidence::Unknown {
                why: "503".to_owned(),
            },
        )]);
        assert!(writes(&self::judged(&spec, &bundles, &unknown)).is_empty());
    }
    let judged = judged(&spec, &bundles, &absent);
    assert!(writes(&judged).is_empty(), "{:?}", writes(&judged));
    assert_eq!(judged.counts.marked, 0);
}

#[test]
fn being_seen_ends_an_absence() {
    for verdict in [ImageEvidence::Unchanged, found("d1")] {
        let bundles = [bundle("a", absent_since("run-1", 1))];
        let judged = judged(&spec(json!({})), &bundles, &reading(&[("a", verdict)]));
        assert_eq!(writes(&judged), ["seen d1"]);
        assert_eq!(judged.counts.unmarked, 1);
    }
    // One that was not confirmed yet ends as well, and nothing was withdrawn.
    let bundles = [bundle("a", absent_since("run-1", 1))];
    let spec = spec(json!({"removalConfirmations": 2}));
    let judged = judged(
        &spec,
        &bundles,
        &reading(&[("a", ImageEvidence::Unchanged)]),
    );
    assert_eq!(writes(&judged), ["seen d1"]);
    assert_eq!(judged.counts.unmarked, 0);
}

#[test]
fn settings_need_no_confirmation() {
    let spec = spec(json!({"removalConfirmations": 5}));
    let bundles = [bundle("a", |_| {})];
    let judged = judged(
        &spec,
        &bundles,
        &reading(&[("a", gone(MarkReason::Filtered))]),
    );
    assert_eq!(writes(&judged), ["seen d1 Filteredx5"]);
}

const MANY: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn all_but(gone_count: usize) -> Reading {
    let verdict = |index: usize| {
        if index < gone_count {
            gone(MarkReason::RemovedFromRegistry)
        } else {
            ImageEvidence::Unchanged
        }
    };
    let sightings: Vec<(&str, ImageEvidence)> = MANY
        .iter()
        .enumerate()
        .map(|(index, name)| (*name, verdict(index)))
        .collect();
    reading(&sightings)
}

#[test]
fn many_disappearances_at_once_are_held_back_and_few_are_not() {
    let bundles = MANY.map(|name| bundle(name, |_| {}));
    for (gone_count, is_held) in [(1, false), (4, false), (5, true), (10, true)] {
        let judged = judged(&spec(json!({})), &bundles, &all_but(gone_count));
        assert_eq!(judged.suspicion.is_some(), is_held, "{gone_count} of 10");
        assert_eq!(judged.absent.len(), if is_held { 0 } else { gone_count });
        assert_eq!(
            judged.counts.absent as usize, gone_count,
            "it is told nevertheless"
        );
        assert_eq!(judged.counts.marked as usize, judged.absent.len());
    }
    // Below the number it is not many, whatever the share.
    let few = [bundle("a", |_| {}), bundle("b", |_| {})];
    let both = reading(&[
        ("a", gone(MarkReason::TagRemoved)),
        ("b", gone(MarkReason::TagRemoved)),
    ]);
    assert_eq!(judged(&spec(json!({})), &few, &both).absent.len(), 2);
    let strict = spec(json!({"massRemoval": {"percent": 100, "min": 2}}));
    assert!(judged(&strict, &few, &both).suspicion.is_some());
}

#[test]
fn a_suspicion_is_believed_after_equal_readings_and_not_after_others() {
    let bundles = MANY.map(|name| bundle(name, |_| {}));
    let spec = spec(json!({"removalConfirmations": 2}));
    let first = judged(&spec, &bundles, &all_but(10)).suspicion.unwrap();
    assert_eq!((first.count, first.readings), (10, 1));
    assert_eq!(first.bundles.len(), 10, "each of them is named");
    let second = with_suspicion(&spec, &bundles, &all_but(10), Some(&first), None);
    let second = second.suspicion.unwrap();
    assert_eq!((&second.id, second.readings), (&first.id, 2));
    let other = with_suspicion(&spec, &bundles, &all_but(9), Some(&second), None);
    let other = other.suspicion.unwrap();
    assert_ne!(other.id, second.id);
    assert_eq!(other.readings, 1);
    let third = with_suspicion(&spec, &bundles, &all_but(10), Some(&second), None);
    assert_eq!(third.suspicion, None);
    assert_eq!(third.absent.len(), 10);
    assert!(
        third
            .absent
            .values()
            .all(|seen| seen.absence.as_ref().unwrap().readings == 2),
        "what was suspected and confirmed needs no more proof"
    );
    // A failure in between neither confirms nor forgets.
    let mut failed = reading(&[]);
    failed.trouble = Some(Trouble::Unreachable("x".to_owned()));
    let between = with_suspicion(&spec, &bundles, &failed, Some(&second), None);
    assert_eq!(between.suspicion, Some(second));
}

#[test]
fn only_the_suspicion_that_was_approved_is_believed_at_once() {
    let bundles = MANY.map(|name| bundle(name, |_| {}));
    let spec = spec(json!({}));
    let first = judged(&spec, &bundles, &all_but(10)).suspicion.unwrap();
    let approved = with_suspicion(&spec, &bundles, &all_but(10), Some(&first), Some(&first.id));
    assert_eq!((approved.suspicion, approved.absent.len()), (None, 10));
    let other = with_suspicion(&spec, &bundles, &all_but(9), Some(&first), Some(&first.id));
    assert!(other.suspicion.is_some() && other.absent.is_empty());
}

#[test]
fn what_is_gone_already_neither_raises_a_suspicion_nor_lowers_it() {
    let bundles: Vec<Bundle> = MANY
        .iter()
        .enumerate()
        .map(|(index, name)| match index {
            0..=4 => bundle(name, absent_since("run-1", 1)),
            _ => bundle(name, |_| {}),
        })
        .collect();
    // Five are gone for good; six are absent, of which one is new.
    let judged = judged(&spec(json!({})), &bundles, &all_but(6));
    assert_eq!(judged.suspicion, None);
    assert_eq!(judged.counts.marked, 1);
}

#[test]
fn a_known_image_is_looked_at_anew_if_its_revision_is_missing() {
    let (good, bad) = (
        bundle("a", |_| {}),
        bundle("b", |seen| seen.rejected = Some("x".to_owned())),
    );
    let bundles = [good, bad];
    let digests = |revisions: &BTreeSet<String>, afresh: bool| -> Vec<Option<String>> {
        let known = known(&bundles, revisions, afresh);
        known.into_iter().map(|known| known.digest).collect()
    };
    let d1 = Some("d1".to_owned());
    assert_eq!(
        digests(&revisions(&bundles), false),
        [d1.clone(), d1.clone()]
    );
    assert_eq!(digests(&revisions(&bundles), true), [d1.clone(), None]);
    assert_eq!(digests(&BTreeSet::new(), false), [None, d1]);
}

#[test]
fn what_a_run_tells_is_bounded() {
    let names: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
    let unknown = || ImageEvidence::Unknown {
        why: "x ".repeat(10_000),
    };
    let mut sightings: Vec<(&str, ImageEvidence)> = names
        .iter()
        .take(500)
        .map(|name| (name.as_str(), found("d")))
        .collect();
    sightings.extend(
        names
            .iter()
            .skip(500)
            .map(|name| (name.as_str(), unknown())),
    );
    let judged = judged(&spec(json!({})), &[], &reading(&sightings));
    assert_eq!(
        (judged.findings.len(), judged.errors.len()),
        (FINDINGS_MAX, ERRORS_MAX)
    );
    assert!(
        judged
            .errors
            .iter()
            .all(|error| error.message.len() <= MESSAGE_CHARS_MAX)
    );
    assert_eq!((judged.counts.added, judged.counts.unknown), (500, 500));
}

#[test]
fn what_is_more_than_its_image_has_a_revision_for_each_state() {
    let in_state = |state: &str| {
        let ImageEvidence::Present(mut found) = found("sha256:runner") else {
            panic!("it is there");
        };
        found.state_digest = Some(state.to_owned());
        reading(&[("a", ImageEvidence::Present(found))])
    };
    let spec = spec(json!({}));
    let one = judged(&spec, &[], &in_state("sha256:one"));
    let two = judged(&spec, &[], &in_state("sha256:two"));
    assert_ne!(
        one.new_revisions.keys().next(),
        two.new_revisions.keys().next()
    );
    for (judged, state) in [(&one, "sha256:one"), (&two, "sha256:two")] {
        let seen = judged.seen.values().next().unwrap();
        assert_eq!(
            seen.digest.as_deref(),
            Some(state),
            "what is asked for next time"
        );
        let revision = judged.new_revisions.values().next().unwrap();
        assert_eq!(revision.manifest_digest, "sha256:runner", "what is run");
    }
}
