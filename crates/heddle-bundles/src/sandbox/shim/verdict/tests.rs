use super::*;

fn ending() -> Ending {
    Ending {
        oom_kills: 0,
        refused_processes: 0,
        limited_by: LimitedBy::CgroupV2,
        limits: Limits {
            memory_bytes: 64 << 20,
            processes: 16,
            seconds: 10,
            network: false,
            disk_bytes: 1 << 30,
            disk_files: 100_000,
        },
        secrets: vec!["hunter22".to_owned()],
    }
}

fn exited(code: i32) -> Course {
    Course {
        exited: Some(code),
        log: "first\nlast words\n".to_owned(),
        ..Course::default()
    }
}

fn signalled(signal: i32) -> Course {
    Course {
        signalled: Some(signal),
        ..Course::default()
    }
}

fn outcome_of(course: Course, ending: &Ending) -> Outcome {
    verdict(course, ending).end.outcome
}

fn failed(code: i32, message: &str) -> Outcome {
    Outcome::Failed {
        code,
        message: Some(message.to_owned()),
    }
}

#[test]
fn exit_codes_mean_what_the_contract_says() {
    assert_eq!(outcome_of(exited(0), &ending()), Outcome::Succeeded);
    assert_eq!(outcome_of(exited(8), &ending()), Outcome::NothingToDo);
    assert_eq!(outcome_of(exited(3), &ending()), failed(3, "last words"));
}

#[test]
fn what_the_program_says_about_its_failure_wins_over_its_last_line_and_is_masked() {
    let mut course = exited(1);
    course.outputs.message = Some(" no room for hunter22 \n".to_owned());
    assert_eq!(outcome_of(course, &ending()), failed(1, "no room for ***"));
}

#[test]
fn a_failure_tells_which_limit_was_met() {
    let met = Ending {
        oom_kills: 1,
        refused_processes: 2,
        ..ending()
    };
    let Outcome::Failed {
        message: Some(message),
        ..
    } = outcome_of(exited(1), &met)
    else {
        panic!("it failed")
    };
    assert!(
        message.contains("64 MiB") && message.contains("16 processes"),
        "{message}"
    );
    let Outcome::Killed { why } = outcome_of(signalled(9), &met) else {
        panic!("it was killed")
    };
    assert!(why.contains("64 MiB") && why.contains("cgroup v2"), "{why}");
    let why = "signal SIGSEGV".to_owned();
    assert_eq!(
        outcome_of(signalled(11), &ending()),
        Outcome::Killed { why }
    );
}

#[test]
fn what_ended_by_itself_ended_so_and_what_was_stopped_was_stopped() {
    for stopped in [Outcome::Cancelled, Outcome::TimedOut] {
        let mut course = exited(0);
        course.stopped = Some(stopped.clone());
        assert_eq!(outcome_of(course, &ending()), Outcome::Succeeded);
        let mut course = signalled(9);
        course.stopped = Some(stopped.clone());
        assert_eq!(outcome_of(course, &ending()), stopped);
        let course = Course {
            stopped: Some(stopped.clone()),
            ..Course::default()
        };
        assert_eq!(outcome_of(course, &ending()), stopped);
    }
    assert!(matches!(
        outcome_of(Course::default(), &ending()),
        Outcome::Killed { .. }
    ));
}

#[test]
fn a_sandbox_that_could_not_be_made_ran_nothing() {
    let course = Course {
        failed: Some("no namespaces".to_owned()),
        exited: Some(1),
        ..Course::default()
    };
    let why = "no namespaces".to_owned();
    assert_eq!(outcome_of(course, &ending()), Outcome::NotStarted { why });
}

#[test]
fn credentials_are_an_object_of_a_success_or_none_at_all() {
    let with = |text: &str, code| {
        let mut course = exited(code);
        course.outputs.credentials = Some(text.to_owned());
        verdict(course, &ending())
    };
    let handed_out = with(r#"{"a": 1}"#, 0).credentials.unwrap();
    assert_eq!(Value::Object(handed_out), serde_json::json!({"a": 1}));
    assert_eq!(with(r#"{"a": 1}"#, 1).credentials, None);
    for text in ["[1]", "{", ""] {
        let verdict = with(text, 0);
        assert_eq!(verdict.credentials, None);
        assert!(
            matches!(verdict.end.outcome, Outcome::Failed { code: 0, .. }),
            "{text}"
        );
    }
    let mut course = exited(0);
    course.outputs.refused = vec!["/out/credentials.json is a link".to_owned()];
    assert_eq!(
        outcome_of(course, &ending()),
        failed(0, "/out/credentials.json is a link")
    );
}

#[test]
fn a_secret_that_was_just_made_is_masked_in_the_log_too() {
    let mut course = exited(0);
    course.log = "made s3cr3t-new\n".to_owned();
    course.outputs.credentials = Some(r#"{"password": "s3cr3t-new"}"#.to_owned());
    let verdict = verdict(course, &ending());
    assert!(verdict.log.ends_with("made ***\n"), "{}", verdict.log);
    assert!(verdict.end.log_tail.ends_with("made ***\n"));
}

#[test]
fn only_addresses_of_the_web_are_shown_as_links() {
    let shown = |text: &str| {
        let mut course = exited(0);
        course.outputs.dashboard_url = Some(text.to_owned());
        verdict(course, &ending()).end.dashboard_url
    };
    assert_eq!(
        shown("https://a.example/x\n").as_deref(),
        Some("https://a.example/x")
    );
    assert_eq!(shown("javascript:alert(1)"), None);
    assert_eq!(shown("http://a b"), None);
}

#[test]
fn a_file_that_became_too_large_names_the_setting() {
    let Outcome::Killed { why } = outcome_of(signalled(Signal::SIGXFSZ as i32), &ending()) else {
        panic!("it was killed");
    };
    assert!(why.contains("spec.actions.diskMegabytes"), "{why}");
}
