//! Power lost while a server makes its directory, and while it starts again: the next start succeeds.

use heddle_rt::Chance;

use crate::machine::Machine;

const SAMPLES: usize = 8;

/// How many operations a whole first start has, until it is ready.
async fn operations_of_a_first_start() -> u64 {
    let mut machine = Machine::new(Chance::seeded(0));
    machine.server.launch().await;
    machine.disk.operations()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_without_power_does_not_keep_the_next_one_from_starting() {
    let seed = crate::seed();
    eprintln!("HEDDLE_POWER_SEED={seed}");
    let chance = Chance::seeded(seed);
    let operations = operations_of_a_first_start().await;
    for _ in 0..crate::times(SAMPLES) {
        let mut machine = Machine::new(chance.clone());
        machine.server.spawn();
        machine.lose_power_within(operations).await;
        machine.server.launch().await;
        machine.server.heddle(&["doctor"]).ok();
    }
}
