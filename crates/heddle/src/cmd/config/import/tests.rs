use super::*;
use crate::cmd::testing::Screen;
use crate::failure::exit_code;
use crate::manifest;

const CONFIG: &str = "
registry:
  - {name: dh, type: openshift, url: 'https://registry.example', user: ann, pass: s3cret, white_list: ['.*-apb$']}
log: {level: debug}
";

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn run(text: &'static str, words: &[&str]) -> (anyhow::Result<()>, Screen) {
    let line = ["import", "config.yaml"].iter().chain(words);
    let Line { args } = clap::Parser::parse_from(line);
    let screen = Screen::default();
    let read = |_: &str| Ok(text.as_bytes().to_vec());
    (import(&args, read, &mut screen.terminal()), screen)
}

#[test]
fn what_is_written_can_be_applied_and_says_what_changed() {
    for format in ["yaml", "json"] {
        let (outcome, screen) = run(CONFIG, &["-o", format]);
        outcome.unwrap();
        let documents = manifest::parse("standard input", &screen.out()).unwrap();
        let kinds: Vec<&str> = documents.iter().map(manifest::Document::kind).collect();
        assert_eq!(kinds, ["Secret", "Registry"], "{format}");
        assert_eq!(documents[1].object["spec"]["type"], "apiv2");
        assert_eq!(
            documents[1].object["spec"]["idScheme"],
            serde_json::Value::Null
        );
        insta::allow_duplicates! {
            insta::assert_snapshot!(screen.err(), @r"
            warning: config.yaml: line 3: registry[0].type openshift is replaced by apiv2, which speaks to all of these
            warning: config.yaml: line 3: registry[0].user is replaced by Secret `dh-registry` of namespace heddle-system
            warning: config.yaml: line 4: log.level is dropped: use `heddle serve --log debug`
            ");
        }
    }
}

#[test]
fn ids_can_be_kept() {
    let (outcome, screen) = run(CONFIG, &["--keep-ids"]);
    outcome.unwrap();
    assert!(
        screen.out().contains("idScheme: asb-md5"),
        "{}",
        screen.out()
    );
}

#[test]
fn a_refusal_names_the_file_and_the_place_and_writes_nothing() {
    let (outcome, screen) = run("registry:\n  - {name: dh, type: quay, tag: 1.0}\n", &[]);
    let error = outcome.unwrap_err();
    assert_eq!(exit_code(&error), 2);
    assert_eq!(
        format!("{error:#}"),
        "cannot use config.yaml: line 2, column 33: registry[0].tag is read as the number 1; quote it to make it text"
    );
    assert_eq!(screen.out(), "");
}
