//! The virtual machine: boots, measures, and brings back what failed inside. Each boot takes some
//! twenty seconds of a core, and the first run fetches packages: so these run by `make lab-kernel`.

use std::fs;
use std::path::PathBuf;

use coffer_lab::kernel::{Request, Work, default_cache, measure, run_script};
use coffer_lab::net;
use coffer_lab::record::Record;
use parking_lot::Mutex;

/// One looks at what runs of this process are left.
static ALONE: Mutex<()> = Mutex::new(());

fn request(experiments: Vec<&'static str>) -> Request {
    Request {
        kernel: "6.1".into(),
        accelerator: None,
        work: Work::Experiments(experiments),
        quick: true,
        rounds: Some(1),
        cache: default_cache(),
        keep: false,
        lab: PathBuf::from(env!("CARGO_BIN_EXE_coffer-lab")),
        programs: Vec::new(),
    }
}

/// The server: the one that is named, else the one beside the lab.
fn coffer() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_BIN_EXE_coffer-lab")).with_file_name("coffer");
    std::env::var_os("COFFER_BINARY").map_or_else(beside, PathBuf::from)
}

fn runs_left() -> usize {
    let own = format!("run-{}", std::process::id());
    let entries = fs::read_dir(default_cache())
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&own)).count()
}

#[test]
#[ignore = "boots a virtual machine: make lab-kernel"]
fn what_this_kernel_lacks_runs_inside_and_failures_come_back() {
    let _alone = ALONE.lock();
    let script = "coffer-lab list && test -e /proc/aestest && echo all of it";
    let said = run_script(&request(Vec::new()), script).unwrap();
    // Some stand in several groups, and can't run in all of them.
    let runs = |name: &str| {
        let mut lines = said
            .iter()
            .filter(|line| line.trim_start().starts_with(name));
        assert!(
            lines.any(|line| line.contains("runs: ")),
            "{name}: {said:#?}"
        );
    };
    for name in [
        "AF_ALG gcm(aes) ",
        "AF_ALG driver cbc(aes-generic)",
        "kernel TLS",
        "dm-crypt",
    ] {
        runs(name);
    }
    for name in [
        "IPsec",
        "WireGuard ",
        "fscrypt",
        "NBD over WireGuard",
        "iSCSI over IPsec",
    ] {
        runs(name);
    }
    assert_eq!(said.last().map(String::as_str), Some("all of it"));

    let failing = run_script(&request(Vec::new()), "echo a planted failure; exit 7");
    let error = failing.unwrap_err().to_string();
    assert!(
        error.contains("exit status 7") && error.contains("a planted failure"),
        "{error}"
    );
    assert_eq!(runs_left(), 0);
}

/// Where instructions are counted, the figures of an experiment are the same to the last digit each
/// time, alone or beside others.
#[test]
#[ignore = "boots a virtual machine: make lab-kernel"]
fn what_is_counted_is_the_same_each_time() {
    let _alone = ALONE.lock();
    let alone = measure(&request(vec!["sendfile"])).unwrap();
    let both = measure(&request(vec!["net", "sendfile"])).unwrap();
    assert!(!alone.experiments[0].places().is_empty());
    let ids = |record: &Record| -> Vec<String> {
        record
            .experiments
            .iter()
            .map(|one| one.id.clone())
            .collect()
    };
    assert_eq!(ids(&both), [net::ids(), ids(&alone)].concat());
    if alone.experiments[0].unit.counts_instructions() {
        assert_eq!(alone.experiments, both.experiments[net::ids().len()..]);
    }
}

/// `coffer serve --data-tls kernel`: the handshake is the server's, the records are the kernel's,
/// for coffer's own client and for another, by both ciphers, in both directions.
#[test]
#[ignore = "boots a virtual machine: make lab-kernel"]
fn the_data_port_speaks_tls_that_the_kernel_encrypts() {
    let _alone = ALONE.lock();
    let mut request = request(Vec::new());
    request.programs.push(coffer());
    let said = run_script(&request, include_str!("data_tls.sh")).unwrap();
    let after = |word: &str| {
        let line = said.iter().rev().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("no {word}: {said:#?}"))
            .trim()
            .to_owned()
    };
    assert!(after("log:").contains("the data port speaks TLS 1.3, which the kernel encrypts"));
    assert_eq!(after("objects:"), "4 of 4 came back as they were put");
    assert_eq!(after("aes-128:"), "HTTP/1.1 404 Not Found");
    assert_eq!(after("aes-256:"), "HTTP/1.1 404 Not Found");
    assert_eq!(after("refused:"), "TLS 1.2");
    let counted = |name: &str| -> u64 { after(&format!("{name}:")).parse().unwrap() };
    // Both ways of each connection: one at least for each of the eight commands, and openssl's two.
    let (sent, received) = (counted("TlsTxSw"), counted("TlsRxSw"));
    assert!(sent >= 10 && sent == received, "{sent} and {received}");
    assert_eq!(counted("TlsDecryptError"), 0);
    assert_eq!(counted("left open"), 0);
    let (during, after_its_end) = (counted("standing still"), counted("after its end"));
    assert_eq!((during, after_its_end), (1, 0));
    assert_eq!(after("the client:"), "failed");
    assert_eq!(said.last().map(String::as_str), Some("all of it"));
}
