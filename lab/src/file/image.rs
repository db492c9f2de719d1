//! A file system in an image file, mounted over a loop device: plain, with fscrypt, over dm-crypt.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use coffer_seal::random_bytes;
use nix::errno::Errno;

use crate::error::{Doing, Result};
use crate::file::folder_store::FolderStore;
use crate::file::loop_device::LoopDevice;
use crate::file::store::Store;
use crate::host::programs::{Running, clean_up, command, run};
use crate::host::undo::{Foundation, Undo};

/// Room of an image beyond what is stored: the journal and the tables of ext4.
const IMAGE_EXTRA_BYTES: u64 = 128 << 20;

/// What images are a multiple of: direct I/O and large sectors want whole blocks.
const IMAGE_UNIT_BYTES: u64 = 1 << 20;

/// Nothing is left to be done in the background once it is mounted.
const FORMAT: [&str; 6] = [
    "-q",
    "-F",
    "-b",
    "4096",
    "-E",
    "lazy_itable_init=0,lazy_journal_init=0",
];

/// What stands in the settings of all images.
pub(super) const SETTING: &str =
    "mkfs.ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 in an allocated image file";

/// The cipher of dm-crypt, with sectors as large as ext4's blocks: fewer to begin and to end.
const DM_CRYPT: [&str; 9] = [
    "open",
    "--type",
    "plain",
    "--cipher",
    "aes-xts-plain64",
    "--key-size",
    "512",
    "--sector-size",
    "4096",
];

/// The program that reads or writes encrypts, instead of the kernel's work queues on all cores.
const INLINE: [&str; 2] = ["--perf-no_read_workqueue", "--perf-no_write_workqueue"];

/// `FS_IOC_ADD_ENCRYPTION_KEY` and `FS_IOC_SET_ENCRYPTION_POLICY` of linux/fscrypt.h.
const ADD_ENCRYPTION_KEY: u64 = 0xc050_6617;
const SET_ENCRYPTION_POLICY: u64 = 0x800c_6613;

/// How the image is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Fscrypt,
    DmCrypt,
    DmCryptInline,
}

impl Kind {
    /// What cryptsetup is told, as one line.
    pub(super) fn cryptsetup(self) -> String {
        let options: &[&str] = match self {
            Self::DmCryptInline => &INLINE,
            _ => &[],
        };
        format!("cryptsetup {}", [&DM_CRYPT, options].concat().join(" "))
    }
}

/// How long an image is that has room for so many bytes.
pub(super) fn image_bytes(bytes: u64) -> u64 {
    (bytes + bytes / 8 + IMAGE_EXTRA_BYTES).next_multiple_of(IMAGE_UNIT_BYTES)
}

/// Makes, formats and mounts an image below `folder`.
pub(super) fn open(kind: Kind, folder: &Path, bytes: u64) -> Result<Box<dyn Store>> {
    let image = folder.join("image");
    let doing = || format!("making {}", image.display());
    let file = File::create(&image).doing(doing)?;
    // Allocated beforehand, so that growing the file is not what is measured.
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, flags, 0, image_bytes(bytes)).doing(doing)?;
    drop(file);
    let mount_point = folder.join("mount");
    fs::create_dir(&mount_point).doing(|| format!("making {}", mount_point.display()))?;
    let mut foundation = Foundation::default();
    let attached = LoopDevice::attach(&image)?;
    let (mut device, setting) = (attached.path.clone(), attached.setting());
    foundation.add(attached);
    if matches!(kind, Kind::DmCrypt | Kind::DmCryptInline) {
        device = map(kind, &device, &mut foundation)?;
    }
    let features = match kind {
        Kind::Fscrypt => "encrypt",
        _ => "^encrypt",
    };
    let mut format = command("mkfs.ext4");
    run(format.args(FORMAT).args(["-O", features]).arg(&device))?;
    foundation.add(unmount(&mount_point));
    run(command("mount").args([&device, &mount_point]))?;
    let inside = mount_point.join("inside");
    fs::create_dir(&inside).doing(|| format!("making {}", inside.display()))?;
    if kind == Kind::Fscrypt {
        encrypt_folder(&mount_point, &inside)?;
    }
    let store = FolderStore::new(&inside, &image, foundation);
    let algorithm = (kind != Kind::Plain).then_some("xts(aes)");
    Ok(Box::new(
        store.with_setting(setting).encrypted_by(algorithm),
    ))
}

/// Unmounts when it is dropped, if something is mounted then.
pub(super) fn unmount(mount_point: &Path) -> Undo {
    let mount_point = mount_point.to_owned();
    Undo::by(move || {
        if is_mounted(&mount_point) && !clean_up(command("umount").arg(&mount_point)) {
            // Another program looks into it: it goes when that leaves.
            clean_up(command("umount").arg("-l").arg(&mount_point));
        }
    })
}

/// Whether something is mounted there: then it is another device than what is around it. A file
/// system whose program is gone can't tell.
pub(super) fn is_mounted(mount_point: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    let around = mount_point.parent().map(device);
    match (device(mount_point), around) {
        (Ok(inside), Some(Ok(around))) => inside != around,
        (Err(error), _) => error.kind() != std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Gives ext4 a key and lets `inside` be encrypted under it: version 2, names AES-256-CTS, contents
/// AES-256-XTS.
fn encrypt_folder(mount_point: &Path, inside: &Path) -> Result<()> {
    // struct fscrypt_add_key_arg: the kind of name (2: by identifier), room for the identifier,
    // the length of the key, reserved, the key.
    let mut add = [0_u8; 80 + 64];
    add[0] = 2;
    add[40] = 64;
    add[80..].copy_from_slice(&random_bytes::<64>());
    control(mount_point, ADD_ENCRYPTION_KEY, &mut add)?;
    // struct fscrypt_policy_v2: version, contents, names, flags (names padded to 32 bytes),
    // reserved, identifier.
    let mut policy = [0_u8; 24];
    policy[..4].copy_from_slice(&[2, 1, 4, 3]);
    policy[8..].copy_from_slice(&add[8..24]);
    control(inside, SET_ENCRYPTION_POLICY, &mut policy)
}

fn control(path: &Path, request: u64, argument: &mut [u8]) -> Result<()> {
    let doing = || format!("fscrypt on {}", path.display());
    let file = File::open(path).doing(doing)?;
    // SAFETY: the structures of linux/fscrypt.h, laid out above, with the room that they tell.
    let status = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            request as libc::Ioctl,
            argument.as_mut_ptr(),
        )
    };
    Errno::result(status).map(drop).doing(doing)
}

/// Puts dm-crypt over a device, under a random key.
fn map(kind: Kind, device: &Path, foundation: &mut Foundation) -> Result<PathBuf> {
    let inline = kind == Kind::DmCryptInline;
    let suffix = if inline { "-inline" } else { "" };
    let name = format!("coffer-lab-{}{suffix}", std::process::id());
    let gone = name.clone();
    foundation.add(Undo::by(move || {
        clean_up(command("cryptsetup").arg("close").arg(gone));
    }));
    let mut opening = command("cryptsetup");
    opening.args(DM_CRYPT);
    if inline {
        opening.args(INLINE);
    }
    opening
        .args(["--key-file", "-"])
        .arg(device)
        .arg(&name)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut opening)?;
    if let Some(mut input) = running.child.stdin.take() {
        // When it does not want the key, its status says why.
        let _ = input.write_all(&random_bytes::<64>());
    }
    running.wait()?;
    Ok(Path::new("/dev/mapper").join(name))
}
