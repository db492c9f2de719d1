//! What is left of folders that a run makes, and what only looks like them.

use std::fs;
use std::process::{Command, Output, Stdio};
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

/// Also where the run had no time to, unless others put something there.
#[test]
fn folders_that_a_killed_run_made_go_as_well() {
    let there = std::env::temp_dir().join(format!("lab-above-{}", std::process::id()));
    let deepest = there.join("new/er");
    for other in [None, Some(there.join("new/notes"))] {
        fs::create_dir_all(&there).expect("a folder");
        let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        lab.args(["sendfile", "--rounds", "100", "--folder"])
            .arg(&deepest);
        let lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut lab = lab.expect("the lab");
        wait_for("its folder", || {
            let all = fs::read_dir(&deepest).into_iter().flatten().flatten();
            all.map(|one| one.path())
                .any(|one| one.join("made-by-coffer-lab").is_file())
        });
        lab.kill().expect("a signal");
        lab.wait().expect("its end");
        if let Some(other) = &other {
            fs::write(other, "theirs").expect("a file");
        }
        let mut clean = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        let output = clean.arg("clean").arg("--folder").arg(&deepest).output();
        let output = output.expect("the lab");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && said.contains("made for it and empty"),
            "{said}"
        );
        assert!(!deepest.exists(), "{said}");
        assert_eq!(there.join("new").exists(), other.is_some(), "{said}");
        fs::remove_dir_all(&there).expect("the folder");
    }
}

/// As root a namespace can be anyone's, whatever it is called.
#[test]
fn namespaces_of_others_are_left_alone() {
    let name = "coffer-lab-4194000";
    let ip = |verb: &str| Command::new("ip").args(["netns", verb, name]).status();
    if !ip("add").is_ok_and(|status| status.success()) {
        return;
    }
    let mut clean = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
    let output = clean.arg("clean").output().expect("the lab");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stays = ip("del").is_ok_and(|status| status.success());
    let told = format!("left alone: network namespace {name}: ");
    assert!(stays && said.contains(&told), "{said}");
    assert!(said.contains(&format!("ip netns del '{name}'")), "{said}");
}

/// It is said where was looked, also where nothing was found.
#[test]
fn clean_tells_of_each_place() {
    let folder = std::env::temp_dir().join(format!("lab-places-{}", std::process::id()));
    let gone = folder.join("coffer-lab-file-99999999");
    let theirs = folder.join("coffer-lab-file-2024");
    for path in [&gone, &theirs] {
        fs::create_dir_all(path).expect("a folder");
    }
    let note = "made by coffer-lab; `coffer-lab clean` removes it\nprocess 99999999\nstarted 1\n\
                numbers pid:[1]\nboot x\nfolders above 0\n";
    fs::write(gone.join("made-by-coffer-lab"), note).expect("a note");
    fs::write(theirs.join("thesis.txt"), "theirs").expect("a file");
    let clean = |arguments: &[&str]| {
        let mut clean = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        clean.args(["clean", "--folder"]).arg(&folder);
        clean.args(arguments).output().expect("the lab")
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let nothing = format!("nothing found in {}\n", folder.display());

    let looked = clean(&["--dry-run"]);
    let text = said(&looked);
    assert!(gone.exists());
    assert!(text.contains(&format!("left: {}\n", gone.display())) && !text.contains(&nothing));
    let cleaned = clean(&["--json"]);
    let told: serde_json::Value = serde_json::from_str(&said(&cleaned)).expect("JSON");
    assert!(!gone.exists());
    let places = told["places"].as_array().expect("places");
    let is_own = |one: &&serde_json::Value| one["place"].as_str() == folder.to_str();
    let own = places.iter().find(is_own).expect("the folder");
    assert_eq!(own["found"][0]["what"].as_str(), gone.to_str());
    assert_eq!(own["found"][0]["removed"], true);
    let again = clean(&[]);
    let alone = format!("left alone: {}: ", theirs.display());
    assert!(said(&again).contains(&alone) && again.status.success());
    assert!(theirs.join("thesis.txt").is_file(), "{}", said(&again));
    fs::remove_dir_all(&theirs).expect("theirs");
    let again = said(&clean(&[]));
    assert!(again.contains(&nothing), "{again}");
    fs::remove_dir(&folder).expect("an empty folder");
    // A name that is mistyped is no folder without leftovers.
    let missing = clean(&[]);
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        error.contains("looking into") && error.contains("lab-places"),
        "{error}"
    );
}
