//! How long it takes from start to end when the program does nothing. It is printed, and nothing is demanded.

use heddle_rt::Clock;

use crate::stage::{Stage, run, succeeded};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![the_time_of_a_launch_is_measured];

const LAUNCHES: usize = 50;

fn the_time_of_a_launch_is_measured() {
    let stage = Stage::with("exit 0");
    stage.runner.check().unwrap();
    let clock = Clock::system();
    let (mut starts, mut wholes) = (Vec::new(), Vec::new());
    for _ in 0..LAUNCHES {
        let asked = run();
        let begun = clock.monotonic();
        stage.start(&asked);
        starts.push(clock.monotonic() - begun);
        while !stage.run_file(&asked.id, "ended.json").exists() {
            std::thread::yield_now();
        }
        wholes.push(clock.monotonic() - begun);
        succeeded(&stage.end(&asked.id));
    }
    starts.sort();
    wholes.sort();
    let middle = LAUNCHES / 2;
    println!(
        "     start answers after {:?}, the run is over after {:?} (median of {LAUNCHES})",
        starts[middle], wholes[middle]
    );
}
