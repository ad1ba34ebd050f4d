//! What is promised to programs and to whoever runs them.

use heddle_api::action::{Action, Outcome, RunState};
use serde_json::json;

use crate::stage::{Stage, failed_with, object, run, run_with, succeeded, wait_for};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    exit_codes_become_outcomes,
    parameters_arrive_as_argument_as_document_and_as_files,
    variables_that_are_no_argument_any_more_are_told_by_the_name_of_a_file,
    the_environment_is_the_images_and_the_contracts,
    credentials_come_out_and_are_gone_when_the_run_is_forgotten,
    an_instance_keeps_what_it_writes_from_action_to_action,
    what_an_instance_archives_outlives_it,
    the_log_is_kept_without_secrets_also_when_the_run_is_forgotten,
    progress_is_told_while_it_lasts,
    a_run_that_nobody_started_is_unheard_of,
    a_program_that_does_not_exist_is_not_started,
];

fn exit_codes_become_outcomes() {
    let stage = Stage::with("echo first; echo going; exit $(cat /run/bundle/variables/code)");
    let end = |code: i32| stage.run(&run_with(json!({ "code": code })));
    assert_eq!(end(0).outcome, Outcome::Succeeded);
    assert_eq!(end(8).outcome, Outcome::NothingToDo);
    assert_eq!(failed_with(&end(3)), (3, "going".to_owned()));
    let stage = Stage::with("echo 'no room' > /out/message; echo noise; exit 1");
    assert_eq!(failed_with(&stage.run(&run())), (1, "no room".to_owned()));
}

fn parameters_arrive_as_argument_as_document_and_as_files() {
    let stage = Stage::with(
        r#"[ "$1 $2" = "bind --extra-vars" ] || exit 1
        [ "$3" = "@/run/bundle/variables.json" ] || exit 2
        ! tr '\\0' ' ' < /proc/self/cmdline | grep -q 'two words' || exit 7
        [ "$(cat /run/bundle/variables/name)" = "two words" ] || exit 3
        [ "$(cat /run/bundle/variables/list)" = "[1,true]" ] || exit 4
        [ $# = 3 ] || exit 5
        ! echo x > /run/bundle/variables/name || exit 6"#,
    );
    let mut asked = run_with(json!({"name": "two words", "list": [1, true], "odd/../name": 1}));
    asked.action = Action::Bind;
    succeeded(&stage.run(&asked));
}

fn variables_that_are_no_argument_any_more_are_told_by_the_name_of_a_file() {
    let stage = Stage::with(
        r#"[ "$3" = "@/run/bundle/variables.json" ] || exit 1
        [ "$(wc -c < /run/bundle/variables/large)" = 200000 ] || exit 2"#,
    );
    succeeded(&stage.run(&run_with(json!({"large": "x".repeat(200_000)}))));
    let refused = stage.runner.start(
        &run_with(json!({"large": "x".repeat(2 << 20)})),
        &stage.root,
        &crate::stage::program(),
    );
    assert!(refused.is_err());
}

fn the_environment_is_the_images_and_the_contracts() {
    let stage =
        Stage::with("env > /data/env; hostname >> /data/env; exec < /dev/null; [ \"$(pwd)\" = / ]");
    succeeded(&stage.run(&run()));
    let text = std::fs::read_to_string(stage.data("env")).unwrap();
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| {
            !line.starts_with("PWD=") && !line.starts_with("SHLVL=") && !line.starts_with("OLDPWD=")
        })
        .collect();
    lines.sort_unstable();
    let data = format!("BUNDLE_DATA_PATH={}", stage.data("").display());
    let expected = [
        "BUNDLE_ACTION=provision",
        data.trim_end_matches('/'),
        "BUNDLE_VERSION=1.2.3",
        "FROM_IMAGE=yes",
        "HOME=/tmp",
        "PATH=/bin",
        "bundle",
    ];
    assert_eq!(lines, expected);
}

fn credentials_come_out_and_are_gone_when_the_run_is_forgotten() {
    let stage = Stage::with(
        r#"echo '{"user": "u", "password": "p4ssw0rd"}' > /out/credentials.json
        echo https://manage.example/x > /out/dashboard-url"#,
    );
    let asked = run();
    let end = stage.run(&asked);
    succeeded(&end);
    assert_eq!(
        end.dashboard_url.as_deref(),
        Some("https://manage.example/x")
    );
    let expected = object(json!({"user": "u", "password": "p4ssw0rd"}));
    assert_eq!(stage.runner.credentials(&asked.id).unwrap(), Some(expected));
    assert!(
        !stage.run_file(&asked.id, "run.json").exists(),
        "variables are kept no longer than it takes"
    );
    stage.runner.forget(&asked.id).unwrap();
    assert_eq!(stage.runner.credentials(&asked.id).unwrap(), None);
    assert_eq!(stage.runner.look(&asked.id).unwrap(), RunState::Unheard);
    assert!(!stage.run_file(&asked.id, "").exists());
}

