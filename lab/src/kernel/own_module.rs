//! The lab's own kernel module (`lab/kmod`), built against a kernel's headers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::host::programs::{command, find, run};

/// The module, and AES in plain C: all that is compiled.
pub(super) const SOURCES: [(&str, &str); 6] = [
    ("Kbuild", include_str!("../../kmod/Kbuild")),
    ("aestest_main.c", include_str!("../../kmod/aestest_main.c")),
    ("aes_loop.c", include_str!("../../c/aes_loop.c")),
    ("aes_plain.c", include_str!("../../c/aes_plain.c")),
    ("aes_plain.h", include_str!("../../c/aes_plain.h")),
    (
        "aes_plain_modes.c",
        include_str!("../../c/aes_plain_modes.c"),
    ),
];

/// The compiler that Debian's kernels are built with.
const COMPILER: &str = "gcc-12";

/// The compiler to build with: that one, or the system's.
pub(super) fn compiler() -> &'static str {
    if find(COMPILER).is_some() {
        COMPILER
    } else {
        "gcc"
    }
}

/// Builds the module in `folder`; gives its file.
pub(super) fn build(headers: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).doing(|| format!("making {}", folder.display()))?;
    for (name, text) in SOURCES {
        let path = folder.join(name);
        fs::write(&path, text).doing(|| format!("writing {}", path.display()))?;
    }
    let mut make = command("make");
    make.arg("-C").arg(headers);
    make.arg(format!("M={}", folder.display()));
    // Types for BPF need a program more, and nothing here reads them.
    make.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    // No path of this run stays in it: the machine's files are the same each time.
    make.arg(format!("KCFLAGS=-ffile-prefix-map={}=.", folder.display()));
    make.arg(format!("CC={}", compiler()));
    run(make.arg("modules"))?;
    let module = folder.join("aestest.ko");
    run(command("strip").arg("-g").arg(&module))?;
    Ok(module)
}
