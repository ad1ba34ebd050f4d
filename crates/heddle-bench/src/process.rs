//! What a process has used, as the kernel counts it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use heddle::files;

/// The unit of CPU times in `/proc`: fixed at 100 per second by Linux's interface to user space.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time and memory of a process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) rss_bytes: u64,
}

/// Reads the usage of `pid`, or of this process.
pub(super) fn usage(pid: Option<u32>) -> anyhow::Result<Usage> {
    let dir =
        PathBuf::from("/proc").join(pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string()));
    let read = |name: &str| files::read_text(&dir.join(name));
    let cpu = cpu_of(&read("stat")?)
        .with_context(|| format!("cannot read the CPU time in {}", dir.display()))?;
    let rss_bytes = rss_of(&read("status")?)
        .with_context(|| format!("cannot read the memory in {}", dir.display()))?;
    Ok(Usage { cpu, rss_bytes })
}

/// User and system time, all threads: fields 14 and 15. The second field is the program's name,
/// in parentheses, and may hold anything.
fn cpu_of(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn rss_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_found_behind_any_program_name() {
        let stat = "7 (odd ) name) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 100 1 2";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu_of("nonsense"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(rss_of("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
    }

    #[test]
    fn this_process_has_used_something() {
        assert!(usage(None).unwrap().rss_bytes > 0);
    }
}
