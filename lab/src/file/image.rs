//! A file system in an image file, mounted over a loop device: plain, with fscrypt, over dm-crypt.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use coffer_seal::random_bytes;
use nix::errno::Errno;

use crate::error::{Doing, Result};
use crate::file::folder_store::FolderStore;
use crate::file::store::Store;
use crate::programs::{Running, command, run};
use crate::undo::Undo;

/// Room of an image beyond what is stored: the journal and the tables of ext4.
const IMAGE_EXTRA_BYTES: u64 = 128 << 20;

/// `FS_IOC_ADD_ENCRYPTION_KEY` and `FS_IOC_SET_ENCRYPTION_POLICY` of linux/fscrypt.h.
const ADD_ENCRYPTION_KEY: u64 = 0xc050_6617;
const SET_ENCRYPTION_POLICY: u64 = 0x800c_6613;

/// How the image is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Fscrypt,
    DmCrypt,
}

/// Makes, formats and mounts an image below `folder`.
pub(super) fn open(kind: Kind, folder: &Path, bytes: u64) -> Result<Box<dyn Store>> {
    let image = folder.join("image");
    let doing = || format!("making {}", image.display());
    let file = File::create(&image).doing(doing)?;
    let room = bytes + bytes / 8 + IMAGE_EXTRA_BYTES;
    // Allocated beforehand, so that growing the file is not what is measured.
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, room).doing(doing)?;
    drop(file);
    let mount_point = folder.join("mount");
    fs::create_dir(&mount_point).doing(|| format!("making {}", mount_point.display()))?;
    match kind {
        Kind::Plain | Kind::Fscrypt => {
            let features = if kind == Kind::Fscrypt {
                "encrypt"
            } else {
                "^encrypt"
            };
            run(command("mkfs.ext4")
                .args(["-q", "-F", "-O", features])
                .arg(&image))?;
            run(command("mount")
                .args(["-o", "loop"])
                .args([&image, &mount_point]))?;
            let mounts = vec![unmount(&mount_point)];
            let inside = mount_point.join("inside");
            fs::create_dir(&inside).doing(|| format!("making {}", inside.display()))?;
            if kind == Kind::Fscrypt {
                encrypt_folder(&mount_point, &inside)?;
            }
            Ok(Box::new(FolderStore::new(&inside, &image, mounts)))
        }
        Kind::DmCrypt => dm_crypt(&image, &mount_point),
    }
}

/// Unmounts when it is dropped.
pub(super) fn unmount(mount_point: &Path) -> Undo {
    let mount_point = mount_point.to_owned();
    Undo::by(move || {
        let unmounted = run(command("umount").arg(&mount_point));
        if unmounted.is_err() {
            // Somebody looks into it: it goes when they leave.
            let _ = run(command("umount").arg("-l").arg(&mount_point));
        }
    })
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

fn dm_crypt(image: &Path, mount_point: &Path) -> Result<Box<dyn Store>> {
    let device = run(command("losetup").args(["--find", "--show"]).arg(image))?;
    let device = PathBuf::from(device.trim());
    let loop_device = device.clone();
    let detach = Undo::by(move || drop(run(command("losetup").arg("-d").arg(loop_device))));
    let name = format!("coffer-lab-{}", std::process::id());
    let mut opening = command("cryptsetup");
    opening.args([
        "open",
        "--type",
        "plain",
        "--cipher",
        "aes-xts-plain64",
        "--key-size",
        "512",
    ]);
    opening
        .args(["--key-file", "-"])
        .arg(&device)
        .arg(&name)
        .stdin(Stdio::piped());
    let mut running = Running::start(opening.stderr(Stdio::piped()))?;
    if let Some(mut input) = running.child.stdin.take() {
        input
            .write_all(&random_bytes::<64>())
            .doing(|| "giving cryptsetup a key".into())?;
    }
    running.wait()?;
    let mapped = Path::new("/dev/mapper").join(&name);
    let close = Undo::by(move || drop(run(command("cryptsetup").arg("close").arg(name))));
    run(command("mkfs.ext4").args(["-q", "-F"]).arg(&mapped))?;
    run(command("mount").args([mapped.as_path(), mount_point]))?;
    let mounts = vec![unmount(mount_point), close, detach];
    Ok(Box::new(FolderStore::new(mount_point, image, mounts)))
}
