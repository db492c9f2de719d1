//! Who takes part with files, asked of this machine.

use std::io::ErrorKind;
use std::path::Path;

use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, Result};
use crate::file::folder_store::FolderStore;
use crate::file::fuse::{self, passphrase};
use crate::file::image::{self, Kind};
use crate::file::pieces::{Pieces, Way};
use crate::file::piped::Piped;
use crate::file::sealed::Sealed;
use crate::file::server::Server;
use crate::file::store::Store;
use crate::host::coffer_server;
use crate::host::kernel_crypto::Config;
use crate::host::programs::{command, lacking, run, version};
use crate::host::undo::Foundation;

/// Makes a store in an empty folder, with room for so many bytes.
type Open = Box<dyn Fn(&Path, u64) -> Result<Box<dyn Store>>>;

/// One that takes part.
pub(super) struct Entry {
    pub(super) contender: Contender,
    pub(super) open: Open,
    /// What it takes of its folder, at most, for a file of so many bytes.
    pub(super) needs: fn(u64) -> u64,
}

/// The file, and what comes on top of it: tags, headers, padding.
fn file_and_more(bytes: u64) -> u64 {
    bytes + bytes / 50
}

/// All of them, those that can't run among them.
pub(super) fn entries() -> Vec<Entry> {
    let entry = |contender, open: Open| Entry {
        contender,
        open,
        needs: file_and_more,
    };
    let mut entries = vec![entry(
        Contender::new("none", Placement::None, "a file in a folder"),
        Box::new(|folder: &Path, _| {
            let store = FolderStore::new(folder, folder, Foundation::default());
            Ok(Box::new(store))
        }),
    )];
    entries.extend(Way::ALL.map(|way| {
        entry(
            way.contender(),
            Box::new(move |folder: &Path, _| Ok(Box::new(Pieces::new(way, folder)))),
        )
    }));
    entries.extend(image_entries());
    entries.extend([
        entry(
            ublk_contender(),
            Box::new(|_: &Path, _| Err(std::io::Error::from(ErrorKind::Unsupported)).doing(ublk)),
        ),
        entry(
            fuse::contender("gocryptfs").set("its defaults: AES-256-GCM, over FUSE"),
            Box::new(|folder: &Path, _| fuse::gocryptfs(folder)),
        ),
        entry(
            fuse::contender("encfs").set("--standard: AES-192-CBC in blocks of 1 KiB, over FUSE"),
            Box::new(|folder: &Path, _| fuse::encfs(folder)),
        ),
        entry(
            program_contender("openssl enc", "openssl", "version")
                .set(format!("openssl {}, fed through a pipe", OPENSSL.join(" ")))
                .set("not authenticated; one round of PBKDF2, since the passphrase is random"),
            Box::new(|folder: &Path, _| openssl_enc(folder)),
        ),
        entry(
            program_contender("age", "age", "--version")
                .set("age --encrypt to one X25519 recipient, fed through a pipe"),
            Box::new(|folder: &Path, _| age(folder)),
        ),
        entry(
            Contender::new("coffer blob", Placement::User, "coffer-seal over aws-lc-rs")
                .set("one Cobblestone-256 message, sealed and opened 1 MiB at a time"),
            Box::new(|folder: &Path, _| Ok(Box::new(Sealed::new(folder)))),
        ),
        Entry {
            contender: server_contender(),
            open: Box::new(|folder: &Path, bytes| {
                let program = coffer_server::program().unwrap_or_else(|| "coffer".into());
                Ok(Box::new(Server::new(&program, folder, bytes)?))
            }),
            // What is uploaded, what is stored, and what that will replace.
            needs: |bytes| 3 * file_and_more(bytes),
        },
    ]);
    entries
}

