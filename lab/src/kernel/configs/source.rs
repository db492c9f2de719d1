//! Linux as Debian ships its source, and the programs that it is built with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, LabError, Result};
use crate::host::processor::BUILD_LIBRARIES;
use crate::host::programs::{command, look_below, run};
use crate::kernel::packages::Packages;
use crate::kernel::release;

/// Packages of what a build of Linux needs besides a compiler and make.
const TOOLS: [&str; 6] = ["bc", "bison", "flex", "libelf-dev", "libelf1", "m4"];

/// The package that always needs the newest source of the release.
const PACKAGE: &str = "linux-source";

/// An unpacked source, and where its tools are.
pub(super) struct Source {
    /// Holds Linux's own Makefile.
    pub(super) tree: PathBuf,
    tools: PathBuf,
}

impl Source {
    /// Fetches and unpacks it, unless the cache has it.
    pub(super) fn obtain(cache: &Path) -> Result<Self> {
        let tools = cache.join("build-tools");
        if !tools.is_dir() {
            let system = Packages::of_this_system(&cache.join("apt/system"))?;
            system.unpack_with_needs(&TOOLS, &tools)?;
        }
        look_below(&tools);
        let tree = cache.join("source");
        if !tree.is_dir() {
            unpack(cache, &tree)?;
        }
        Ok(Self { tree, tools })
    }

    /// `6.1.192`, from its Makefile.
    pub(super) fn version(&self) -> Result<String> {
        let makefile = self.tree.join("Makefile");
        let text = fs::read_to_string(&makefile);
        let text = text.doing(|| format!("reading {}", makefile.display()))?;
        Ok(parse_version(&text))
    }

    /// Linux's make, in the folder of a build.
    pub(super) fn make(&self, build: &Path) -> Command {
        let mut make = command("make");
        make.arg("-C").arg(&self.tree);
        make.arg(format!("O={}", build.display()));
        // What was unpacked does not lie where it was built for.
        make.env("BISON_PKGDATADIR", self.tools.join("usr/share/bison"));
        make.env("M4", self.tools.join("usr/bin/m4"));
        make.env("C_INCLUDE_PATH", self.tools.join("usr/include"));
        make.env("LIBRARY_PATH", self.tools.join(BUILD_LIBRARIES));
        // Nothing of the person, the machine or the date gets into a kernel.
        make.env("KBUILD_BUILD_TIMESTAMP", "2026-01-01");
        make.env("KBUILD_BUILD_USER", "coffer-lab");
        make.env("KBUILD_BUILD_HOST", "coffer-lab");
        make.env("KBUILD_BUILD_VERSION", "1");
        make
    }
}

fn unpack(cache: &Path, tree: &Path) -> Result<()> {
    let package = cache.join("source-package");
    if !package.is_dir() {
        let packages = release::stable_packages(cache)?;
        packages.unpack(&packages.needs(PACKAGE)?, &package)?;
    }
    let archives = package.join("usr/src");
    let archive = fs::read_dir(&archives)
        .doing(|| format!("reading {}", archives.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".tar.xz"))
        .ok_or_else(|| LabError::Data {
            file: archives.display().to_string(),
            what: "holds no source: remove the folder, and it is made anew".into(),
        })?;
    let partial = tree.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).doing(|| format!("making {}", partial.display()))?;
    let mut tar = command("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(&partial);
    run(tar.arg("--strip-components=1"))?;
    fs::rename(&partial, tree).doing(|| format!("making {}", tree.display()))?;
    fs::remove_dir_all(&package).doing(|| format!("removing {}", package.display()))
}

fn parse_version(makefile: &str) -> String {
    let field = |name: &str| {
        let mut lines = makefile.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='))
    };
    let parts =
        ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(|name| field(name).map_or("?", str::trim));
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        let text = "# x\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n";
        assert_eq!(parse_version(text), "6.1.192");
    }
}
