//! File systems in user programs (FUSE) that encrypt a folder file by file: gocryptfs, encfs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use coffer_seal::random_bytes;

use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::file::folder_store::FolderStore;
use crate::file::image::{is_mounted, unmount};
use crate::file::store::Store;
use crate::host::programs::{Running, command, lacking, run, version};
use crate::host::undo::Foundation;

/// How long a file system may take to be mounted.
const PATIENCE: Duration = Duration::from_secs(30);

/// One of them, as found on this machine.
pub(super) fn contender(name: &str) -> Contender {
    let runs_on = version(name, "--version").unwrap_or_else(|| name.into());
    let missing = lacking(&[name, "fusermount"]).or_else(|| {
        let device = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse");
        let cannot =
            |_| Availability::cannot("/dev/fuse can't be opened", "modprobe fuse, as root");
        device.err().map(cannot)
    });
    Contender::new(name, Placement::User, runs_on).available(missing.unwrap_or(Availability::Runs))
}

/// A random passphrase in a file.
pub(super) fn passphrase(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("passphrase");
    let text = hex::encode(random_bytes::<32>()) + "\n";
    fs::write(&path, text).doing(|| format!("writing {}", path.display()))?;
    Ok(path)
}

pub(super) fn gocryptfs(folder: &Path) -> Result<Box<dyn Store>> {
    let (below, mount_point) = folders(folder)?;
    let passphrase = passphrase(folder)?;
    // The passphrase is random: a slow derivation would only delay the start.
    let init = ["-q", "-init", "-scryptn", "10", "-passfile"];
    run(command("gocryptfs").args(init).arg(&passphrase).arg(&below))?;
    let mut mounting = command("gocryptfs");
    mounting
        .args(["-fg", "-q", "-nosyslog", "-passfile"])
        .arg(&passphrase);
    mount(mounting.args([&below, &mount_point]), folder)
}

pub(super) fn encfs(folder: &Path) -> Result<Box<dyn Store>> {
    let (below, mount_point) = folders(folder)?;
    let passphrase = passphrase(folder)?;
    let mut mounting = command("encfs");
    mounting
        .args(["-f", "--standard"])
        .arg(format!("--extpass=cat {}", passphrase.display()));
    mount(mounting.args([&below, &mount_point]), folder)
}

/// The folders that lie below and above the file system.
fn folders(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (below, mount_point) = (folder.join("below"), folder.join("mount"));
    for made in [&below, &mount_point] {
        fs::create_dir(made).doing(|| format!("making {}", made.display()))?;
    }
    Ok((below, mount_point))
}

/// Starts the program, which stays in the foreground: so it is known, and can be ended, before it
/// has mounted anything.
fn mount(program: &mut Command, folder: &Path) -> Result<Box<dyn Store>> {
    let (below, mount_point) = (folder.join("below"), folder.join("mount"));
    let said = folder.join("said");
    let errors = File::create(&said).doing(|| format!("writing {}", said.display()))?;
    program
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    let mut foundation = Foundation::default();
    foundation.add(unmount(&mount_point));
    let running = Running::start(program)?;
    let start = Instant::now();
    while !is_mounted(&mount_point) {
        if running.has_ended() || start.elapsed() > PATIENCE {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let name = Path::new(program.get_program()).file_name();
            return Err(LabError::Program {
                command: name.unwrap_or_default().to_string_lossy().into_owned(),
                what: format!("it mounted nothing: {}", said.trim()),
            });
        }
        thread::sleep(Duration::from_millis(10));
    }
    // It unmounts when it is told to end.
    foundation.add(running);
    let store = FolderStore::new(&mount_point, &below, foundation);
    Ok(Box::new(store))
}
