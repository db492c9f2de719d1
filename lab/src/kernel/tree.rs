//! The files of the virtual machine, and the archive of them that its kernel unpacks into memory
//! (initramfs; Linux, Documentation/driver-api/early-userspace).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cpio::newc::{self, ModeFileType};

use crate::error::{Doing, LabError, Result};
use crate::host::processor::BUILD_LIBRARIES;
use crate::host::programs::{command, find, run, show_libraries};

/// Where the loader of programs looks without being told.
const LIBRARIES: &str = "usr/lib";

/// Folders that the machine mounts something on, or that programs expect.
const FOLDERS: [&str; 11] = [
    "bin", "dev", "etc", "lib/own", "mnt", "proc", "run", "sys", "tmp", "usr/lib", "var/tmp",
];

/// A folder that becomes the machine's root.
pub(super) struct Tree(PathBuf);

impl Tree {
    /// Makes it, with busybox and `init`.
    pub(super) fn new(root: &Path, init: &str) -> Result<Self> {
        let tree = Self(root.to_owned());
        for folder in FOLDERS {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
        }
        for (link, target) in [("sbin", "bin"), ("var/run", "/run")] {
            symlink(target, root.join(link)).doing(|| format!("making {link}"))?;
        }
        tree.program("busybox")?;
        tree.write("init", init, 0o755)?;
        Ok(tree)
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, text: &str, mode: u32) -> Result<()> {
        let path = self.0.join(name);
        let doing = || format!("writing {}", path.display());
        fs::write(&path, text).doing(doing)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).doing(doing)
    }

    /// Copies a file to a place below the root.
    pub(super) fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.0.join(to);
        fs::copy(from, &to).doing(|| format!("copying {}", from.display()))?;
        Ok(())
    }

    /// Copies a program of this system, or of unpacked packages, with its libraries.
    pub(super) fn program(&self, name: &str) -> Result<()> {
        let path = find(name).ok_or_else(|| LabError::Data {
            file: name.into(),
            what: "is missing, and no package of it was unpacked".into(),
        })?;
        self.executable(&path, name)
    }

    /// The same of any program.
    pub(super) fn executable(&self, path: &Path, name: &str) -> Result<()> {
        self.copy(path, &format!("bin/{name}"))?;
        self.libraries_of(path)
    }

    /// Copies a library that a program loads by its name, with those that it needs itself.
    pub(super) fn library(&self, path: &Path, name: &str) -> Result<()> {
        let to = Path::new(BUILD_LIBRARIES).join(name);
        let folder = self.0.join(to.parent().unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
        self.copy(path, &to.to_string_lossy())?;
        self.libraries_of(path)
    }

    fn libraries_of(&self, path: &Path) -> Result<()> {
        let mut ldd = command("ldd");
        show_libraries(&mut ldd);
        // A static program has none, and ldd calls that an error.
        let needs = run(ldd.arg(path)).unwrap_or_default();
        for library in libraries(&needs) {
            let from = Path::new(library.path);
            match library.name {
                Some(name) => self.copy(from, &format!("{LIBRARIES}/{name}"))?,
                // The loader itself is asked for by its full path.
                None => {
                    let folder = library
                        .path
                        .rsplit_once('/')
                        .map_or("", |(folder, _)| folder);
                    let folder = self.0.join(folder.trim_start_matches('/'));
                    fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
                    self.copy(from, library.path.trim_start_matches('/'))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the archive. It is not compressed: a simulated processor would take seconds to
    /// unpack it.
    pub(super) fn archive(&self, to: &Path) -> Result<()> {
        let doing = || format!("writing {}", to.display());
        let mut file = io::BufWriter::new(File::create(to).doing(doing)?);
        self.add(Path::new(""), &mut file).doing(doing)?;
        newc::trailer(&mut file).doing(doing)?;
        file.flush().doing(doing)
    }

    fn add(&self, folder: &Path, archive: &mut impl Write) -> io::Result<()> {
        let entries: io::Result<Vec<_>> = fs::read_dir(self.0.join(folder))?.collect();
        let mut names: Vec<_> = entries?
            .into_iter()
            .map(|entry| entry.file_name())
            .collect();
        // In an order of their own: the archive is the same each time.
        names.sort_unstable();
        for name in names {
            let path = folder.join(name);
            let kind = fs::symlink_metadata(self.0.join(&path))?;
            let mode = kind.permissions().mode() & 0o7777;
            let shown = path.to_string_lossy();
            let entry = newc::Builder::new(&shown).mode(mode).nlink(1);
            if kind.is_symlink() {
                let target = fs::read_link(self.0.join(&path))?;
                let target = target.to_string_lossy();
                let entry = entry.set_mode_file_type(ModeFileType::Symlink);
                put(entry, target.as_bytes(), archive)?;
            } else if kind.is_dir() {
                put(
                    entry.set_mode_file_type(ModeFileType::Directory),
                    &[],
                    archive,
                )?;
                self.add(&path, archive)?;
            } else {
                let entry = entry.set_mode_file_type(ModeFileType::Regular);
                put(entry, &fs::read(self.0.join(&path))?, archive)?;
            }
        }
        Ok(())
    }
}

fn put(entry: newc::Builder, content: &[u8], archive: &mut impl Write) -> io::Result<()> {
    let size = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut writer = entry.write(archive, size);
    writer.write_all(content)?;
    writer.finish().map(drop)
}

/// A library that a program needs.
#[derive(Debug, PartialEq, Eq)]
struct Library<'a> {
    /// By which it is asked for; none, when it is asked for by its path.
    name: Option<&'a str>,
    path: &'a str,
}

/// Reads ldd(1): `libc.so.6 => /lib/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn libraries(text: &str) -> Vec<Library<'_>> {
    text.lines().filter_map(parse_library).collect()
}

fn parse_library(line: &str) -> Option<Library<'_>> {
    let line = line.trim().split(" (").next()?;
    match line.split_once(" => ") {
        Some((name, path)) if path.starts_with('/') => Some(Library {
            name: Some(name),
            path,
        }),
        None if line.starts_with('/') => Some(Library {
            name: None,
            path: line,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ldd_says_is_understood() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibm.so.6 => /lib/libm.so.6 (0x2)\n\
                    \t/lib64/ld.so.2 (0x3)\n\tlibgone.so => not found\n";
        let found: Vec<_> = libraries(text)
            .into_iter()
            .map(|one| (one.name, one.path))
            .collect();
        assert_eq!(
            found,
            [
                (Some("libm.so.6"), "/lib/libm.so.6"),
                (None, "/lib64/ld.so.2")
            ]
        );
    }
}
