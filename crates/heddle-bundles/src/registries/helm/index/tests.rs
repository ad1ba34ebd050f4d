use super::*;

const SOUND: &str = r#"apiVersion: v1
entries:
  redis:
  - {name: redis, version: 1.9.0, description: older, urls: [a.tgz], created: "2020-01-01T00:00:00Z"}
  - {name: redis, version: 1.10.0, description: a cache, icon: "https://x/i.png", home: "https://x"}
  - {name: redis, version: 2.0.0-rc.1, description: too new}
  - {name: redis, version: not a version}
  - {name: redis, version: v1.2.3}
  new-only:
  - {name: new-only, version: 0.1.0-alpha, description: a preview}
  "bad/../name":
  - {name: x, version: 1.0.0}
  odd:
  - {name: odd, version: 7}
generated: "2020-01-01T00:00:00Z"
"#;

fn refused(text: &str) -> String {
    read(text.as_bytes()).unwrap_err()
}

#[test]
fn the_newest_release_is_offered_first_and_previews_only_where_there_is_nothing_else() {
    let index = read(SOUND.as_bytes()).unwrap();
    assert!(index.is_whole);
    let names: Vec<&String> = index.charts.keys().collect();
    assert_eq!(
        names,
        ["new-only", "odd", "redis"],
        "without a path to elsewhere"
    );
    let offered = |chart: &str| -> Vec<&str> {
        let offered = index.charts[chart].offered();
        offered.map(|release| release.spelled.as_str()).collect()
    };
    assert_eq!(offered("redis"), ["1.10.0", "1.9.0", "v1.2.3"]);
    assert_eq!(offered("new-only"), ["0.1.0-alpha"]);
    assert!(offered("odd").is_empty(), "a number is no version");
    let redis = &index.charts["redis"];
    assert_eq!(
        redis.description, "a cache",
        "of the newest that is offered"
    );
    let spelled = |text: &str| Some(redis.release(text)?.spelled.as_str());
    assert_eq!(
        spelled("2.0.0-rc.1"),
        Some("2.0.0-rc.1"),
        "by name, everything can be had"
    );
    assert_eq!(spelled("1.2.3"), Some("v1.2.3"));
    assert_eq!(spelled("9.9.9"), None);
}

#[test]
fn what_is_no_index_is_no_empty_index() {
    let page = "<html><head><title>404</title></head></html>";
    let json = r#"{"errors": []}"#;
    let tabs = "entries:\n\tx: 1";
    for text in ["", "null", "{}", "[]", page, json, tabs, "apiVersion: v1\n"] {
        refused(text);
    }
    assert!(refused("apiVersion: v2\nentries: {}\n").contains("only v1"));
    refused("apiVersion: v1\nentries:\n");
    assert!(read(&[0xff, 0xfe]).is_err());
    let cut = &SOUND[..SOUND.find("  odd:").unwrap()];
    assert!(
        !read(cut.as_bytes()).unwrap().is_whole,
        "cut between two lines"
    );
    let inside = &SOUND[..SOUND.find("a cache").unwrap()];
    refused(inside);
    let empty = "apiVersion: v1\nentries: {}\ngenerated: now\n";
    assert_eq!(read(empty.as_bytes()).unwrap().charts.len(), 0);
}

#[test]
fn an_index_that_unfolds_without_end_is_refused() {
    let mut bomb =
        String::from("apiVersion: v1\nentries: {}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    refused(&bomb);
    let deep = format!("apiVersion: v1\nentries: {{}}\nx: {}\n", "[".repeat(10_000));
    refused(&deep);
}
