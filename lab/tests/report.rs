//! The report of a real, very short run: complete, self-contained, and no contender disappears.

use std::path::Path;
use std::process::{Command, Stdio};

use coffer_lab::raw;
use coffer_lab::report::compare;
use serde_json::Value;

fn lab(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
        .args(arguments)
        .output();
    let output = output.expect("the lab can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_run_becomes_a_page_that_needs_nothing_else() {
    let folder = std::env::temp_dir().join(format!("coffer-lab-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (json, page, again) = (path("run.json"), path("run.html"), path("again.html"));

    let printed = lab(&[
        "raw", "--quick", "--rounds", "1", "--json", &json, "--report", &page,
    ]);
    lab(&["report", &json, &again]);
    let mut over_itself = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
    let refused = over_itself.args(["report", &json, &json]).output().unwrap();
    assert!(!refused.status.success(), "the record would be gone");
    let compared = lab(&["compare", &json, &json]);
    let html = std::fs::read_to_string(&page).unwrap();
    let from_json = std::fs::read_to_string(&again).unwrap();
    let record = compare::read(Path::new(&json)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();

    let measured: Vec<String> = record.experiments.into_iter().map(|one| one.id).collect();
    assert_eq!(measured, raw::ids(), "published figures are found by these");
    assert_eq!(html, from_json, "JSON holds all that the page shows");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(
            !html.contains(outside),
            "the page asks for something: {outside}"
        );
    }
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("width=device-width"));
    assert!(!html.contains("NaN"));
    for name in [
        "AF_ALG cbc(aes)",
        "AES in plain C",
        "Cobblestone-256",
        "openssl speed",
        "ChaCha20-Poly1305, aws-lc-rs",
        "AES-256-GCM-SIV, RustCrypto",
        "AEGIS-256, aegis",
        "XAES-256-GCM, RustCrypto",
        "none, a copy",
        "X25519MLKEM768, rustls",
        "QAT",
        "AF_ALG ecb(cipher_null)",
        "kcapi-speed, ctr(aes-generic), 1,024 B: 150 MiB/s, which is 157 MB/s",
        "about 600 Mb/s at 8,192 B: 75 MB/s",
        "64 B: dominated by overhead",
    ] {
        assert!(
            html.contains(name) && printed.contains(name),
            "{name} disappeared"
        );
    }
    for (here, name) in [
        (
            &printed,
            "published (A): small system calls, 1 B against 1 MB a call: cost more",
        ),
        (&html, "encryption and a system call"),
        (&html, "What contradicts what"),
    ] {
        assert!(here.contains(name), "{name} disappeared");
    }
    assert_eq!(html.matches("<article").count(), 8, "advice for eight jobs");
    // The same run on both sides can't differ, and one sample each proves nothing.
    assert!(compared.contains("can't tell") && !compared.contains("times B"));
}

#[test]
fn a_list_says_why_and_what_would_help() {
    let list = lab(&["list"]);
    assert!(list.contains("runs: OpenSSL"));
    let missing = list.matches("can't run here").count();
    assert_eq!(missing, list.matches("would need").count());
    assert!(missing >= 1, "aws-lc-rs has no XTS anywhere");
    for absent in ["kernel TLS by a network card", "QAT", "ublk"] {
        assert!(list.contains(absent), "{absent} disappeared");
    }
}

#[test]
fn standard_output_that_takes_nothing_is_no_crash() {
    let list = |out: Stdio| {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        let output = lab.arg("list").stdout(out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let full = std::fs::File::create("/dev/full").unwrap();
    let (code, said) = list(full.into());
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.starts_with("error: writing to standard output: "),
        "{said}"
    );
    // As `head` ends before it has read all.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(list(writer.into()), (Some(0), String::new()));
}

fn all(value: &mut Value) -> std::slice::IterMut<'_, Value> {
    value.as_array_mut().expect("a list").iter_mut()
}

/// As clients of a busy machine may have found it.
#[test]
fn a_record_in_which_nothing_ended_once_is_read() {
    let folder = std::env::temp_dir().join(format!("coffer-lab-unended-{}", std::process::id()));
    let machines = folder.join("machines");
    std::fs::create_dir_all(&machines).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/lab/example.json");
    let text = std::fs::read_to_string(example).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let mut experiments = all(&mut record["experiments"]);
    let one = experiments.find(|one| one["id"] == "server/upload/1-mb");
    let mut series = all(&mut one.unwrap()["series"]);
    let asked = series.find(|one| one["contender"]["name"] == "one process");
    let mut points = all(&mut asked.unwrap()["points"]);
    let many = points.find(|point| point["x"] == 100).unwrap();
    many["samples"][0]["bytes"] = 0.into();
    std::fs::write(path("machines/busy.json"), record.to_string()).unwrap();

    let busy = path("machines/busy.json");
    lab(&["report", &busy, &path("page.html")]);
    lab(&["site", &path("site"), "--machines", &path("machines")]);
    let compared = lab(&["compare", &busy, example]);
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let (page, index) = (read("page.html"), read("site/index.html"));
    std::fs::remove_dir_all(&folder).unwrap();
    for text in [page, index, compared] {
        assert!(text.contains("none ended, 1 of 6"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("∞"), "{text}");
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
        .args(["compare", "Cargo.toml", "Cargo.toml"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is no record of the lab"), "{said}");
    assert!(said.starts_with("error: "), "{said}");
}

#[test]
fn what_can_not_be_written_is_said_before_anything_is_measured() {
    let folder = std::env::temp_dir().join(format!("coffer-lab-early-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kept = folder.join("kept.json");
    std::fs::write(&kept, "kept").unwrap();
    let nowhere = folder.join("no-such-folder/page.html");
    let started = std::time::Instant::now();
    for command in ["raw", "kernel"] {
        let output = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
            .args([command, "--quick", "--json"])
            .arg(&kept)
            .arg("--report")
            .arg(&nowhere)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no-such-folder/page.html"), "{said}");
    }
    let took = started.elapsed();
    assert!(took.as_secs() < 10, "it was measured first: {took:?}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_machine_without_programs_of_others_is_told_what_is_missing() {
    let folder = std::env::temp_dir().join(format!("coffer-lab-bare-{}", std::process::id()));
    let bare = |arguments: &[&str]| {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
        let output = lab.env_clear().args(arguments).arg("--cache").arg(&folder);
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said
    };
    let said = bare(&["kernel", "--kernel", "no-such-kernel"]);
    assert!(said.contains("no-such-kernel: is no kernel"), "{said}");
    assert!(!folder.exists(), "nothing was fetched for it");
    // Elsewhere it says that the machine is another, and makes nothing.
    if cfg!(target_arch = "x86_64") {
        let said = bare(&["kernel", "--quick"]);
        assert!(said.contains("apt-get: is missing"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    // Who can't run is told, and nothing fails.
    let mut lab = Command::new(env!("CARGO_BIN_EXE_coffer-lab"));
    let output = lab.env_clear().arg("list").output().unwrap();
    let list = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && list.contains("the program `openssl` is missing"));
}
