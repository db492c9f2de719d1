//! Who takes part with files, asked of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use coffer_seal::random_bytes;

use crate::coffer_server;
use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, Result};
use crate::file::folder_store::FolderStore;
use crate::file::image::{self, Kind, unmount};
use crate::file::piped::Piped;
use crate::file::sealed::Sealed;
use crate::file::server::Server;
use crate::file::store::Store;
use crate::kernel_crypto::Config;
use crate::programs::{command, find, run, run_to_background, version};

/// Makes a store in an empty folder, with room for so many bytes.
type Open = Box<dyn Fn(&Path, u64) -> Result<Box<dyn Store>>>;

/// One that takes part.
pub(super) struct Entry {
    pub(super) contender: Contender,
    pub(super) open: Open,
}

/// All of them, those that can't run among them.
pub(super) fn entries() -> Vec<Entry> {
    let entry = |contender, open| Entry { contender, open };
    vec![
        entry(
            Contender::new("none", Placement::None, "a file in a folder"),
            Box::new(|folder, _| Ok(Box::new(FolderStore::new(folder, folder, Vec::new())))),
        ),
        entry(
            image_contender(
                "none, ext4 in an image",
                Placement::None,
                "ext4 on a loop device",
                &[],
            ),
            Box::new(|folder, bytes| image::open(Kind::Plain, folder, bytes)),
        ),
        entry(
            image_contender(
                "fscrypt",
                Placement::Kernel,
                "ext4 on a loop device",
                &["CONFIG_FS_ENCRYPTION"],
            )
            .set("policy version 2, AES-256-XTS for contents, AES-256-CTS for names"),
            Box::new(|folder, bytes| image::open(Kind::Fscrypt, folder, bytes)),
        ),
        entry(
            dm_crypt_contender(),
            Box::new(|folder, bytes| image::open(Kind::DmCrypt, folder, bytes)),
        ),
        entry(
            gocryptfs_contender(),
            Box::new(|folder, _| gocryptfs(folder)),
        ),
        entry(encfs_contender(), Box::new(|folder, _| encfs(folder))),
        entry(
            program_contender("openssl enc", "openssl", "version")
                .set("openssl enc -aes-256-ctr -pbkdf2, fed through a pipe; not authenticated"),
            Box::new(|folder, _| openssl_enc(folder)),
        ),
        entry(
            program_contender("age", "age", "--version")
                .set("age --encrypt to one X25519 recipient, fed through a pipe"),
            Box::new(|folder, _| age(folder)),
        ),
        entry(
            Contender::new("coffer blob", Placement::User, "coffer-seal over aws-lc-rs")
                .set("one Cobblestone-256 message, sealed and opened 1 MiB at a time"),
            Box::new(|folder, _| Ok(Box::new(Sealed::new(folder)))),
        ),
        entry(
            server_contender(),
            Box::new(|folder, _| {
                let program = coffer_server::program().unwrap_or_else(|| "coffer".into());
                Ok(Box::new(Server::new(&program, folder)?))
            }),
        ),
    ]
}

const UNPACK: &str = "make lab, which unpacks it; or apt install";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn needs_programs(programs: &[&str]) -> Option<Availability> {
    let missing = programs.iter().find(|program| find(program).is_none())?;
    Some(Availability::cannot(
        format!("the program {missing} is missing"),
        format!("{UNPACK} {missing}"),
    ))
}

fn image_contender(name: &str, placement: Placement, runs_on: &str, options: &[&str]) -> Contender {
    let config = Config::read();
    let lacking = options
        .iter()
        .find(|option| config.option(option) == Some('n'));
    let contender = Contender::new(name, placement, runs_on)
        .set("mkfs.ext4 in an allocated image file, mount -o loop");
    let missing = if let Some(option) = lacking {
        Some(Availability::cannot(
            config.lacks(option),
            "a kernel that has it, as Debian's; try coffer-lab kernel",
        ))
    } else if !is_root() {
        Some(Availability::cannot(
            "mounting an image needs root",
            "run the lab as root",
        ))
    } else if !Path::new("/dev/loop-control").exists() {
        Some(Availability::cannot(
            "there are no loop devices",
            "modprobe loop",
        ))
    } else {
        needs_programs(&["mkfs.ext4", "mount", "umount"])
    };
    contender.available(missing.unwrap_or(Availability::Runs))
}

fn dm_crypt_contender() -> Contender {
    let runs_on = version("cryptsetup", "--version").unwrap_or_else(|| "cryptsetup".into());
    let options = ["CONFIG_DM_CRYPT"];
    let contender = image_contender("dm-crypt", Placement::Kernel, &runs_on, &options)
        .set("cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 512");
    match needs_programs(&["cryptsetup", "losetup"]) {
        Some(missing) if contender.availability.runs() => contender.available(missing),
        _ => contender,
    }
}

