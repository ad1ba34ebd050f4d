//! Seeds for the whole mesh on turmoil's network, one process for each of them, and for meshes that are wrong on purpose.
//!
//! `HEDDLE_TURMOIL_SEEDS=5000` runs more of them, `HEDDLE_TURMOIL_SEED=17` runs one in this process and says what it was
//! made of. A test that is given no seed starts itself again for each one.

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use heddle_sim::mesh::{self, Figures, Planted, storm};

const SEED: &str = "HEDDLE_TURMOIL_SEED";
const SEEDS: u64 = 150;
const SEEDS_PLANTED: u64 = 12;
/// A seed takes a fraction of a second. One that takes this long has tasks that never rest, and its time stands still.
const PATIENCE: Duration = Duration::from_secs(60);
const STANDS_STILL: i32 = 3;
/// Behind this a process says how its seed came out.
const RIGHT: &str = "came out right: ";
const WRONG: &str = "came out wrong: ";

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line of its own"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seed that this process was given, if any.
#[expect(clippy::print_stdout, reason = "whoever started this process reads it")]
fn alone(planted: Planted) -> bool {
    let Some(seed) = number(SEED) else {
        return false;
    };
    match watched(seed, planted) {
        Ok(figures) => println!("seed {seed} {RIGHT}{figures}\n{figures:?}"),
        Err(what) => {
            println!("seed {seed} {WRONG}{}", what.replace('\n', " "));
            panic!("{SEED}={seed}: {what}");
        }
    }
    true
}

/// Runs a seed, and ends the process when it stands still: nothing in it could be asked to end.
fn watched(seed: u64, planted: Planted) -> Result<Figures, String> {
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || tell.send(storm::run(seed, planted)));
        match told.recv_timeout(PATIENCE) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Disconnected) => panic!("{SEED}={seed}: a panic"),
            Err(RecvTimeoutError::Timeout) => std::process::exit(STANDS_STILL),
        }
    })
}

/// How a seed came out in a process of its own.
fn elsewhere(test: &str, seed: u64) -> Result<Figures, String> {
    let program = std::env::current_exe().expect("this is a program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(SEED, seed.to_string())
        .output()
        .expect("this program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let behind = |mark: &str| text.lines().find_map(|line| line.split_once(mark));
    if let Some((_, figures)) = behind(RIGHT).filter(|_| output.status.success()) {
        return Ok(figures.parse().expect("a process says its figures"));
    }
    if let Some((_, what)) = behind(WRONG) {
        return Err(what.to_owned());
    }
    if output.status.code() == Some(STANDS_STILL) {
        return Err("no verdict, it stands still".to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("no verdict, {}: {errors}", output.status))
}

/// Runs the seeds, with a process for each.
fn run_all(test: &str, seeds: u64) -> (Figures, Vec<(u64, String)>) {
    mesh::run_all(seeds, |seed| elsewhere(test, seed))
}

/// What a person types to see one seed again.
fn again(test: &str, seed: u64) -> String {
    format!("{SEED}={seed} cargo test -p heddle-sim --test storm -- --exact {test} --nocapture")
}

const WHATEVER: &str =
    "whatever_happens_on_the_network_every_acknowledged_event_is_delivered_or_rests";

#[test]
fn whatever_happens_on_the_network_every_acknowledged_event_is_delivered_or_rests() {
    if alone(Planted::Nothing) {
        return;
    }
    let seeds = number("HEDDLE_TURMOIL_SEEDS").unwrap_or(SEEDS);
    let (total, wrong) = run_all(WHATEVER, seeds);
    println!("{seeds} seeds: {total:?}");
    mesh::assert_right(seeds, &wrong, |seed| again(WHATEVER, seed));
    assert!(
        total.owed > seeds * 50 && total.crashes > seeds * 3 && total.repeated > seeds,
        "the runs must have something to get wrong: {total:?}"
    );
}

#[test]
fn one_seed_is_one_history_in_whichever_process() {
    for seed in 0..15 {
        let [one, other] = [(); 2].map(|()| elsewhere(WHATEVER, seed));
        assert_eq!(one, other, "{}", again(WHATEVER, seed));
    }
}

#[test]
fn a_disk_that_only_says_that_it_syncs_is_caught_on_the_network() {
    let test = "a_disk_that_only_says_that_it_syncs_is_caught_on_the_network";
    if !alone(Planted::LazySync) {
        caught(test);
    }
}

#[test]
fn a_journal_that_notes_a_delivery_before_it_succeeded_is_caught_on_the_network() {
    let test = "a_journal_that_notes_a_delivery_before_it_succeeded_is_caught_on_the_network";
    if !alone(Planted::HastyJournal) {
        caught(test);
    }
}

#[test]
fn a_journal_that_forgets_failures_is_caught_on_the_network() {
    let test = "a_journal_that_forgets_failures_is_caught_on_the_network";
    if !alone(Planted::LossyJournal) {
        caught(test);
    }
}

fn caught(test: &str) {
    let (total, wrong) = run_all(test, SEEDS_PLANTED);
    let silent: Vec<_> = wrong
        .iter()
        .filter(|(_, what)| what.starts_with("no verdict"))
        .collect();
    assert!(
        silent.is_empty(),
        "it is found by what it does to events: {silent:?}"
    );
    assert!(
        wrong.len() as u64 > SEEDS_PLANTED / 2,
        "{total:?}, and only these show it: {wrong:?}"
    );
}
