use super::*;

fn chosen(selectors: &[&str], tags: &[&str]) -> Vec<String> {
    let selectors: Vec<Selector> = selectors
        .iter()
        .map(|text| Selector::parse(text).unwrap())
        .collect();
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let chosen = choose(&selectors, &tags);
    chosen.into_iter().map(str::to_owned).collect()
}

#[test]
fn a_selector_means_what_it_looks_like() {
    let tags = [
        "latest",
        "v1.0.0",
        "v1.10.0",
        "v1.9.0",
        "2.0.0",
        "2.1.0-rc.1",
        "rc-1",
        "rc-12",
        "v1x0",
    ];
    assert_eq!(chosen(&["latest", "nope"], &tags), ["latest"]);
    assert_eq!(
        chosen(&["v1.*"], &tags),
        ["v1.10.0", "v1.9.0", "v1.0.0"],
        "newest first, and a dot is a dot"
    );
    assert_eq!(chosen(&["rc-?"], &tags), ["rc-1"]);
    assert_eq!(
        chosen(&[">=1.5, <3"], &tags),
        ["2.0.0", "v1.10.0", "v1.9.0"]
    );
    assert_eq!(
        chosen(&["^2", "2.*"], &tags),
        ["2.1.0-rc.1", "2.0.0"],
        "each once"
    );
    assert_eq!(
        chosen(&["*"], &["b", "a", "1.0.0", "not a tag"]),
        ["1.0.0", "b", "a"]
    );
}

#[test]
fn only_the_newest_few_are_taken_up() {
    let tags: Vec<String> = (0..100).map(|minor| format!("1.{minor}.0")).collect();
    let selectors = [Selector::parse("1.*").unwrap()];
    let chosen = choose(&selectors, &tags);
    assert_eq!(
        (chosen.len(), chosen[0], chosen[19]),
        (CHOSEN_MAX, "1.99.0", "1.80.0")
    );
    assert!(selectors[0].means("1.0.0"), "one that is known stays");
}

#[test]
fn what_can_mean_no_tag_is_refused() {
    for bad in ["", "a b", "a/b", "../*", ">=x", "^", ".*[a-z]", "a:b"] {
        assert!(Selector::parse(bad).is_err(), "{bad:?}");
    }
}
