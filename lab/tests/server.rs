//! Every model of a server answers, and none is left running.

use std::fs;
use std::process::{Command, Stdio};

use coffer_lab::report::compare;

fn servers_of(lab: u32) -> usize {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1));
        parent.is_some_and(|parent| parent == lab.to_string())
    };
    all.filter(child).count()
}

#[test]
fn all_models_answer_and_end() {
    let json = std::env::temp_dir().join(format!("coffer-lab-server-{}.json", std::process::id()));
    let lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
        .args(["server", "--quick", "--rounds", "1", "--json"])
        .arg(&json)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the lab");
    let pid = lab.id();
    let output = lab.wait_with_output().expect("its output");
    let (printed, said) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{said}");
    let record = compare::read(&json);
    fs::remove_file(&json).unwrap();
    assert_eq!(record.map(|one| one.experiments.len()).unwrap(), 7);
    for model in [
        "no encryption",
        "one process",
        "a thread for",
        "a process for",
        "a pool",
        "async",
    ] {
        let rows = printed
            .lines()
            .filter(|line| line.trim().starts_with(model));
        assert!(rows.count() >= 7, "{model} is missing in\n{printed}");
    }
    // Every row but coffer's, which needs the server's program beside the lab's.
    let absent: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("can't run"))
        .collect();
    let of_coffer = |line: &&str| line.trim().starts_with("coffer ") && line.contains("beside");
    assert!(absent.iter().all(of_coffer), "{printed}");
    assert!(
        printed.contains("required (A): a single client: 40 MB/s"),
        "{printed}"
    );
    // What A published stands where it belongs.
    let file = printed.find("Uploads, a file of 40 MB").expect("the file");
    assert!(
        printed[file..]
            .contains("published (A): a thread for each I/O request, one file of 500 MB"),
        "{printed}"
    );
    let waits = printed.matches("50 % of requests within").count();
    assert!(
        waits >= 72,
        "six models, two numbers of clients, three sizes, both ways: {printed}"
    );
    // One round tells nothing of what was required.
    assert!(printed.contains("can’t be told: "), "{printed}");
    assert!(!printed.contains("reached: "), "{printed}");
    for nothing in ["0.00 each", "none ended"] {
        assert!(
            !printed.contains(nothing),
            "each has answered, however busy the machine is: {printed}"
        );
    }
    assert_eq!(servers_of(pid), 0);
}
