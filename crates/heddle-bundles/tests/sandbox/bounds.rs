//! Programs that run amok, with control groups and without them.

use heddle_api::action::{Action, Limits, Outcome, Run, RunEnd};
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
    what_fills_the_disk_with_files_is_killed_told_of_and_can_be_removed,
    what_fills_the_disk_with_bytes_is_killed_and_told_of_wherever_it_hides,
    one_endless_file_ends_at_the_bound,
    however_deep_a_tree_is_it_is_removed_and_a_server_starts_above_it,
    archives_are_bounded_and_the_oldest_go_first,
];

/// Deeper than a path may be long, or a stack would last.
fn dig(at: &std::path::Path) {
    use nix::dir::Dir;
    use nix::fcntl::OFlag;
    use nix::sys::stat::{Mode, mkdirat};
    use std::os::fd::AsRawFd as _;

    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    std::fs::create_dir_all(at).unwrap();
    let mut here = Dir::open(at, flags, Mode::empty()).unwrap();
    for _ in 0..3_000 {
        let fd = here.as_raw_fd();
        mkdirat(Some(fd), "d", Mode::S_IRWXU).unwrap();
        here = Dir::openat(Some(fd), "d", flags, Mode::empty()).unwrap();
    }
}

fn however_deep_a_tree_is_it_is_removed_and_a_server_starts_above_it() {
    let stage = Stage::with("exit 0");
    dig(&stage.data("deep"));
    stage.runner.forget_instance("instance").unwrap();
    assert!(!stage.data("deep").exists());
    let sandbox = stage.directory.path().join("sandbox");
    dig(&sandbox.join("trash/left"));
    // As a crash leaves it, with something that is in the way of whoever tidies up.
    std::fs::write(sandbox.join("trash/file"), "x").unwrap();
    crate::stage::open(crate::stage::options(&sandbox));
    assert_eq!(std::fs::read_dir(sandbox.join("trash")).unwrap().count(), 0);
}

fn archives_are_bounded_and_the_oldest_go_first() {
    let stage = Stage::with_options("exit 0", |options| options.archives_count_max = 2);
    let archives = stage.directory.path().join("sandbox/archives");
    for (number, instance) in ["first", "second", "third"].into_iter().enumerate() {
        let archive = stage.directory.path().join("sandbox/data");
        let archive = archive.join(instance).join("archive");
        std::fs::create_dir_all(&archive).unwrap();
        std::fs::write(archive.join("dump"), "x").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
        let opened = std::fs::File::open(&archive).unwrap();
        opened.set_modified(time).unwrap();
        stage.runner.forget_instance(instance).unwrap();
    }
    let kept = std::fs::read_dir(archives).unwrap();
    let mut kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["second", "third"]);
}

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

/// The same for another action of the same instance.
fn next(action: Action, limits: Limits) -> Run {
    Run {
        action,
        limits,
        ..run()
    }
}

fn killed_because(end: &RunEnd) -> &str {
    match &end.outcome {
        Outcome::Killed { why } => why,
        other => panic!("{other:?}: {}", end.log_tail),
    }
}

fn what_fills_the_disk_with_files_is_killed_told_of_and_can_be_removed() {
    // Removals see what is there and say so; everything else makes files without end.
    let stage = Stage::with(
        r#"case $1 in
        unbind) ls /data/many | head -n 3 | wc -l; exit 0;;
        deprovision) rm -r /data/many; exit 0;;
        *) mkdir -p /data/many; i=0; while :; do i=$((i+1)); : > /data/many/$i; done;;
        esac"#,
    );
    let mut asked = run();
    asked.limits.disk_files = 500;
    let limits = asked.limits;
    let end = stage.run(&asked);
    let why = killed_because(&end);
    for word in ["at least 501 files", "500 files", "spec.actions.diskFiles"] {
        assert!(why.contains(word), "{why}");
    }
    // Nothing else is begun for it, in the same words.
    for action in [Action::Update, Action::Bind] {
        let end = stage.run(&next(action, limits));
        match &end.outcome {
            Outcome::NotStarted { why } => {
                assert!(why.contains("spec.actions.diskFiles"), "{why}");
            }
            other => panic!("{action:?} ended as {other:?}"),
        }
    }
    // Removals are, even if there is more than they may add to.
    for number in 0..1000 {
        std::fs::write(stage.data("many").join(format!("more-{number}")), "").unwrap();
    }
    let unbound = stage.run(&next(Action::Unbind, limits));
    succeeded(&unbound);
    assert!(unbound.log_tail.ends_with("3\n"), "{unbound:?}");
    succeeded(&stage.run(&next(Action::Deprovision, limits)));
    assert!(!stage.data("many").exists());
    stage.runner.forget_instance("instance").unwrap();
}

fn what_fills_the_disk_with_bytes_is_killed_and_told_of_wherever_it_hides() {
    // Small files in a directory that its owner cannot read.
    let stage = Stage::with(
        r#"mkdir -p /data/hidden/a; cd /data/hidden/a; chmod 300 /data/hidden /data/hidden/a; i=0
        while :; do i=$((i+1)); head -c 1000000 /dev/zero > $i; done"#,
    );
    let mut asked = run();
    asked.limits.disk_bytes = 20 << 20;
    let why = killed_because(&stage.run(&asked)).to_owned();
    for word in ["MiB in", "may have 20 MiB", "spec.actions.diskMegabytes"] {
        assert!(why.contains(word), "{why}");
    }
    stage.runner.forget_instance("instance").unwrap();
    assert!(!stage.data("").exists());
}

fn one_endless_file_ends_at_the_bound() {
    let stage = Stage::with("exec cat /dev/zero > /data/endless");
    let mut asked = run();
    asked.limits.disk_bytes = 1 << 20;
    let why = killed_because(&stage.run(&asked)).to_owned();
    assert!(why.contains("spec.actions.diskMegabytes"), "{why}");
    let size = std::fs::metadata(stage.data("endless")).unwrap().len();
    assert!(size <= 64 << 20, "{size} bytes");
}
