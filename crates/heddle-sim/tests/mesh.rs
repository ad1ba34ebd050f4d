//! Seeds for the whole mesh, and for four meshes that are wrong on purpose.
//!
//! `HEDDLE_SEEDS=1000` runs more of them, `HEDDLE_SEED=17` runs one and says what it was made of.

use heddle_sim::mesh::{self, Figures, Planted, run};

const SEEDS: u64 = 300;
/// More than enough for what is planted: most seeds show it.
const SEEDS_PLANTED: u64 = 40;

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line of its own"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seeds; a panic is one of the ways to come out wrong.
fn run_all(seeds: u64, planted: Planted) -> (Figures, Vec<(u64, String)>) {
    mesh::run_all(seeds, |seed| {
        std::panic::catch_unwind(|| run(seed, planted))
            .unwrap_or_else(|_| Err("a panic".to_owned()))
    })
}

#[test]
fn whatever_happens_every_acknowledged_event_is_delivered_or_rests() {
    if let Some(seed) = number("HEDDLE_SEED") {
        let figures = run(seed, Planted::Nothing);
        println!("seed {seed}: {figures:?}");
        assert!(figures.is_ok(), "HEDDLE_SEED={seed}: {figures:?}");
        return;
    }
    let seeds = number("HEDDLE_SEEDS").unwrap_or(SEEDS);
    let (total, wrong) = run_all(seeds, Planted::Nothing);
    println!("{seeds} seeds: {total:?}");
    mesh::assert_right(seeds, &wrong, |seed| format!("HEDDLE_SEED={seed}"));
    assert!(
        total.owed > seeds * 50 && total.crashes > seeds * 5 && total.repeated > seeds,
        "the runs must have something to get wrong: {total:?}"
    );
}

#[test]
fn one_seed_is_one_run() {
    for seed in 0..10 {
        let (one, other) = (run(seed, Planted::Nothing), run(seed, Planted::Nothing));
        assert_eq!(one, other, "seed {seed}");
    }
}

#[test]
fn a_disk_that_only_says_that_it_syncs_is_caught() {
    caught(Planted::LazySync, SEEDS_PLANTED / 2);
}

#[test]
fn a_journal_that_notes_a_delivery_before_it_succeeded_is_caught() {
    caught(Planted::HastyJournal, SEEDS_PLANTED / 2);
}

#[test]
fn a_journal_that_forgets_failures_is_caught() {
    caught(Planted::LossyJournal, SEEDS_PLANTED / 2);
}

#[test]
fn a_mesh_that_takes_what_it_cannot_read_for_gone_is_caught() {
    // Most of what is sent is still in memory, where it need not be read.
    caught(Planted::HastyReader, SEEDS_PLANTED / 10);
}

fn caught(planted: Planted, more_than: u64) {
    let (total, wrong) = run_all(SEEDS_PLANTED, planted);
    let panics = wrong.iter().filter(|(_, what)| what == "a panic").count();
    assert_eq!(
        panics, 0,
        "it is found by what it does to events: {wrong:?}"
    );
    assert!(
        wrong.len() as u64 > more_than,
        "{total:?}, and only these show it: {wrong:?}"
    );
}
