//! What else the machine was doing: a number measured beside a compiler is no number.
//!
//! Linux counts the busy time of all processors; what this benchmark and its children used is taken away, and the rest is
//! foreign. Time in interrupts is left out: nearly all of it is the benchmark's own packets, and kernels differ in whether
//! they add it to the process they interrupt.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use heddle::files;

/// More foreign cores than this make a run doubtful.
pub(super) const FOREIGN_CORES_MAX: f64 = 0.25;

/// The unit of CPU times in `/proc`, in milliseconds.
const TICK_MILLIS: u64 = 10;

/// Busy time so far: of the whole machine, and of this process with all its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Busy {
    machine: Duration,
    own: Duration,
}

impl Busy {
    pub(super) fn now() -> anyhow::Result<Self> {
        let text = files::read_text(Path::new("/proc/stat"))?;
        let machine = machine(&text).context("cannot read the busy time in /proc/stat")?;
        Ok(Self {
            machine,
            own: own(std::process::id())?,
        })
    }

    /// How many cores others used since `before`, on average over `elapsed`.
    pub(super) fn foreign_cores_since(&self, before: &Self, elapsed: Duration) -> f64 {
        let machine = self.machine.saturating_sub(before.machine);
        let own = self.own.saturating_sub(before.own);
        machine.saturating_sub(own).as_secs_f64() / elapsed.as_secs_f64().max(0.001)
    }
}

/// User, nice, system and stolen time of all processors.
fn machine(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let ticks = fields.get(..3)?.iter().sum::<u64>() + fields.get(7)?;
    Some(Duration::from_millis(ticks * TICK_MILLIS))
}

/// What a process used, its children that ended and those that run.
fn own(pid: u32) -> anyhow::Result<Duration> {
    let mut total = Duration::ZERO;
    for entry in std::fs::read_dir("/proc").context("cannot list /proc")? {
        let name = entry.context("cannot list /proc")?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end between the listing and the look; then it was not ours, for ours are waited for.
        let Ok(stat) = files::read_text(&Path::new("/proc").join(name).join("stat")) else {
            continue;
        };
        if let Some((parent, cpu)) = parent_and_cpu(&stat)
            && (number == pid || parent == pid)
        {
            total += cpu;
        }
    }
    Ok(total)
}

/// The fourth field, and the fields 14 to 17: user and system time, own and of children that were waited for.
fn parent_and_cpu(stat: &str) -> Option<(u32, Duration)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let mut ticks = 0;
    for field in fields.get(11..15)? {
        ticks += field.parse::<u64>().ok()?;
    }
    Some((parent, Duration::from_millis(ticks * TICK_MILLIS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_and_idle_time_are_not_busy() {
        let stat = "cpu  100 20 30 4000 500 60 70 8 0 0\ncpu0 1 2 3\n";
        assert_eq!(machine(stat), Some(Duration::from_millis(1580)));
        assert_eq!(machine("intr 1"), None);
    }

    #[test]
    fn a_process_counts_with_its_children_that_ended() {
        let stat = "7 (odd ) name) S 42 2 3 4 5 6 7 8 9 10 100 50 25 5 20 0 4 0 100 1 2";
        assert_eq!(
            parent_and_cpu(stat),
            Some((42, Duration::from_millis(1800)))
        );
        assert_eq!(parent_and_cpu("7 (cut) S 42 2"), None);
    }

    #[test]
    fn what_is_not_ours_is_foreign() {
        let at = |machine, own| Busy {
            machine: Duration::from_secs(machine),
            own: Duration::from_secs(own),
        };
        let foreign = at(20, 8).foreign_cores_since(&at(10, 2), Duration::from_secs(8));
        assert!((foreign - 0.5).abs() < 1e-9, "{foreign}");
        // The two counters are read one after the other; a difference below zero means nothing.
        let foreign = at(11, 5).foreign_cores_since(&at(10, 2), Duration::from_secs(8));
        assert!(foreign.abs() < 1e-9, "{foreign}");
    }

    #[test]
    fn this_machine_can_be_read() {
        let busy = Busy::now().unwrap();
        assert!(busy.machine >= busy.own);
    }
}
