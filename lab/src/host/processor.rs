//! What depends on the processor that the lab was built for, all in one place.

/// Folders of libraries inside of unpacked packages.
#[cfg(not(target_arch = "aarch64"))]
pub const LIBRARY_FOLDERS: [&str; 3] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/encfs",
];

/// Folders of libraries inside of unpacked packages.
#[cfg(target_arch = "aarch64")]
pub const LIBRARY_FOLDERS: [&str; 3] = [
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/encfs",
];

/// Whether the virtual machine of `coffer-lab kernel` can run this very program: its processor, its
/// kernels and the layout of their images are those of x86-64.
pub const RUNS_IN_ITS_MACHINE: bool = cfg!(target_arch = "x86_64");

/// The program that simulates that processor.
pub const QEMU: &str = "qemu-system-x86_64";

/// Debian's name of it.
pub const DEBIAN_ARCHITECTURE: &str = "amd64";

/// Where Debian's programs of that processor have their libraries.
pub const BUILD_LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Instructions of processors that matter to encryption, as `/proc/cpuinfo` calls them.
pub const INSTRUCTIONS: &[&str] = &[
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "avx",
    "avx2",
    "avx512f",
    "avx512vl",
    "gfni",
    "sha_ni",
    "asimd",
    "pmull",
];
