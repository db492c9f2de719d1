//! `openssl speed`, as a process: the figure that people quote, beside our own loop.

use crate::contender::{Availability, Contender, Placement};
use crate::error::{LabError, Result};
use crate::host::machine::core_count;
use crate::host::programs::{command, run as run_program, version};
use crate::measuring::rounds::{Effort, Entrant, Figure, Plan, run};
use crate::record::{Axis, Experiment, Sample};
use coffer_measure::cpu_time::Watch;

const PROGRAM: &str = "openssl";

const ARGUMENTS: [&str; 8] = [
    "speed",
    "-evp",
    "aes-256-cbc",
    "-bytes",
    "1024",
    "-seconds",
    "1",
    "-mr",
];

/// The program.
pub fn contender() -> Contender {
    let version = version(PROGRAM, "version");
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
        figure: Figure::Speed,
        whole_machine: true,
        id: "raw/openssl-speed".into(),
        title: "openssl speed: AES-256-CBC, 1 KB blocks, encrypt".into(),
        axis: Axis::Threads,
        how: "What the program prints about itself, for one process and for one a core: bytes a \
              second of its own CPU time. CPU seconds beside it are those of the whole machine."
            .into(),
        contenders: vec![contender],
        entrants,
    };
    run(plan, effort)
}

fn measure(processes: usize) -> Result<Sample> {
    let mut speed = command(PROGRAM);
    speed.args(ARGUMENTS);
    if processes > 1 {
        speed.arg("-multi").arg(processes.to_string());
    }
    let watch = Watch::new();
    let printed = run_program(&mut speed)?;
    let wall_seconds = watch.wall_seconds();
    let rate = rate(&printed).ok_or_else(|| LabError::Program {
        command: format!("{PROGRAM} {}", ARGUMENTS.join(" ")),
        what: "no figure could be read".into(),
    })?;
    Ok(Sample {
        bytes: (rate * wall_seconds) as u64,
        wall_seconds,
        cpu_seconds: watch.machine().busy_seconds,
        counts: None,
        latency: None,
    })
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
}
