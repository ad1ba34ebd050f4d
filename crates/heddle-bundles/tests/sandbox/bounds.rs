//! Programs that run amok, with control groups and without them.

use heddle_api::action::{Outcome, Run, RunEnd};
use heddle_bundles::sandbox::LimitedBy;

use crate::stage::{Stage, failed_with, processes_with, run, succeeded, until};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    a_memory_bomb_is_contained_and_told_of,
    a_fork_bomb_is_contained_and_told_of,
    endless_output_is_bounded_and_endless_time_ends,
    a_run_that_takes_too_long_ends_with_all_its_processes,
    a_run_that_is_called_off_ends_with_all_its_processes,
    a_run_that_is_called_off_before_it_starts_never_runs,
    a_temporary_file_is_bounded,
];

/// Doubles a text for as long as it can; says so if nothing stops it at four times what it may use.
const MEMORY_BOMB: &str = r#"x=0123456789abcdef; i=0
    while [ $i -lt 24 ]; do x=$x$x; i=$((i+1)); done
    echo unlimited; exit 0"#;

fn bounded(script: &str, cgroups: bool, change: impl FnOnce(&mut Run)) -> (RunEnd, LimitedBy) {
    let stage = Stage::with_options(script, |options| options.cgroups = cgroups);
    let mut asked = run();
    change(&mut asked);
    let able = stage.runner.check().unwrap();
    let limited_by = if cgroups {
        able.limited_by
    } else {
        LimitedBy::Rlimits
    };
    (stage.run(&asked), limited_by)
}

fn a_memory_bomb_is_contained_and_told_of() {
    for cgroups in [true, false] {
        let (end, limited_by) = bounded(MEMORY_BOMB, cgroups, |_| {});
        assert!(!end.log_tail.contains("unlimited"), "{end:?}");
        assert!(
            end.log_tail.contains(&format!("limited by {limited_by}")),
            "{end:?}"
        );
        match &end.outcome {
            Outcome::Killed { why } => assert!(why.contains("64 MiB"), "{why}"),
            Outcome::Failed { .. } => assert_eq!(limited_by, LimitedBy::Rlimits, "{end:?}"),
            other => panic!("{other:?}"),
        }
    }
}

fn a_fork_bomb_is_contained_and_told_of() {
    // Each process makes two more; those that cannot be made are complained about.
    let script = r#"bomb() { bomb | bomb & }; bomb; sleep 1; exit 1"#;
    for cgroups in [true, false] {
        let (end, limited_by) = bounded(script, cgroups, |_| {});
        let (_, message) = failed_with(&end);
        if limited_by == LimitedBy::Rlimits {
            assert!(end.log_tail.contains("fork"), "{end:?}");
        } else {
            assert!(message.contains("32 processes"), "{message}");
        }
    }
}

fn endless_output_is_bounded_and_endless_time_ends() {
    let stage = Stage::with("echo first; yes 0123456789");
    let mut asked = run();
    asked.limits.seconds = 1;
    let end = stage.run(&asked);
    assert_eq!(end.outcome, Outcome::TimedOut);
    let log = stage.runner.log(&asked.id).unwrap();
    assert!(
        log.len() > 1 << 20 && log.len() < (1 << 20) + 200,
        "{}",
        log.len()
    );
    assert!(log.contains("first\n") && log.contains("bytes left out"));
}

fn a_run_that_takes_too_long_ends_with_all_its_processes() {
    let stage = Stage::with("sleep 1001001 & sleep 1001001");
    let mut asked = run();
    asked.limits.seconds = 1;
    assert_eq!(stage.run(&asked).outcome, Outcome::TimedOut);
    assert_eq!(processes_with("sleep 1001001"), Vec::<String>::new());
}

fn a_run_that_is_called_off_ends_with_all_its_processes() {
    // Deaf to polite signals, in groups and sessions of their own.
    let stage = Stage::with(
        r#"trap '' TERM INT HUP
        sh -c 'trap "" TERM INT HUP; sleep 1002002' &
        (sleep 1002002 &) 
        touch /data/up; sleep 1002002"#,
    );
    let asked = run();
    stage.start(&asked);
    until("the program", || stage.data("up").exists());
    until("its processes", || {
        processes_with("sleep 1002002").len() >= 3
    });
    stage.runner.cancel(&asked.id).unwrap();
    assert_eq!(stage.end(&asked.id).outcome, Outcome::Cancelled);
    assert_eq!(processes_with("sleep 1002002"), Vec::<String>::new());
    stage.runner.cancel(&asked.id).unwrap();
    assert_eq!(stage.end(&asked.id).outcome, Outcome::Cancelled);
}

fn a_run_that_is_called_off_before_it_starts_never_runs() {
    let stage = Stage::with("touch /data/ran");
    let asked = run();
    std::fs::create_dir_all(stage.run_file(&asked.id, "")).unwrap();
    stage.runner.cancel(&asked.id).unwrap();
    assert_eq!(stage.run(&asked).outcome, Outcome::Cancelled);
    assert!(!stage.data("ran").exists());
}

fn a_temporary_file_is_bounded() {
    let stage = Stage::with("head -c 80000000 /dev/zero > /tmp/x && exit 1; exit 0");
    let mut asked = run();
    asked.limits.memory_bytes = 256 << 20;
    succeeded(&stage.run(&asked));
}
