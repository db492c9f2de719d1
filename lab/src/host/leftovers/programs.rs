//! Programs that labs left.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::host::leftovers::{Leftover, command_line, is_gone, names};
use crate::host::programs::{MARK, command};

/// How long a program may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lab that started a process, or what started that in turn: by the mark in its environment,
/// which its own program can't be mistaken for. Other containers count their processes otherwise.
fn starter(id: i32) -> Option<i32> {
    let numbers = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
    let begins = format!("{MARK}=");
    let mut all = environment.split(|&byte| byte == 0);
    let marked = all.find_map(|one| one.strip_prefix(begins.as_bytes()))?;
    let lab = std::str::from_utf8(marked).ok()?.parse().ok()?;
    (numbers(&id.to_string()) == numbers("self")).then_some(lab)
}

/// Programs that a lab started which is gone, and those in its namespaces. What a command line says
/// is no proof: it may be an editor's, of what a lab wrote.
pub(super) fn programs(namespaces: &[String]) -> Vec<Leftover> {
    let inside = namespaces.iter().flat_map(|name| {
        let told = command("ip").args(["netns", "pids", name]).output();
        let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let ids = told.unwrap_or_default();
        ids.split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect::<Vec<i32>>()
    });
    let inside: Vec<i32> = inside.collect();
    let all = names(Path::new("/proc"))
        .into_iter()
        .filter_map(|name| name.parse::<i32>().ok());
    let own = i32::try_from(std::process::id());
    let left = all.filter_map(|id| {
        let line = command_line(id);
        let left = inside.contains(&id) || starter(id).is_some_and(is_gone);
        (left && !line.is_empty() && own != Ok(id))
            .then(|| Leftover::Program(id, line.replace('\0', " ").trim().to_owned()))
    });
    left.collect()
}

/// Tells it to end, then ends it by force; unless its number is another's by now.
pub(super) fn end(id: i32, line: &str) -> bool {
    let Some(process) = Pid::from_raw(id) else {
        return false;
    };
    let is_there = || command_line(id).replace('\0', " ").trim() == line && !line.is_empty();
    for signal in [Signal::TERM, Signal::KILL] {
        let start = Instant::now();
        if is_there() {
            let _ = kill_process(process, signal);
        }
        while is_there() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }
    !is_there()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::leftovers::remove;

    /// What is found of programs that this test starts, as they would be after a SIGKILL of a lab.
    #[test]
    fn programs_of_a_lab_that_is_gone_are_found_by_their_mark() {
        let start = |script: &str, word: &str, lab: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", script, word]).env(MARK, lab);
            shell.spawn().unwrap()
        };
        let gone = "99999999";
        let left = start("sleep 20; :", "left", gone);
        // What it started in turn, and then ended.
        let mut starter = start("sh -c 'sleep 20; :' started-in-turn & :", "starter", gone);
        starter.wait().unwrap();
        let running = start("sleep 20; :", "running", "none");
        let named = start("sleep 20; :", "/x/coffer-lab-file-99999999/y", "none");
        let deadline = Instant::now() + PATIENCE;
        let mut found = programs(&[]);
        let holds = |found: &[Leftover], word: &str| {
            let mut all = found.iter();
            all.any(|one| one.to_string().contains(word))
        };
        while !holds(&found, "sleep 20; : started-in-turn") && Instant::now() < deadline {
            found = programs(&[]);
        }
        let seen = ["left", "started-in-turn", "running", "99999999/y"];
        let seen = seen.map(|word| holds(&found, &format!("sleep 20; : {word}")));
        let of_test = |one: &&Leftover| one.to_string().contains("sleep 20");
        let removed = found.iter().filter(of_test).all(remove);
        for mut one in [left, running, named] {
            let _ = one.kill();
            one.wait().unwrap();
        }
        assert_eq!(
            seen,
            [true, true, false, false],
            "{found:#?}: a command line is no proof"
        );
        assert!(removed, "{found:#?}");
    }
}
