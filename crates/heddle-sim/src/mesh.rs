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
