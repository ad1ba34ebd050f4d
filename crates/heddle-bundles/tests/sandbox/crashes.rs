//! Servers and shims that die, and callers that do not know of each other.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heddle_api::action::{Outcome, RunState};

use crate::stage::{self, Stage, open, options, program, run, succeeded, until};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    a_run_outlives_the_server_that_started_it,
    a_shim_that_is_killed_takes_everything_with_it_and_the_run_is_interrupted,
    a_run_is_executed_once_however_many_start_it,
    a_shim_that_comes_late_leaves_a_run_that_is_over_alone,
    a_run_that_was_prepared_and_not_begun_can_be_started,
];

const WAITING: &str =
    "echo x >> /data/starts; while [ ! -e /data/go ]; do sleep 0.02; done; echo done";

/// The life of a server that is killed: it starts a run and does nothing more.
pub(crate) fn serve(directory: &Path, root: &Path, id: &str) -> ! {
    let runner = open(options(directory));
    let mut asked = run();
    id.clone_into(&mut asked.id);
    runner.start(&asked, root, &program()).unwrap();
    println!("started");
    loop {
        std::thread::park();
    }
}

fn a_run_outlives_the_server_that_started_it() {
    let stage = Stage::with(WAITING);
    let sandbox = stage.directory.path().join("sandbox");
    let mut server = Command::new(std::env::current_exe().unwrap())
        .arg("server")
        .args([&sandbox, &stage.root])
        .arg("outliving")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the program", || stage.data("starts").exists());
    server.kill().unwrap();
    server.wait().unwrap();

    let next = open(options(&sandbox));
    assert!(matches!(
        next.look("outliving").unwrap(),
        RunState::Running { .. }
    ));
    let mut again = run();
    "outliving".clone_into(&mut again.id);
    next.start(&again, &stage.root, &program()).unwrap();
    std::fs::write(stage.data("go"), "").unwrap();
    let end = stage::end_of(&next, "outliving");
    succeeded(&end);
    assert!(end.log_tail.ends_with("done\n"), "{}", end.log_tail);
    assert_eq!(
        std::fs::read_to_string(stage.data("starts")).unwrap(),
        "x\n"
    );
}

fn a_shim_that_is_killed_takes_everything_with_it_and_the_run_is_interrupted() {
    let stage = Stage::with("echo before; touch /data/up; sleep 1003003");
    let asked = run();
    stage.start(&asked);
    until("the program", || stage.data("up").exists());
    let log = || stage.runner.log(&asked.id).unwrap();
    until("the log", || log().contains("before"));
    let groups = std::fs::read_to_string(stage.run_file(&asked.id, "cgroups")).unwrap();
    let pid = std::fs::read_to_string(stage.run_file(&asked.id, "lock")).unwrap();
    let killed = Command::new(stage::busybox())
        .args(["kill", "-9", pid.trim()])
        .status();
    assert!(killed.unwrap().success());

    let end = stage.end(&asked.id);
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert!(end.log_tail.contains("before"), "{}", end.log_tail);
    until("the end of its processes", || {
        stage::processes_with("sleep 1003003").is_empty()
    });
    stage.start(&asked);
    assert_eq!(stage.end(&asked.id).outcome, Outcome::Interrupted);
    stage.runner.forget(&asked.id).unwrap();
    assert!(
        groups.lines().all(|group| !Path::new(group).exists()),
        "{groups}"
    );
}

fn a_run_is_executed_once_however_many_start_it() {
    let stage = Stage::with(WAITING);
    let sandbox = stage.directory.path().join("sandbox");
    let asked = run();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Each has a runner of its own, as another server would.
            scope.spawn(|| {
                let runner = open(options(&sandbox));
                runner.start(&asked, &stage.root, &program()).unwrap();
                assert!(matches!(
                    runner.look(&asked.id).unwrap(),
                    RunState::Running { .. }
                ));
            });
        }
    });
    std::fs::write(stage.data("go"), "").unwrap();
    succeeded(&stage.end(&asked.id));
    stage.start(&asked);
    succeeded(&stage.end(&asked.id));
    assert_eq!(
        std::fs::read_to_string(stage.data("starts")).unwrap(),
        "x\n"
    );
    assert!(!stage.run_file(&asked.id, "run.json").exists());
}

/// Whoever looked before another one's run began and ended starts a shim all the same.
fn a_shim_that_comes_late_leaves_a_run_that_is_over_alone() {
    let stage = Stage::with(WAITING);
    let asked = run();
    stage.start(&asked);
    let order = std::fs::read(stage.run_file(&asked.id, "run.json")).unwrap();
    std::fs::write(stage.data("go"), "").unwrap();
    succeeded(&stage.end(&asked.id));
    let mut late = Command::new(std::env::current_exe().unwrap())
        .arg("sandbox-run")
        .arg(stage.run_file(&asked.id, ""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It need not listen.
    late.stdin.take().unwrap().write_all(&order).ok();
    let answer = late.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(answer.stdout).unwrap(), "known\n");
    assert_eq!(
        std::fs::read_to_string(stage.data("starts")).unwrap(),
        "x\n"
    );
    assert!(!stage.run_file(&asked.id, "run.json").exists());
}

/// What a crash leaves between the directory and the shim.
fn a_run_that_was_prepared_and_not_begun_can_be_started() {
    let stage = Stage::with("exit 0");
    let asked = run();
    std::fs::create_dir_all(stage.run_file(&asked.id, "")).unwrap();
    std::fs::write(stage.run_file(&asked.id, "run.json"), "{").unwrap();
    std::fs::write(stage.run_file(&asked.id, "lock"), "77777\n").unwrap();
    assert_eq!(stage.runner.look(&asked.id).unwrap(), RunState::Unheard);
    succeeded(&stage.run(&asked));
}
