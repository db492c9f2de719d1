//! What a measurement cost: wall time, and CPU time of a thread or of the whole machine.

use std::fs;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds, user and system, of the calling thread.
pub fn thread_cpu_seconds() -> f64 {
    seconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU seconds, user and system, of this process. Children count once they have been waited for.
pub fn process_cpu_seconds() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn seconds(spent: rustix::time::Timespec) -> f64 {
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// CPU time of the whole machine since it started, kernel threads included, in seconds
/// (`/proc/stat`, proc(5)). Comes in ticks of 10 ms a core.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineTime {
    /// Spent on anything: user, nice, system, interrupts.
    pub busy_seconds: f64,
    /// Taken away by the host of this virtual machine.
    pub stolen_seconds: f64,
}

impl MachineTime {
    /// Reads it now; zeros where there is no `/proc`.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&text, rustix::param::clock_ticks_per_second() as f64).unwrap_or_default()
    }

    fn parse(text: &str, ticks_per_second: f64) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with("cpu "))?;
        let ticks: Vec<f64> = line
            .split_ascii_whitespace()
            .skip(1)
            .map_while(number)
            .collect();
        // user nice system idle iowait irq softirq steal
        let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        Some(Self {
            busy_seconds: (user + nice + system + irq + softirq) / ticks_per_second,
            stolen_seconds: steal / ticks_per_second,
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// What the calling thread has cost so far.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCost {
    /// User and system.
    pub cpu_seconds: f64,
    /// How often it left its core, of its own or not.
    pub context_switches: u64,
}

impl ThreadCost {
    /// Until now.
    pub fn so_far() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self {
            cpu_seconds: thread_cpu_seconds(),
            context_switches: context_switches(&status),
        }
    }
}

fn context_switches(status: &str) -> u64 {
    let fields = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    fields
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// A stop watch of wall time and of the machine's CPU time.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    machine: MachineTime,
}

impl Watch {
    /// Starts it.
    #[expect(clippy::new_without_default, reason = "it starts, it is no value")]
    pub fn new() -> Self {
        Self {
            machine: MachineTime::now(),
            start: Instant::now(),
        }
    }

    /// Wall seconds since the start.
    pub fn wall_seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// What the whole machine has spent since the start.
    pub fn machine(&self) -> MachineTime {
        let now = MachineTime::now();
        MachineTime {
            busy_seconds: now.busy_seconds - self.machine.busy_seconds,
            stolen_seconds: now.stolen_seconds - self.machine.stolen_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_by_its_columns() {
        let text = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let time = MachineTime::parse(text, 100.0).unwrap();
        assert!((time.busy_seconds - 1.63).abs() < 1e-9);
        assert!((time.stolen_seconds - 0.08).abs() < 1e-9);
        assert_eq!(MachineTime::parse("cpu  1 2", 100.0), None);
    }

    #[test]
    fn own_work_is_seen_by_all_clocks() {
        let watch = Watch::new();
        let (thread, process) = (thread_cpu_seconds(), process_cpu_seconds());
        while thread_cpu_seconds() - thread < 0.1 {
            std::hint::black_box(0);
        }
        assert!(process_cpu_seconds() - process >= 0.1);
        assert!(watch.wall_seconds() >= 0.09);
        assert!(watch.machine().busy_seconds >= 0.05);
    }

    #[test]
    fn switches_are_counted() {
        let status = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(context_switches(status), 7);
        let before = ThreadCost::so_far();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(ThreadCost::so_far().context_switches > before.context_switches);
    }
}
