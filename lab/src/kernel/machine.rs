//! The virtual machine: started, listened to, and ended whatever happens.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;

use crate::error::{Doing, LabError, Result};
use crate::host::processor::QEMU;
use crate::host::programs::{Running, command, find};
use crate::kernel::accelerator::{Accelerator, MEMORY_MEGABYTES};
use crate::measuring::progress::Progress;

/// The archive of a machine's files, in its folder.
pub(super) const FILES: &str = "files";

/// How long a machine may take until its first word. One that counts instructions takes 10 s of a
/// core's time, which others may use too.
const PATIENCE_KVM: Duration = Duration::from_secs(30);
const PATIENCE_TCG: Duration = Duration::from_secs(300);

/// How long it may say nothing afterwards.
const SILENCE: Duration = Duration::from_secs(1800);

/// The most that a record unpacks to.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// How many of its last lines an error tells.
const LINES_TOLD: usize = 12;

/// What to boot.
pub(super) struct Boot<'a> {
    pub(super) accelerator: Accelerator,
    pub(super) image: &'a Path,
    /// Its folder, with [`FILES`] in it, where it writes what it says.
    pub(super) folder: PathBuf,
    /// For the progress bar.
    pub(super) title: &'a str,
}

/// How it went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The exit status of what ran inside.
    pub(super) status: i32,
    /// The record that it wrote, if it wrote one.
    pub(super) record: Option<String>,
    /// What it said.
    pub(super) said: Vec<String>,
}

/// Why there is no outcome.
pub(super) enum Failure {
    /// It never said a word: this accelerator runs no kernel here.
    NeverUp,
    /// Anything else.
    Lab(LabError),
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

/// Boots, waits until the machine has switched itself off, and tells what it left.
pub(super) fn boot(boot: &Boot<'_>) -> std::result::Result<Outcome, Failure> {
    let (console, port) = (boot.folder.join("console"), boot.folder.join("port"));
    for file in [&console, &port] {
        fs::write(file, "").doing(|| format!("writing {}", file.display()))?;
    }
    let mut running = Running::start(&mut qemu(boot, &console, &port))?;
    let progress = Progress::open(boot.title);
    let patience = match boot.accelerator {
        Accelerator::Kvm => PATIENCE_KVM,
        Accelerator::Tcg => PATIENCE_TCG,
    };
    let (mut heard, mut since) = (0, Instant::now());
    loop {
        let ended = running.child.try_wait();
        let ended = ended.doing(|| "waiting for the virtual machine".into())?;
        let text = read(&port)?;
        if text.len() > heard {
            (heard, since) = (text.len(), Instant::now());
            let doing = text
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("said "));
            progress.say(doing.unwrap_or("started").trim());
        }
        if ended.is_some() {
            running.wait()?;
            return finish(&text, &read(&console)?);
        }
        if heard == 0 && since.elapsed() > patience {
            return Err(Failure::NeverUp);
        }
        if since.elapsed() > SILENCE {
            let what = format!("said nothing for {} s", SILENCE.as_secs());
            return Err(failed(&what, &text, &read(&console)?).into());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn qemu(boot: &Boot<'_>, console: &Path, port: &Path) -> std::process::Command {
    let mut qemu = command(QEMU);
    // Unpacked from its package, it looks for its parts where it was built for.
    if let Some(share) = find(QEMU).and_then(|path| Some(path.parent()?.parent()?.join("share"))) {
        qemu.arg("-L").arg(share.join("qemu"));
        qemu.arg("-L").arg(share.join("seabios"));
    }
    // The kernel's tests of its own ciphers take a simulated processor seconds, and the lab holds
    // all of them against published vectors.
    let arguments = "console=ttyS0 loglevel=4 panic=-1 no_timer_check nokaslr norandmaps \
                     random.trust_cpu=on cryptomgr.notests";
    qemu.args(boot.accelerator.options());
    qemu.args(["-smp", &boot.accelerator.core_count().to_string()]);
    qemu.args(["-m", &MEMORY_MEGABYTES.to_string()]);
    qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
    qemu.arg("-kernel")
        .arg(boot.image)
        .arg("-initrd")
        .arg(boot.folder.join(FILES));
    qemu.args(["-append", arguments]);
    for file in [console, port] {
        qemu.arg("-serial").arg(format!("file:{}", file.display()));
    }
    qemu.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    qemu
}

/// What a port has said so far. Ports end lines with CR LF.
fn read(path: &PathBuf) -> Result<String> {
    let bytes = fs::read(path).doing(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
}

fn finish(text: &str, console: &str) -> std::result::Result<Outcome, Failure> {
    if !text.lines().any(|line| line.starts_with("up ")) {
        return Err(Failure::NeverUp);
    }
    match parse(text)? {
        Some(outcome) => Ok(outcome),
        None => Err(failed("ended without an exit status", text, console).into()),
    }
}

/// None, when the machine did not come to its end.
fn parse(text: &str) -> Result<Option<Outcome>> {
    let mut lines = text.lines();
    let (mut said, mut record, mut status) = (Vec::new(), None, None);
    while let Some(line) = lines.next() {
        match line.split_once(' ') {
            Some(("said", what)) => said.push(what.to_owned()),
            Some(("exit", number)) => status = number.parse().ok(),
            _ if line == "record" => {
                let encoded: String = lines.by_ref().take_while(|line| *line != "end").collect();
                record = Some(unpack(&encoded)?);
            }
            _ => {}
        }
    }
    Ok(status.map(|status| Outcome {
        status,
        record,
        said,
    }))
}

fn unpack(encoded: &str) -> Result<String> {
    let doing = || "reading the record of the virtual machine".to_owned();
    let packed = STANDARD.decode(encoded).map_err(std::io::Error::other);
    let packed = packed.doing(doing)?;
    let mut text = String::new();
    let mut reader = GzDecoder::new(&packed[..]).take(RECORD_BYTES_MAX);
    reader.read_to_string(&mut text).doing(doing)?;
    Ok(text)
}

/// An error with what was said last, by what ran and by the kernel.
fn failed(what: &str, text: &str, console: &str) -> LabError {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES_TOLD)..].join("\n  ")
    };
    LabError::Program {
        command: "the virtual machine".into(),
        what: format!("it {what}.\n  {}\n  {}", last(text), last(console)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn what_comes_over_the_port_is_understood() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"{\"a\": 1}").unwrap();
        let encoded = STANDARD.encode(gzip.finish().unwrap());
        let (first, second) = encoded.split_at(10);
        let text = format!("up 6.1\nsaid one two\nrecord\n{first}\n{second}\nend\nexit 3\n");
        let outcome = parse(&text).unwrap().unwrap();
        assert_eq!(outcome.status, 3);
        assert_eq!(outcome.record.as_deref(), Some("{\"a\": 1}"));
        assert_eq!(outcome.said, ["one two"]);
        assert_eq!(parse("up 6.1\nsaid one\n").unwrap(), None);
        assert!(parse("up 6.1\nrecord\n!!!\nend\nexit 0\n").is_err());
        assert!(matches!(finish("", ""), Err(Failure::NeverUp)));
    }
}
