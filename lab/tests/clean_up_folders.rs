//! What is left of folders that a run makes.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Folders that the run made on the way to its own go with it, whenever it is interrupted.
#[test]
fn folders_that_a_run_made_go_with_it() {
    let there = std::env::temp_dir().join(format!("lab-made-{}", std::process::id()));
    fs::create_dir_all(&there).expect("a folder");
    let none = [("sendfile", None)].into_iter();
    let moments = [0, 100, 400, 800, 1600].into_iter();
    let interrupted = moments.flat_map(|after| {
        let signals = ["sendfile", "server"].into_iter().zip(["-INT", "-TERM"]);
        signals.map(move |(experiment, signal)| (experiment, Some((signal, after))))
    });
    for (experiment, signal) in none.chain(interrupted) {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        lab.args([experiment, "--quick", "--folder"])
            .arg(there.join("new/er"));
        lab.args(signal.map_or(["--rounds", "1"], |_| ["--rounds", "100"]));
        let mut lab = lab
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the lab");
        if let Some((signal, after)) = signal {
            wait_for("its folder", || {
                fs::read_dir(there.join("new/er")).map_or(0, Iterator::count) > 0
            });
            sleep(Duration::from_millis(after));
            let mut kill = Command::new("kill");
            let sent = kill.args([signal, &lab.id().to_string()]).status();
            assert!(sent.expect("kill").success());
        }
        let status = lab.wait().expect("its end");
        let expected = signal.map_or(0, |_| 130);
        assert_eq!(status.code(), Some(expected));
        let left = fs::read_dir(&there).map_or(1, Iterator::count);
        assert_eq!(left, 0, "{experiment}, {signal:?}: new/er is left");
    }
    fs::remove_dir(&there).expect("an empty folder");
}
