//! Labels as authors' tools write them, and as nobody should.

use super::*;

const SOUND: &str = "version: 1.0\nname: hello\ndescription: says hello\nplans:\n- name: default\n  description: the only one\n";

fn encode(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_description_is_found_in_either_label_with_line_ends_and_without_padding() {
    let plain = encode(SOUND);
    let wrapped: String = plain
        .as_bytes()
        .chunks(60)
        .map(|line| format!("{}\r\n", std::str::from_utf8(line).unwrap()))
        .collect();
    for (label, text) in [
        ("com.redhat.apb.spec", plain.as_str()),
        ("io.heddle.bundle.spec", wrapped.as_str()),
        ("com.redhat.apb.spec", plain.trim_end_matches('=')),
    ] {
        let described = describe(&labels(&[(label, text)]), "latest")
            .unwrap()
            .unwrap();
        assert_eq!(described.description["name"], "hello");
        assert_eq!((described.version, described.runtime), (None, 1));
    }
    assert_eq!(describe(&labels(&[("other", &plain)]), "latest"), Ok(None));
    let both = labels(&[
        ("com.redhat.apb.spec", "junk"),
        ("io.heddle.bundle.spec", &plain),
    ]);
    assert!(
        describe(&both, "latest").unwrap().is_some(),
        "the own label counts more"
    );
}

#[test]
fn what_cannot_be_used_says_why() {
    let check = |text: &str, why: &str| {
        let refused = describe(&labels(&[("com.redhat.apb.spec", text)]), "latest").unwrap_err();
        assert!(refused.contains(why), "{refused}");
    };
    check("?!", "not base64");
    check(
        &base64::engine::general_purpose::STANDARD.encode(b"\xff\xfe"),
        "not text",
    );
    check(&encode("name: [unclosed"), "YAML");
    check(&encode("name: x\nversion: 2.0\nplans: []\n"), "version");
    check(&"A".repeat(DESCRIPTION_BYTES_MAX * 2), "too long");
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n";
    check(&encode(bomb), "");
}

#[test]
fn the_version_comes_from_the_description_then_a_label_then_the_tag() {
    let with = |line: &str, more: &[(&str, &str)], tag: &str| {
        let text = encode(&format!("{SOUND}{line}"));
        let mut all = labels(more);
        all.insert(DESCRIPTIONS[0].to_owned(), text);
        describe(&all, tag).unwrap().unwrap().version
    };
    let is = |version: &str, source| Some((version.to_owned(), source));
    let (oci, apb) = ("org.opencontainers.image.version", "com.redhat.apb.version");
    let said = "bundleVersion: 3.2.1\n";
    assert_eq!(
        with(said, &[(oci, "2"), (apb, "1")], "v9.0.0"),
        is("3.2.1", VersionSource::Description)
    );
    assert_eq!(
        with("", &[(oci, "2"), (apb, "1")], "v9.0.0"),
        is("2", VersionSource::Label)
    );
    assert_eq!(
        with("", &[(oci, ""), (apb, "1")], "v9.0.0"),
        is("1", VersionSource::Label)
    );
    assert_eq!(with("", &[], "v9.0.0"), is("9.0.0", VersionSource::Tag));
    assert_eq!(with("", &[], "v1.0"), None, "half a version is a name");
    assert_eq!(with("", &[], "latest"), None);
}

#[test]
fn only_known_contracts_are_taken() {
    let with = |more: &[(&str, &str)]| {
        let mut all = labels(more);
        all.insert(DESCRIPTIONS[1].to_owned(), encode(SOUND));
        describe(&all, "latest").map(|described| described.unwrap().runtime)
    };
    let (bundle, apb) = ("com.redhat.bundle.runtime", "com.redhat.apb.runtime");
    assert_eq!(with(&[]), Ok(1));
    assert_eq!(with(&[(apb, "2")]), Ok(2));
    assert_eq!(with(&[(apb, "2"), (bundle, "1")]), Ok(1));
    for bad in ["99", "0", "two", ""] {
        assert!(
            with(&[(bundle, bad)]).unwrap_err().contains("runtime"),
            "{bad}"
        );
    }
}
