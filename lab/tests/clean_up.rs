//! Ctrl-C in the middle of a run: nothing mounted, no folder, no process is left. What a SIGKILL
//! leaves goes by `coffer-lab clean`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a run may take to get going, and to clean up.
const PATIENCE: Duration = Duration::from_secs(60);

/// `clean` takes what any lab left, so tests that leave something or clean take turns.
static CLEANING: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    CLEANING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

fn mounts(folder: &str) -> usize {
    let all = fs::read_to_string("/proc/mounts").unwrap_or_default();
    all.lines().filter(|line| line.contains(folder)).count()
}

/// Processes whose command line names the folder, but for the lab itself.
fn processes(folder: &str, but: u32) -> Vec<String> {
    let lines = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
            (pid != but && line.contains(folder)).then(|| line.replace('\0', " "))
        });
    lines.collect()
}

/// Those whose parent is the lab.
fn children(lab: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        rest.and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok())
    };
    all.filter(|id| parent(id) == Some(lab)).collect()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn namespaces(pid: u32) -> usize {
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let own = format!("coffer-lab-{pid}-");
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
        .count()
}

/// Interrupts an experiment when it is under way, and looks at what is left.
fn interrupt(experiment: &str, under_way: impl Fn(&str, u32) -> bool) {
    end(experiment, "-INT", Stdio::inherit(), under_way);
}

