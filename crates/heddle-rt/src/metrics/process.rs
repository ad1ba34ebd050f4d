//! What this process takes of the machine, under the names that every dashboard knows.
//!
//! The kernel says it below `/proc/self`. What it does not say, on a system without that directory, is left out.

use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};

use super::{family, sample};

/// What Linux counts processor time in when it tells programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;
/// Places of user and system time in `/proc/self/stat`, counted from what follows the name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// The numbers of this process, which was started then, in the text format of OpenMetrics and without its end mark.
#[must_use]
pub fn text(started: Timestamp) -> String {
    let mut out = String::new();
    let name = "process_start_time_seconds";
    let help = "When the process was started, in seconds since 1970.";
    family(&mut out, name, "gauge", help);
    sample(&mut out, name, "", started.as_duration().as_secs_f64());
    if let Some(seconds) = proc_file("stat").as_deref().and_then(cpu_seconds) {
        let name = "process_cpu_seconds";
        let help = "Processor time that was used, in all threads.";
        family(&mut out, name, "counter", help);
        sample(&mut out, &format!("{name}_total"), "", seconds);
    }
    if let Some(bytes) = proc_file("status").as_deref().and_then(resident_bytes) {
        let name = "process_resident_memory_bytes";
        family(&mut out, name, "gauge", "Memory that is in use.");
        sample(&mut out, name, "", bytes);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let name = "process_open_fds";
        family(&mut out, name, "gauge", "Files and connections open.");
        // One of them is the directory that is read here.
        sample(&mut out, name, "", open.count().saturating_sub(1));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        let name = "process_max_fds";
        let help = "Files and connections that may be open.";
        family(&mut out, name, "gauge", help);
        sample(&mut out, name, "", most);
    }
    out
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel's answers are no files on a disk"
)]
fn proc_file(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/self/{name}")).ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name stands in brackets and may hold anything, brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(USER_TICKS)? + ticks(SYSTEM_TICKS)?) / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood_whatever_the_process_is_called() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 12 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a"), None);
        assert_eq!(
            resident_bytes("Name:\ta\nVmRSS:\t   2048 kB\nThreads:\t9\n"),
            Some(2 << 20)
        );
        assert_eq!(resident_bytes("Name:\ta\n"), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let text = text(Timestamp::UNIX_EPOCH);
        for name in [
            "process_start_time_seconds 0",
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_max_fds ",
        ] {
            assert!(text.contains(&format!("\n{name}")), "{name} in {text}");
        }
    }
}