/// Those that store in an image of a file system.
fn image_entries() -> Vec<Entry> {
    let ext4 = "ext4 on a loop device";
    let plain = image_contender("none, ext4 in an image", Placement::None, ext4, &[]);
    let fscrypt = image_contender(
        "fscrypt",
        Placement::Kernel,
        ext4,
        &["CONFIG_FS_ENCRYPTION"],
    )
    .set("policy version 2, AES-256-XTS for contents, AES-256-CTS for names");
    let those = [
        (Kind::Plain, plain),
        (Kind::Fscrypt, fscrypt),
        (Kind::DmCrypt, dm_crypt_contender("dm-crypt", Kind::DmCrypt)),
        (
            Kind::DmCryptInline,
            dm_crypt_contender("dm-crypt, no work queues", Kind::DmCryptInline),
        ),
    ];
    let entry = |(kind, contender)| Entry {
        contender,
        open: Box::new(move |folder: &Path, bytes| image::open(kind, folder, bytes)),
        needs: image::image_bytes,
    };
    those.map(entry).into()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn image_contender(name: &str, placement: Placement, runs_on: &str, options: &[&str]) -> Contender {
    let config = Config::read();
    let off = options
        .iter()
        .find(|option| config.option(option) == Some('n'));
    let contender = Contender::new(name, placement, runs_on).set(image::SETTING);
    let missing = if let Some(option) = off {
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
        lacking(&["mkfs.ext4", "mount", "umount", "losetup"])
    };
    contender.available(missing.unwrap_or(Availability::Runs))
}

fn dm_crypt_contender(name: &str, kind: Kind) -> Contender {
    let runs_on = version("cryptsetup", "--version").unwrap_or_else(|| "cryptsetup".into());
    let options = ["CONFIG_DM_CRYPT"];
    let contender =
        image_contender(name, Placement::Kernel, &runs_on, &options).set(kind.cryptsetup());
    match lacking(&["cryptsetup"]) {
        Some(missing) if contender.availability.runs() => contender.available(missing),
        _ => contender,
    }
}

fn ublk() -> String {
    "ublk".into()
}

/// A block device whose server encrypts in a program.
fn ublk_contender() -> Contender {
    let config = Config::read();
    let why = match config.option("CONFIG_BLK_DEV_UBLK") {
        Some('y' | 'm') => "Debian has no server for ublk that encrypts".to_owned(),
        _ => config.lacks("CONFIG_BLK_DEV_UBLK"),
    };
    let missing = Availability::cannot(
        why,
        "a kernel with CONFIG_BLK_DEV_UBLK, and a server that encrypts, which the lab has none of",
    );
    Contender::new("ublk", Placement::User, "ublk_drv and a program").available(missing)
}

fn program_contender(name: &str, program: &str, argument: &str) -> Contender {
    let runs_on = version(program, argument).unwrap_or_else(|| program.into());
    let availability = lacking(&[program]).unwrap_or(Availability::Runs);
    Contender::new(name, Placement::User, runs_on).available(availability)
}

fn server_contender() -> Contender {
    let contender = Contender::new("coffer server", Placement::User, "coffer serve")
        .set("curl over TLS on 127.0.0.1, one object; durable before it is acknowledged")
        .set("reading into memory is what curl writes to a pipe");
    contender.available(match coffer_server::availability() {
        Availability::Runs => lacking(&["curl"]).unwrap_or(Availability::Runs),
        missing => missing,
    })
}

/// What openssl is told in both directions. Its key can't be given but as an argument, which all
/// can list; but a random passphrase needs no slow derivation.
const OPENSSL: [&str; 7] = [
    "enc",
    "-aes-256-ctr",
    "-pbkdf2",
    "-iter",
    "1",
    "-bufsize",
    "1000000",
];

fn openssl_enc(folder: &Path) -> Result<Box<dyn Store>> {
    let source = format!("file:{}", passphrase(folder)?.display());
    let openssl = move |direction: &str, path_option: &str, path: &Path| {
        let mut openssl = command("openssl");
        openssl
            .args(OPENSSL)
            .args([direction, "-pass", &source, path_option])
            .arg(path);
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
