//! The program as its user meets it: options, messages, exit codes, start and end.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

fn coffer(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
    command.args(words).stdin(Stdio::null()).env_clear();
    command
}

fn run(words: &[&str]) -> Output {
    coffer(words).output().unwrap()
}

/// Exit code and error of a command that must fail with one line and print nothing else.
#[track_caller]
fn fails(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    assert!(error.starts_with("error: "), "{error}");
    (output.status.code().unwrap(), error)
}

/// A server that is asked to end when the test does.
struct Server {
    process: Child,
    said: Vec<String>,
    out: Option<BufReader<ChildStdout>>,
}

fn serve(data: &Path, words: &[&str]) -> Server {
    let mut command = coffer(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    command.arg("--data").arg(data).args(words);
    let process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server {
        process,
        said: Vec::new(),
        out: None,
    };
    let mut out = BufReader::new(server.process.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        if out.read_line(&mut line).unwrap() == 0 {
            let mut error = String::new();
            server
                .process
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut error)
                .unwrap();
            panic!("ended before it was ready: {error}");
        }
        server.said.push(line.trim_end().to_owned());
        if line.starts_with("ready") {
            // Kept open: a server whose output is not read is another test.
            server.out = Some(out);
            return server;
        }
    }
}

impl Server {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Exit code and log.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let start = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(20), "does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut log = String::new();
        self.process
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (self.process.wait().unwrap().code(), log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn version_and_help() {
    let version = run(&["--version"]);
    let text = String::from_utf8(version.stdout).unwrap();
    assert_eq!(text, format!("coffer {}\n", env!("CARGO_PKG_VERSION")));
    let help = run(&["serve", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    for part in [
        "--listen",
        "[default: 127.0.0.1:9000]",
        "COFFER_DATA",
        "Examples:",
        "SIGTERM",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for words in [
        &[][..],
        &["serv"],
        &["serve", "--lisen", "x"],
        &["serve", "--listen", "9000"],
        &["serve", "extra"],
        &["offline"],
        &["offline", "cat", "bucket"],
        &["verify", "--rate", "fast"],
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn environment_stands_between_command_line_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coffer.toml");
    fs::write(&file, "data = \"from-file\"\n").unwrap();
    let file = file.to_str().unwrap();
    let place = |command: &mut Command| fails(command.current_dir(folder.path())).1;
    // `verify` names the folder on which no server runs.
    assert!(place(&mut coffer(&["verify"])).contains("no server runs on coffer-data "));
    let from_file = place(&mut coffer(&["verify", "--config", file]));
    assert!(from_file.contains("/from-file "), "{from_file}");
    let mut environment = coffer(&["verify", "--config", file]);
    let from_environment = place(environment.env("COFFER_DATA", "from-environment"));
    assert!(
        from_environment.contains("runs on from-environment "),
        "{from_environment}"
    );
    let mut flag = coffer(&["verify", "--config", file, "--data", "from-flag"]);
    let from_flag = place(flag.env("COFFER_DATA", "from-environment"));
    assert!(from_flag.contains("runs on from-flag "), "{from_flag}");
    let missing = place(coffer(&["verify"]).env("COFFER_CONFIG", "none.toml"));
    assert!(missing.contains("none.toml could not be read"), "{missing}");
    let bad = coffer(&["serve"])
        .env("COFFER_LISTEN", "nowhere")
        .output()
        .unwrap();
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn bad_configuration_ends_with_2_and_names_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coffer.toml");
    fs::write(
        &file,
        "listen = \"127.0.0.1:0\"\nlisten-admin = \"127.0.0.1:0\"\n",
    )
    .unwrap();
    let (code, error) = fails(coffer(&["serve", "--config"]).arg(&file));
    assert_eq!(code, 2);
    assert!(
        error.contains("line 2: unknown field `listen-admin`"),
        "{error}"
    );
}

#[test]
fn an_address_in_use_is_named_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, error) = fails(coffer(&["serve", "--listen", &address, "--data"]).arg(&data));
    assert_eq!(code, 1);
    assert!(
        error.contains(&address) && error.contains("--listen"),
        "{error}"
    );
    assert!(!data.exists());
}

#[test]
fn a_folder_that_cannot_be_or_is_not_ours_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for data in [file.join("below"), folder.path().to_owned()] {
        let mut command = coffer(&["serve", "--listen", "127.0.0.1:0"]);
        command
            .args(["--admin-listen", "127.0.0.1:0", "--data"])
            .arg(&data);
        let (code, error) = fails(&mut command);
        assert_eq!(code, 1);
        assert!(error.contains(data.to_str().unwrap()), "{error}");
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing was written"
    );
}

#[test]
fn an_unusable_certificate_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut command = coffer(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    command
        .args([
            "--tls-cert",
            "/none.pem",
            "--tls-key",
            "/none.key",
            "--data",
        ])
        .arg(&data);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let (before, error) = told.trim_end().rsplit_once('\n').unwrap();
    assert!(
        error.starts_with("error: ") && error.contains("/none.pem"),
        "{told}"
    );
    // The start had made the root key by then.
    assert!(before.contains("keep a copy of root.key apart"), "{told}");
}

#[test]
fn the_life_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    let server = serve(&data, &[]);
    let said = server.said.join("\n");
    for part in [
        &format!("export AWS_SHARED_CREDENTIALS_FILE={path}/credentials"),
        &format!("export AWS_CA_BUNDLE={path}/tls/ca.pem"),
        "aws --endpoint-url https://127.0.0.1:",
        "first start",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }

    let sound = run(&["verify", "--data", path]);
    assert_eq!(sound.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&sound.stdout),
        "checked 0 objects, 0 B: all sound\n"
    );
    let json = run(&["verify", "--json", "--rate", "1MB", "--data", path]);
    assert!(String::from_utf8_lossy(&json.stdout).ends_with("\"damage_count\":0}\n"));

    let mut second = coffer(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    let (code, error) = fails(second.args(["--data", path]));
    assert_eq!(code, 1);
    assert!(error.contains(path) && error.contains("in use"), "{error}");
    let (code, error) = fails(&mut coffer(&["offline", "ls", "--data", path]));
    assert_eq!(code, 1);
    assert!(error.contains("running"), "{error}");

    let (code, log) = server.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopping") && log.contains("stopped"), "{log}");
    assert!(!data.join("admin.sock").exists());
    let read = run(&["verify", "--data", path]);
    assert_eq!((read.status.code(), &read.stdout), (Some(0), &sound.stdout));
    let buckets = run(&["offline", "ls", "--data", path]);
    assert_eq!((buckets.status.code(), buckets.stdout.len()), (Some(0), 0));

    let again = serve(&data, &["--log-format", "json"]);
    assert!(!again.said.join("\n").contains("first start"));
    let (code, log) = again.end(Signal::INT);
    assert_eq!(code, Some(0));
    assert!(
        log.lines()
            .all(|line| line.starts_with('{') && line.ends_with('}')),
        "{log}"
    );
}

#[test]
fn a_killed_server_leaves_nothing_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let killed = serve(&data, &[]);
    killed.end(Signal::KILL);
    let read = run(&["verify", "--data", data.to_str().unwrap()]);
    assert_eq!(read.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&read.stderr).contains("no server runs"));
    let again = serve(&data, &[]);
    assert_eq!(
        run(&["verify", "--data", data.to_str().unwrap()])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(again.end(Signal::TERM).0, Some(0));
}