fn an_instance_keeps_what_it_writes_from_action_to_action() {
    let stage = Stage::with(
        r#"case $1 in
        provision) echo kept > /data/file; mkdir /data/closed; chmod 000 /data/closed;;
        *) [ "$(cat /data/file)" = kept ];;
        esac"#,
    );
    succeeded(&stage.run(&run()));
    let mut update = run();
    update.action = Action::Update;
    succeeded(&stage.run(&update));
    stage.runner.forget_instance("instance").unwrap();
    assert!(!stage.data("").exists());
    stage.runner.forget_instance("instance").unwrap();
}

fn what_an_instance_archives_outlives_it() {
    let stage =
        Stage::with("mkdir /data/archive; echo $RANDOM > /data/archive/dump; echo x > /data/rest");
    for _ in 0..2 {
        succeeded(&stage.run(&run()));
        stage.runner.forget_instance("instance").unwrap();
    }
    let archives = stage.directory.path().join("sandbox/archives");
    let kept: Vec<_> = std::fs::read_dir(archives).unwrap().flatten().collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|entry| entry.path().join("dump").is_file()));
    assert!(kept.iter().all(|entry| !entry.path().join("rest").exists()));
}

fn the_log_is_kept_without_secrets_also_when_the_run_is_forgotten() {
    let stage = Stage::with(
        r#"echo "password is $(cat /run/bundle/variables/db_password)" >&2
        echo "all: $(cat /run/bundle/variables.json)"
        echo '{"token": "made-just-now"}' > /out/credentials.json
        echo token made-just-now; echo plain"#,
    );
    let asked = run_with(json!({
        "db_password": "hunter22", "size": "large",
        "_apb_provision_creds": {"host": "db.internal"},
    }));
    let end = stage.run(&asked);
    succeeded(&end);
    let log = stage.runner.log(&asked.id).unwrap();
    for secret in ["hunter22", "db.internal", "made-just-now"] {
        assert!(
            !log.contains(secret) && !end.log_tail.contains(secret),
            "{log}"
        );
    }
    for said in [
        "password is ***",
        "token ***",
        "large",
        "plain",
        "[heddle] limited by",
    ] {
        assert!(log.contains(said), "{said} in {log}");
    }
    stage.runner.forget(&asked.id).unwrap();
    assert_eq!(stage.runner.log(&asked.id).unwrap(), log);
}

fn progress_is_told_while_it_lasts() {
    let stage = Stage::with(
        r#"echo "halfway with $(cat /run/bundle/variables/password)" > /out/progress
        while [ ! -e /data/go ]; do sleep 0.02; done"#,
    );
    let asked = run_with(json!({"password": "hunter22"}));
    stage.start(&asked);
    let told = |state: &RunState| matches!(state, RunState::Running { progress: Some(_) });
    let state = wait_for(&stage.runner, &asked.id, told);
    let progress = Some("halfway with ***".to_owned());
    assert_eq!(state, RunState::Running { progress });
    assert!(stage.runner.forget(&asked.id).is_err(), "it is under way");
    assert!(
        stage.runner.forget_instance("instance").is_err(),
        "it is in use"
    );
    std::fs::write(stage.data("go"), "").unwrap();
    succeeded(&stage.end(&asked.id));
}

fn a_run_that_nobody_started_is_unheard_of() {
    let stage = Stage::with("exit 0");
    assert_eq!(stage.runner.look("never").unwrap(), RunState::Unheard);
    stage.runner.cancel("never").unwrap();
    stage.runner.forget("never").unwrap();
    assert_eq!(stage.runner.log("never").unwrap(), "");
    for name in ["../x", "", "a/b", "UP"] {
        assert!(stage.runner.look(name).is_err(), "{name:?}");
    }
}

fn a_program_that_does_not_exist_is_not_started() {
    let stage = Stage::with("exit 0");
    let asked = run();
    let mut program = crate::stage::program();
    program.entrypoint = vec!["/bin/nothing".to_owned()];
    stage.runner.start(&asked, &stage.root, &program).unwrap();
    let end = stage.end(&asked.id);
    let Outcome::NotStarted { why } = &end.outcome else {
        panic!("{end:?}")
    };
    assert!(why.contains("/bin/nothing"), "{why}");
}
