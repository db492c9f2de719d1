//! `openssl speed`, as a process: the figure that people quote, beside our own loop.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::contender::{Availability, Contender, Placement};
use crate::cost::Watch;
use crate::error::{Doing, LabError, Result};
use crate::machine::core_count;
use crate::record::{Axis, Experiment, Sample};
use crate::rounds::{Effort, Entrant, Plan, run};
use crate::undo::Undo;

const BLOCK: &str = "1024";

/// `openssl speed` counts whole seconds, so it gets fewer rounds than the others.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 1;

/// The program.
pub fn contender() -> Contender {
    let version = version();
    let availability = match version {
        Some(_) => Availability::Runs,
        None => Availability::cannot("the program `openssl` is missing", "apt install openssl"),
    };
    Contender::new(
        "openssl speed",
        Placement::User,
        version.unwrap_or_default(),
    )
    .set("openssl speed -evp aes-256-cbc -bytes 1024 -seconds 1 -mr [-multi N]")
    .available(availability)
}

/// One process and as many as there are cores.
pub(super) fn open_ssl_speed(effort: Effort) -> Result<Experiment> {
    let contender = contender();
    let mut counts = vec![1, core_count()];
    counts.dedup();
    let entrants = counts.into_iter().map(|processes| Entrant {
        contender: 0,
        x: processes as u64,
        measure: Box::new(move || measure(processes)),
    });
    let entrants = if contender.availability.runs() {
        entrants.collect()
    } else {
        Vec::new()
    };
    let plan = Plan {
        whole_machine: true,
        id: "raw/openssl-speed".into(),
        title: "openssl speed: AES-256-CBC, 1 KB blocks, encrypt".into(),
        axis: Axis::Threads,
        how: "What the program prints about itself, for one process and for one a core; CPU \
              seconds are those of the whole machine meanwhile."
            .into(),
        contenders: vec![contender],
        entrants,
    };
    run(plan, effort.with_usual_rounds(ROUNDS, QUICK_ROUNDS))
}

fn version() -> Option<String> {
    let output = Command::new("openssl").arg("version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.to_owned())
}

fn measure(processes: usize) -> Result<Sample> {
    let mut command = Command::new("openssl");
    command.args([
        "speed",
        "-evp",
        "aes-256-cbc",
        "-bytes",
        BLOCK,
        "-seconds",
        "1",
        "-mr",
    ]);
    if processes > 1 {
        command.arg("-multi").arg(processes.to_string());
    }
    let line = format!("{command:?}").replace('"', "");
    let watch = Watch::new();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.doing(|| format!("starting {line}"))?;
    let id = child.id();
    let running = Arc::new(Mutex::new(Some(id)));
    let guard = {
        let running = running.clone();
        Undo::by(move || end(&running))
    };
    let output = child
        .wait_with_output()
        .doing(|| format!("waiting for {line}"))?;
    running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(guard);
    let wall_seconds = watch.wall_seconds();
    let rate = rate(&String::from_utf8_lossy(&output.stdout));
    let rate = rate
        .filter(|_| output.status.success())
        .ok_or(LabError::Program {
            command: line,
            what: format!("{}, and no figure could be read", output.status),
        })?;
    Ok(Sample {
        bytes: (rate * wall_seconds) as u64,
        wall_seconds,
        cpu_seconds: watch.machine().busy_seconds,
        counts: None,
    })
}

/// Ends the process, unless it has ended by itself: then its number may be another's.
fn end(running: &Mutex<Option<u32>>) {
    let left = running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let pid = left.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Bytes a second, from the last line of `-mr`: `+F:22:AES-256-CBC:1234567.89`.
fn rate(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.starts_with("+F:"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_figure_is_read() {
        let text = "+DT:AES-256-CBC:1:1024\n+R:1:AES-256-CBC:1.0\n+H:1024\n+F:25:AES-256-CBC:1.5\n";
        assert_eq!(rate(text), Some(1.5));
        assert_eq!(rate("nothing"), None);
    }

    #[test]
    fn what_has_ended_is_left_alone() {
        end(&Mutex::new(None));
    }
}
