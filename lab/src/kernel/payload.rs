//! What a kernel's image carries: the kernel itself, compressed.
//!
//! A processor that counts instructions takes longest to unpack it, so that is done outside. QEMU
//! starts what was unpacked where the kernel has an entry for that (`CONFIG_PVH`, as Debian's).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::host::programs::{command, find, run};

/// Offsets in the image's header (Linux, Documentation/arch/x86/boot.rst).
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

const SECTOR_BYTES: usize = 512;

/// The version of the header that first tells of the payload: 2.08.
const VERSION_MIN: u16 = 0x0208;

/// Behind the compressed kernel, Linux notes how long it is unpacked.
const NOTED_BYTES: usize = 4;

/// A program that unpacks, how its files are called, and how they begin.
struct Packing {
    program: &'static str,
    arguments: &'static [&'static str],
    suffix: &'static str,
    magic: &'static [u8],
}

const PACKINGS: [Packing; 2] = [
    Packing {
        program: "xz",
        arguments: &["--decompress", "--force"],
        suffix: "xz",
        magic: b"\xfd7zXZ\0",
    },
    Packing {
        program: "zstd",
        arguments: &["--decompress", "--force", "--quiet", "--rm"],
        suffix: "zst",
        magic: b"\x28\xb5\x2f\xfd",
    },
];

/// Unpacks the kernel of `image` into the file `to`. False, where that can't be done here: the
/// image unpacks itself then.
pub(super) fn unpack(image: &Path, to: &Path) -> Result<bool> {
    let bytes = fs::read(image).doing(|| format!("reading {}", image.display()))?;
    let Some(payload) = payload(&bytes) else {
        return Ok(false);
    };
    let packing = PACKINGS.iter().find(|one| payload.starts_with(one.magic));
    let Some(packing) = packing.filter(|one| find(one.program).is_some()) else {
        return Ok(false);
    };
    // Under another name until it is whole.
    let partial = to.with_extension("partial");
    let packed = PathBuf::from(format!("{}.{}", partial.display(), packing.suffix));
    fs::write(&packed, payload).doing(|| format!("writing {}", packed.display()))?;
    run(command(packing.program)
        .args(packing.arguments)
        .arg(&packed))?;
    fs::rename(&partial, to).doing(|| format!("writing {}", to.display()))?;
    Ok(true)
}

/// The compressed kernel in an image.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let long = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let version = image.get(VERSION..VERSION + 2)?.try_into().ok()?;
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" || u16::from_le_bytes(version) < VERSION_MIN {
        return None;
    }
    let code = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * SECTOR_BYTES;
    let start = code.checked_add(long(PAYLOAD_OFFSET)?)?;
    let end = start
        .checked_add(long(PAYLOAD_LENGTH)?)?
        .checked_sub(NOTED_BYTES)?;
    image.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR_BYTES + 16];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16_u32.to_le_bytes());
        let length = u32::try_from(payload.len() + NOTED_BYTES).unwrap();
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        image.extend(payload);
        image.extend([1, 2, 3, 4]);
        image
    }

    #[test]
    fn the_kernel_is_found_in_its_image() {
        let whole = image(b"kernel");
        assert_eq!(payload(&whole), Some(&b"kernel"[..]));
        assert_eq!(payload(&whole[..whole.len() - 8]), None);
        assert_eq!(payload(&whole[..SECTOR_BYTES]), None);
        let mut old = whole.clone();
        old[VERSION] = 0x07;
        assert_eq!(payload(&old), None);
        assert_eq!(payload(b"\x7fELF"), None);
    }

    #[test]
    fn it_is_unpacked_and_what_is_packed_otherwise_is_left() {
        let folder =
            std::env::temp_dir().join(format!("coffer-lab-payload-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = folder.join("kernel");
        fs::write(&text, b"an unpacked kernel").unwrap();
        run(command("xz").arg(&text)).unwrap();
        let packed = fs::read(folder.join("kernel.xz")).unwrap();
        let (from, to) = (folder.join("image"), folder.join("vmlinux-6.1.0"));
        fs::write(&from, image(&packed)).unwrap();
        assert!(unpack(&from, &to).unwrap());
        assert_eq!(fs::read(&to).unwrap(), b"an unpacked kernel");
        fs::write(&from, image(b"something else")).unwrap();
        assert!(!unpack(&from, &folder.join("other")).unwrap());
        assert!(!folder.join("other").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