/// The same by any signal, of a lab with this standard error.
fn end(experiment: &str, signal: &str, errors: Stdio, under_way: impl Fn(&str, u32) -> bool) {
    let folder = format!(
        "coffer-lab-interrupted-{experiment}{signal}-{}",
        std::process::id()
    );
    let folder = std::env::temp_dir().join(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let name = folder.to_str().expect("a path in UTF-8").to_owned();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
        .args([experiment, "--rounds", "100", "--folder", &name])
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .expect("the lab");
    let pid = lab.id();
    wait_for("something to clean up", || under_way(&name, pid));
    sleep(Duration::from_millis(300));
    let interrupted = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    interrupted.expect("kill");
    let mut status = None;
    wait_for("the end", || {
        status = lab.try_wait().expect("a status");
        status.is_some()
    });
    let files = fs::read_dir(&folder).map_or(0, Iterator::count);
    let notes = fs::read_dir("/run").into_iter().flatten().flatten();
    let own = format!("coffer-lab-{pid}-");
    let notes = notes.filter(|one| one.file_name().to_string_lossy().starts_with(&own));
    let left = (mounts(&name), namespaces(pid) + notes.count(), files);
    // A FUSE program ends when the kernel tells it that its mount is gone.
    wait_for("all processes to end", || processes(&name, pid).is_empty());
    fs::remove_dir_all(Path::new(&name)).expect("an empty folder");
    assert_eq!(status.and_then(|status| status.code()), Some(130));
    assert_eq!(
        left,
        (0, 0, 0),
        "mounts, namespaces and files that were left"
    );
}

/// Kills an experiment when it is under way, and has what it left removed.
fn kill(experiment: &str, under_way: impl Fn(&str, u32) -> bool) {
    let folder = format!("coffer-lab-killed-{experiment}-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let name = folder.to_str().expect("a path in UTF-8").to_owned();
    // Whatever its file is called.
    let program = folder.with_file_name(format!("renamed-{experiment}-{}", std::process::id()));
    // By another process: what is open for writing here, a child of another test may still hold.
    let mut copy = Command::new("cp");
    let copied = copy.arg(env!("CARGO_BIN_EXE_coffer-lab")).arg(&program);
    assert!(copied.status().expect("cp").success(), "a copy");
    let mut lab = Command::new(&program)
        .args([experiment, "--rounds", "100", "--folder", &name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the lab");
    let pid = lab.id();
    wait_for("something to clean up", || under_way(&name, pid));
    let clean = || {
        let mut clean = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        let output = clean
            .args(["clean", "--folder", &name])
            .output()
            .expect("the lab");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    };
    let removes = |said: &str| {
        let mut removed = said.lines().filter(|line| line.starts_with("removed: "));
        removed.any(|line| line.contains(&name))
    };
    assert!(!removes(&clean()), "a lab that runs keeps what it has");
    let started = children(pid);
    lab.kill().expect("a signal");
    lab.wait().expect("its end");
    assert!(fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some()));
    // Where something is mounted, its folder is found without being named.
    if mounts(&name) > 0 {
        let mut look = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        let output = look.args(["clean", "--dry-run"]).output().expect("the lab");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let own = format!("left: {name}/coffer-lab-{experiment}-{pid}\n");
        assert!(said.contains(&own), "{said}");
    }
    let said = clean();
    assert!(removes(&said), "{said}");
    let files = fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!((mounts(&name), namespaces(pid), files), (0, 0, 0), "{said}");
    assert_eq!(processes(&name, pid), Vec::<String>::new(), "{said}");
    let lives = |id: &u32| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.contains("serve-model") || line.contains(&name)
    };
    assert!(!started.iter().any(lives), "{said}");
    fs::remove_dir_all(&folder).expect("an empty folder");
    fs::remove_file(&program).expect("the copy");
}

#[test]
fn what_a_killed_file_run_left_is_removed() {
    let _turn = turn();
    kill("file", |folder, _| {
        let entries = fs::read_dir(folder).map_or(0, Iterator::count);
        if is_root() {
            mounts(folder) >= 1
        } else {
            entries > 0
        }
    });
}

#[test]
fn what_killed_servers_left_is_removed() {
    let _turn = turn();
    kill("server", |_, pid| children(pid).len() >= 3);
}

#[test]
fn what_a_killed_network_left_is_removed() {
    let _turn = turn();
    kill("net", |folder, pid| {
        let entries = fs::read_dir(folder).map_or(0, Iterator::count);
        if is_root() {
            namespaces(pid) >= 4
        } else {
            entries > 0
        }
    });
}

#[test]
fn interrupted_files_leave_nothing() {
    // As root it mounts images; otherwise it has at least its folder.
    interrupt("file", |folder, _| {
        let entries = fs::read_dir(folder).map_or(0, Iterator::count);
        if is_root() {
            mounts(folder) >= 2
        } else {
            entries > 0
        }
    });
}

#[test]
fn interrupted_networks_leave_nothing() {
    interrupt("net", |folder, pid| {
        let entries = fs::read_dir(folder).map_or(0, Iterator::count);
        if is_root() {
            namespaces(pid) >= 4
        } else {
            entries > 0
        }
    });
}

#[test]
fn interrupted_servers_leave_nothing() {
    interrupt("server", |folder, _| {
        fs::read_dir(folder).map_or(0, Iterator::count) > 0
    });
}

#[test]
fn interrupted_transfers_leave_nothing() {
    interrupt("sendfile", |folder, _| {
        fs::read_dir(folder).map_or(0, Iterator::count) > 0
    });
}

/// A terminal that is gone takes no message, as a full disk does: all is undone all the same.
#[test]
fn who_cannot_say_so_cleans_up_as_well() {
    for signal in ["-HUP", "-TERM"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let full = Stdio::from(full.expect("a device that is full"));
        end("sendfile", signal, full, |folder, _| {
            fs::read_dir(folder).map_or(0, Iterator::count) > 0
        });
    }
}

/// Names of files may hold anything: line breaks, quotation marks, and what is no text.
#[test]
fn names_that_are_no_text_are_taken_and_the_record_is_read() {
    use std::os::unix::ffi::OsStrExt;
    let folder = std::env::temp_dir().join(format!("lab-names-{}", std::process::id()));
    for name in [b"a \"b\"\n\\c".as_slice(), b"no\xfftext"] {
        let inside = folder.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(&inside).expect("a folder");
        let record = inside.join("record.json");
        let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        lab.args(["sendfile", "--quick", "--rounds", "1", "--folder"]);
        let output = lab.arg(&inside).arg("--json").arg(&record).output();
        let output = output.expect("the lab");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let mut report = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        report
            .arg("report")
            .arg(&record)
            .arg(inside.join("page.html"));
        let output = report.output().expect("the lab");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

/// What is not the lab's is left alone, whatever its command line says.
#[test]
fn programs_of_others_are_left_alone() {
    let _turn = turn();
    let folder = std::env::temp_dir().join(format!("lab-others-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let names = [
        "coffer-lab-99999999-results.json",
        "coffer-lab-file-99999999-results.json",
    ];
    for name in names {
        let file = folder.join(name);
        fs::write(&file, "{}").expect("a file");
        let mut other = Command::new("tail")
            .arg("-f")
            .arg(&file)
            .stdout(Stdio::null())
            .spawn()
            .expect("tail");
        wait_for("tail", || !processes(name, std::process::id()).is_empty());
        let output = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
            .args(["clean", "--folder"])
            .arg(&folder)
            .output()
            .expect("the lab");
        let lives = other.try_wait().expect("a status").is_none();
        let _ = other.kill();
        other.wait().expect("its end");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(lives && file.exists() && !said.contains(name), "{said}");
    }
    fs::remove_dir_all(&folder).expect("the folder");
}
