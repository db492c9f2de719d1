//! What the lab says of system calls and copies is what was observed.

use std::process::Command;

use coffer_lab::record::{Point, Record};

#[test]
fn reading_and_writing_copies_each_byte_twice_and_sendfile_never() {
    let folder = std::env::temp_dir().join(format!("coffer-lab-sent-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (json, page) = (folder.join("run.json"), folder.join("run.html"));
    let output = Command::new(env!("CARGO_BIN_EXE_coffer-lab"))
        .args(["sendfile", "--quick", "--rounds", "1", "--folder"])
        .arg(&folder)
        .arg("--json")
        .arg(&json)
        .arg("--report")
        .arg(&page)
        .output()
        .expect("the lab");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(&json).expect("a record");
    let record: Record = serde_json::from_str(&text).expect("a record");
    let html = std::fs::read_to_string(&page).expect("a report");
    let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    std::fs::remove_dir_all(&folder).expect("a folder");
    assert_eq!(files, 2, "only record and report are left");

    let experiment = &record.experiments[0];
    let observed = |name: &str| {
        let series = experiment.series.iter();
        let mut points = series.filter(|one| one.contender.name == name);
        let point: Option<&Point> = points.next().and_then(|one| one.at(1_000_000));
        point
            .and_then(|point| point.observed.clone())
            .unwrap_or_else(|| panic!("{name} was not observed: {}", experiment.how))
    };
    let near = |found: f64, expected: f64| (found - expected).abs() < 0.01;
    let sent = observed("none, sendfile");
    assert!(
        near(sent.copied(), 0.0) && near(sent.moved_within(), 1.0),
        "{sent:?}"
    );
    let copied = observed("none, read and write");
    assert!(
        near(copied.copied(), 2.0) && near(copied.moved_within(), 0.0),
        "{copied:?}"
    );
    assert_eq!(copied.calls["read"].bytes, 5_000_000);
    assert!(sent.calls_of_a_transfer() < copied.calls_of_a_transfer());
    // Tags and headers come on top of what the file holds.
    let tls = observed("TLS in the program");
    assert!(tls.copied() > 2.0 && tls.copied() < 2.01, "{tls:?}");
    let sealed = observed("sealed file, sendfile, opened by the client");
    assert!(near(sealed.copied(), 0.0), "{sealed:?}");

    for drawn in [
        "10 MB: bytes copied between kernel and program for each one delivered; less is better",
        "10 MB: system calls of the server for a transfer; less is better",
    ] {
        assert!(html.contains(drawn), "{drawn} is missing");
    }
    for way in &experiment.series {
        assert!(
            html.contains(&way.contender.name),
            "{} disappeared",
            way.contender.name
        );
    }
}
