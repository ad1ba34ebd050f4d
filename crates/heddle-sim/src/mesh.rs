//! The whole mesh under one seed: publishers, a disk that loses power, subscribers with moods, users who change their mind.
//!
//! ```text
//!   seed -> acts: publish, wait, edit, pause, delete, make again, redrive, tidy up, change a subscriber's manner,
//!                 let the disk fail or not be readable, lose power, kill, close, set the clock, start blindly
//!        -> heal: everything exists, nothing is paused, everybody accepts, the clock is hours behind
//!        -> every acknowledged event of every trigger that was there for it was delivered or rests,
//!           byte for byte, none that was refused, none twice without a reason, and every account balances
//! ```
//! One seed is one run: time, chance, disk and network are simulated, and everything happens on one thread. What the
//! oracle is worth is shown by [`Planted`]: meshes that are wrong on purpose, which the same runs must find.

mod act;
mod book;
mod figures;
mod network;
mod opening;
mod planted;
pub mod storm;
mod subscriber;
mod wish;
mod world;

pub use figures::{Figures, NoFigures};
pub use planted::Planted;

/// How many acts make a run.
const ACTS: u64 = 70;

/// Runs one seed. The error is what was promised and did not hold.
pub fn run(seed: u64, planted: Planted) -> Result<Figures, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO always starts");
    runtime.block_on(async {
        let mut world = world::World::new(seed, planted)?;
        world.route().await;
        for _ in 0..ACTS {
            world.act().await?;
        }
        world.heal().await
    })
}

/// What so many seeds came to together, and those that came out wrong with what was wrong about them. They are dealt to two
/// threads: runs know nothing of each other.
pub fn run_all(
    seeds: u64,
    run: impl Fn(u64) -> Result<Figures, String> + Copy + Send,
) -> (Figures, Vec<(u64, String)>) {
    let part = move |first: u64| {
        let mut total = Figures::default();
        let mut wrong = Vec::new();
        for seed in (first..seeds).step_by(2) {
            match run(seed) {
                Ok(figures) => total.add(&figures),
                Err(what) => wrong.push((seed, what)),
            }
        }
        (total, wrong)
    };
    let (mut total, mut wrong) = (Figures::default(), Vec::new());
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|first| scope.spawn(move || part(first)));
        for half in halves {
            let (figures, found) = half.join().expect("who runs a seed catches its panic");
            total.add(&figures);
            wrong.extend(found);
        }
    });
    wrong.sort();
    (total, wrong)
}

/// Fails unless every seed came out right, and says how to see each of the others again.
pub fn assert_right(seeds: u64, wrong: &[(u64, String)], again: impl Fn(u64) -> String) {
    let told = wrong
        .iter()
        .map(|(seed, what)| format!("\n{}: {what}", again(*seed)));
    let told: String = told.collect();
    assert!(told.is_empty(), "{} of {seeds}:{told}", wrong.len());
}