fn fuse_contender(name: &str) -> Contender {
    let runs_on = version(name, "--version").unwrap_or_else(|| name.into());
    let missing = needs_programs(&[name, "fusermount"]).or_else(|| {
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

fn gocryptfs_contender() -> Contender {
    fuse_contender("gocryptfs").set("its defaults: AES-256-GCM, over FUSE")
}

fn encfs_contender() -> Contender {
    fuse_contender("encfs").set("--standard: AES-192-CBC in blocks of 1 KiB, over FUSE")
}

fn program_contender(name: &str, program: &str, argument: &str) -> Contender {
    let runs_on = version(program, argument).unwrap_or_else(|| program.into());
    let availability = needs_programs(&[program]).unwrap_or(Availability::Runs);
    Contender::new(name, Placement::User, runs_on).available(availability)
}

fn server_contender() -> Contender {
    let contender = Contender::new("coffer server", Placement::User, "coffer serve")
        .set("curl over TLS on 127.0.0.1, one object; durable before it is acknowledged")
        .set("reading into memory is what curl writes to a pipe");
    contender.available(match coffer_server::availability() {
        Availability::Runs => needs_programs(&["curl"]).unwrap_or(Availability::Runs),
        missing => missing,
    })
}

/// A random passphrase in a file.
fn passphrase(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("passphrase");
    let text = hex::encode(random_bytes::<32>()) + "\n";
    fs::write(&path, text).doing(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The folders that lie below and above a FUSE file system.
fn fuse_folders(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (below, mount_point) = (folder.join("below"), folder.join("mount"));
    for made in [&below, &mount_point] {
        fs::create_dir(made).doing(|| format!("making {}", made.display()))?;
    }
    Ok((below, mount_point))
}

fn gocryptfs(folder: &Path) -> Result<Box<dyn Store>> {
    let (below, mount_point) = fuse_folders(folder)?;
    let passphrase = passphrase(folder)?;
    // The passphrase is random: a slow derivation would only delay the start.
    let init = ["-q", "-init", "-scryptn", "10", "-passfile"];
    run(command("gocryptfs").args(init).arg(&passphrase).arg(&below))?;
    let mut mounting = command("gocryptfs");
    mounting
        .args(["-q", "-nosyslog", "-passfile"])
        .arg(&passphrase);
    run_to_background(mounting.args([&below, &mount_point]))?;
    let mounts = vec![unmount(&mount_point)];
    Ok(Box::new(FolderStore::new(&mount_point, &below, mounts)))
}

fn encfs(folder: &Path) -> Result<Box<dyn Store>> {
    let (below, mount_point) = fuse_folders(folder)?;
    let passphrase = passphrase(folder)?;
    let mut mounting = command("encfs");
    mounting
        .arg("--standard")
        .arg(format!("--extpass=cat {}", passphrase.display()));
    run_to_background(mounting.args([&below, &mount_point]))?;
    let mounts = vec![unmount(&mount_point)];
    Ok(Box::new(FolderStore::new(&mount_point, &below, mounts)))
}

fn openssl_enc(folder: &Path) -> Result<Box<dyn Store>> {
    let source = format!("file:{}", passphrase(folder)?.display());
    let openssl = move |direction: &str, path_option: &str, path: &Path| {
        let mut openssl = command("openssl");
        openssl.args([
            "enc",
            "-aes-256-ctr",
            "-pbkdf2",
            direction,
            "-pass",
            &source,
        ]);
        openssl.args(["-bufsize", "1000000", path_option]).arg(path);
        openssl
    };
    let other = openssl.clone();
    Ok(Box::new(Piped::new(
        folder,
        Box::new(move |path| openssl("-e", "-out", path)),
        Box::new(move |path| other("-d", "-in", path)),
    )))
}

fn age(folder: &Path) -> Result<Box<dyn Store>> {
    let identity = folder.join("identity");
    // It prints only the public key, and that to standard error.
    run(command("age-keygen").arg("-o").arg(&identity))?;
    let recipient = run(command("age-keygen").arg("-y").arg(&identity))?
        .trim()
        .to_owned();
    Ok(Box::new(Piped::new(
        folder,
        Box::new(move |path| {
            let mut age = command("age");
            age.args(["--encrypt", "--recipient", &recipient, "--output"])
                .arg(path);
            age
        }),
        Box::new(move |path| {
            let mut age = command("age");
            age.args(["--decrypt", "--identity"])
                .arg(&identity)
                .arg(path);
            age
        }),
    )))
}
