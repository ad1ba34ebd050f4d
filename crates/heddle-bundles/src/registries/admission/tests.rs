//! The truth table of white and black lists, tags and organisations.

use heddle_api::registry::{NamedTag, RegistryType};
use serde_json::{Value, json};

use super::*;

fn spec(members: Value) -> RegistrySpec {
    let mut whole = json!({"type": "apiv2", "url": "http://localhost"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let spec: RegistrySpec = serde_json::from_value(whole).unwrap();
    assert_eq!(spec.type_, RegistryType::ApiV2);
    spec
}

fn image(text: &str) -> ImageName {
    let (repository, track) = text.rsplit_once(':').unwrap();
    ImageName {
        repository: repository.to_owned(),
        track: track.to_owned(),
    }
}

/// What is asked and what is filtered, in words: `!` was expected.
fn plan(members: Value, listed: &[&str], known: &[&str]) -> (Vec<String>, Vec<String>) {
    plan_with(members, listed, &BTreeMap::new(), known)
}

fn plan_with(
    members: Value,
    listed: &[&str],
    tags: &BTreeMap<String, Vec<String>>,
    known: &[&str],
) -> (Vec<String>, Vec<String>) {
    let admission = Admission::new(&spec(members)).unwrap();
    let listed = listed.iter().map(|name| (*name).to_owned()).collect();
    let known: Vec<Known> = known
        .iter()
        .map(|text| Known {
            image: image(text),
            digest: Some(format!("digest of {text}")),
        })
        .collect();
    let plan = admission.plan(&listed, tags, &known);
    for question in &plan.questions {
        let is_known = known.iter().any(|it| it.image == question.image);
        assert_eq!(question.known.is_some(), is_known, "{}", question.image);
    }
    let word = |question: &Question| {
        format!(
            "{}{}",
            if question.expected { "!" } else { "" },
            question.image
        )
    };
    (
        plan.questions.iter().map(word).collect(),
        plan.filtered.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn white_lists_admit_black_lists_win_and_without_a_white_list_nothing_passes() {
    let listed = [
        "hello-apb",
        "org/hello-apb",
        "org/hello-apb-old",
        "org/secret-apb",
    ];
    let asked = |members| plan(members, &listed, &[]).0;
    let none: [&str; 0] = [];
    assert_eq!(asked(json!({})), none);
    assert_eq!(
        asked(json!({"blackList": [".*secret.*"]})),
        none,
        "only a black list"
    );
    assert_eq!(
        asked(json!({"whiteList": [".*-apb"]})),
        [
            "hello-apb:latest",
            "org/hello-apb:latest",
            "org/secret-apb:latest"
        ],
        "all of the name has to match"
    );
    assert_eq!(
        asked(json!({"whiteList": ["hello-apb"]})),
        ["hello-apb:latest", "org/hello-apb:latest"]
    );
    assert_eq!(
        asked(json!({"whiteList": [".*-apb"], "blackList": ["secret-apb", "hello-apb"]})),
        none,
        "a black list matches with and without the organisation"
    );
    assert_eq!(
        asked(json!({"whiteList": ["a|org/hello-apb"]})),
        ["org/hello-apb:latest"],
        "an alternative is whole"
    );
    assert_eq!(
        asked(json!({"org": "org", "whiteList": [".*-apb"]})),
        ["org/hello-apb:latest", "org/secret-apb:latest"]
    );
    assert_eq!(
        asked(json!({"whiteList": ["x/.*"], "images": ["x/unlisted"], "tags": {"default": "v1"}})),
        ["x/unlisted:v1"]
    );
}

#[test]
fn named_tags_need_no_white_list_but_obey_the_black_one() {
    let tags = json!({"named": [{"image": "hello-apb", "tag": "v1.0"}, {"image": "org/other", "tag": "v2"}]});
    let listed = ["org/hello-apb", "org/third"];
    let asked = |more: Value| {
        let mut members = more;
        members["tags"] = tags.clone();
        plan(members, &listed, &[]).0
    };
    assert_eq!(asked(json!({})), ["!org/hello-apb:v1.0", "!org/other:v2"]);
    assert_eq!(
        asked(json!({"org": "org"})),
        ["!org/hello-apb:v1.0", "!org/other:v2"]
    );
    assert_eq!(asked(json!({"blackList": ["hello.*"]})), ["!org/other:v2"]);
    assert_eq!(
        asked(json!({"whiteList": ["hello-apb"]})),
        [
            "org/hello-apb:latest",
            "!org/hello-apb:v1.0",
            "!org/other:v2"
        ]
    );
}

#[test]
fn what_is_known_is_asked_for_unless_the_settings_do_not_admit_it_any_more() {
    let known = [
        "org/a:latest",
        "org/gone:latest",
        "org/b:v1",
        "org/black:latest",
        "elsewhere/c:latest",
    ];
    let members = json!({"org": "org", "whiteList": [".*"], "blackList": ["black"]});
    let (asked, filtered) = plan(members, &["org/a", "org/new"], &known);
    assert_eq!(
        asked,
        ["!org/a:latest", "!org/gone:latest", "org/new:latest"]
    );
    assert_eq!(
        filtered,
        ["org/b:v1", "org/black:latest", "elsewhere/c:latest"]
    );
    let members = json!({"org": "org", "tags": {"named": [{"image": "b", "tag": "v1"}]}});
    let (asked, filtered) = plan(members, &[], &["org/b:v1", "org/b:latest"]);
    assert_eq!(asked, ["!org/b:v1"]);
    assert_eq!(filtered, ["org/b:latest"]);
    let members = json!({"tags": {"named": [{"image": "b", "tag": "v1"}]}});
    assert_eq!(
        plan(members, &[], &["org/b:v1"]).0,
        ["!org/b:v1"],
        "known under its whole name"
    );
}

#[test]
fn selected_tags_are_followed_in_every_admitted_repository() {
    let members = json!({"whiteList": ["org/.*"], "blackList": ["secret"], "tags": {"select": ["stable", "v1.*"]}});
    let listed = ["org/a", "org/secret", "other/b"];
    let admission = Admission::new(&spec(members.clone())).unwrap();
    let all = listed.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(admission.wants_tags(&all), ["org/a"]);
    let has = ["v1.0.0", "v2.0.0", "stable", "latest"].map(str::to_owned);
    let tags = BTreeMap::from([("org/a".to_owned(), has.to_vec())]);
    let known = ["org/a:v1.5.0", "org/a:v2.0.0", "other/b:stable"];
    let (asked, filtered) = plan_with(members, &listed, &tags, &known);
    assert_eq!(
        asked,
        [
            "org/a:latest",
            "org/a:stable",
            "org/a:v1.0.0",
            "!org/a:v1.5.0"
        ],
        "what is known and meant is asked for, listed or not"
    );
    assert_eq!(filtered, ["org/a:v2.0.0", "other/b:stable"]);
    let by_name = json!({"whiteList": [".*"], "tags": {"select": ["stable"]}});
    let admission = Admission::new(&spec(by_name)).unwrap();
    assert!(
        admission.wants_tags(&all).is_empty(),
        "a name needs no list"
    );
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let check = |members: Value, words: &[&str]| {
        let why = Admission::new(&spec(members)).unwrap_err();
        for word in words {
            assert!(why.contains(word), "{why}");
        }
    };
    check(
        json!({"whiteList": ["fine", "bro(ken"]}),
        &["whiteList", "bro(ken"],
    );
    check(
        json!({"whiteList": ["x"], "blackList": ["a)|(b"]}),
        &["blackList", "a)|(b"],
    );
    check(json!({"whiteList": ["(?:a{1000}){1000}"]}), &["whiteList"]);
    check(json!({"images": ["../etc"]}), &["images", "../etc"]);
    check(json!({"org": "Not An Org"}), &["org"]);
    check(json!({"tags": {"default": "a/b"}}), &["tags.default"]);
    check(
        json!({"tags": {"select": ["v1", ">=one"]}}),
        &["tags.select", ">=one"],
    );
    let mut spec = spec(json!({}));
    spec.tags.named.push(NamedTag {
        image: "x".to_owned(),
        tag: "..".to_owned(),
    });
    assert!(Admission::new(&spec).unwrap_err().contains("tags.named"));
}
