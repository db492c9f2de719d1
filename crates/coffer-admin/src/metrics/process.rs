//! What the system knows of this process, for metrics.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

static LOST_LOG_LINES: AtomicU64 = AtomicU64::new(0);

/// Counts lines of this process's log that could not be written.
pub fn count_lost_log_lines(count: u64) {
    LOST_LOG_LINES.fetch_add(count, Ordering::Relaxed);
}

/// Resources of this process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Process {
    /// Memory that is in RAM.
    pub(crate) resident_bytes: Option<u64>,
    /// Processor time, user and system.
    pub(crate) cpu_seconds: Option<f64>,
    /// Open files and sockets.
    pub(crate) open_files: Option<u64>,
    /// When it started, in seconds since 1970.
    pub(crate) started_seconds: Option<f64>,
    /// Lines of the log that could not be written.
    pub(crate) lost_log_lines: u64,
}

impl Process {
    /// Reads `/proc`; what is not there is left out.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut process = from_stat(&stat, &boot);
        process.lost_log_lines = LOST_LOG_LINES.load(Ordering::Relaxed);
        process.resident_bytes = statm
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok())
            .map(|pages| pages * rustix::param::page_size() as u64);
        // The listing itself holds one more open.
        process.open_files = fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count().saturating_sub(1) as u64);
        process
    }
}

/// Fields as in proc(5), counted from one: 14 utime, 15 stime, 22 starttime, in clock ticks.
fn from_stat(stat: &str, boot: &str) -> Process {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    // The second field, a name in parentheses, may hold spaces.
    let fields: Vec<f64> = stat
        .rsplit_once(") ")
        .map(|(_, rest)| {
            rest.split(' ')
                .map(|field| field.parse().unwrap_or(f64::NAN))
                .collect()
        })
        .unwrap_or_default();
    let field = |number: usize| {
        fields
            .get(number - 3)
            .copied()
            .filter(|value| !value.is_nan())
    };
    let boot_seconds: Option<f64> = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime ")?.parse().ok());
    Process {
        cpu_seconds: field(14)
            .zip(field(15))
            .map(|(user, system)| (user + system) / ticks),
        started_seconds: field(22)
            .zip(boot_seconds)
            .map(|(start, boot)| boot + start / ticks),
        ..Process::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process() {
        let process = Process::now();
        assert!(process.resident_bytes.unwrap() > 100_000);
        assert!(process.open_files.unwrap() >= 3);
        assert!(process.cpu_seconds.unwrap() < 10_000.0);
        let started = process.started_seconds.unwrap();
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        assert!(
            (now - started).abs() < 3600.0,
            "started {started}, now {now}"
        );
    }

    #[test]
    fn a_name_with_spaces_and_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 3 0 1000 1 1";
        let process = from_stat(stat, "cpu 1\nbtime 1700000000\n");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(process.cpu_seconds, Some(300.0 / ticks));
        assert_eq!(
            process.started_seconds,
            Some(1_700_000_000.0 + 1000.0 / ticks)
        );
    }
}
