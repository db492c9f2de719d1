//! Debian's packages: fetched by apt and unpacked into a folder. Nothing is installed, and apt's
//! own state is not touched.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::{Doing, LabError, Result};
use crate::host::programs::{command, run};

/// By what Debian signs its archives, where its own package has put it.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What apt can fetch from some sources, with a state of its own below a folder.
pub(super) struct Packages {
    config: PathBuf,
    archives: PathBuf,
}

/// An archive that this system's sources name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archive {
    /// `Debian`, `Debian-Security`, …
    pub(super) label: String,
    uri: String,
}

impl Archive {
    /// A line of sources.
    pub(super) fn suite(&self, suite: &str) -> String {
        let signed = if Path::new(KEYRING).exists() {
            format!("[signed-by={KEYRING}] ")
        } else {
            String::new()
        };
        format!("deb {signed}{} {suite} main\n", self.uri)
    }
}

impl Packages {
    /// From the system's own sources.
    pub(super) fn of_this_system(folder: &Path) -> Result<Self> {
        Self::new(folder, None)
    }

    /// From other sources, given as lines.
    pub(super) fn from(folder: &Path, sources: &str) -> Result<Self> {
        Self::new(folder, Some(sources))
    }

    fn new(folder: &Path, sources: Option<&str>) -> Result<Self> {
        if crate::host::programs::find("apt-get").is_none() {
            return Err(LabError::Data {
                file: "apt-get".into(),
                what: "is missing: kernels and QEMU come as Debian's packages. Run this on Debian \
                       or one of its relatives"
                    .into(),
            });
        }
        let archives = folder.join("archives");
        for made in [folder.join("lists/partial"), archives.join("partial")] {
            fs::create_dir_all(&made).doing(|| format!("making {}", made.display()))?;
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let mut text = format!(
            "Dir::State \"{}\";\nDir::State::status \"/var/lib/dpkg/status\";\n\
             Dir::State::lists \"{}\";\nDir::Cache \"{}\";\nDir::Cache::archives \"{}\";\n\
             Debug::NoLocking \"1\";\nAPT::Sandbox::User \"root\";\n\
             APT::Install-Recommends \"0\";\nAcquire::Languages \"none\";\n",
            path(""),
            path("lists"),
            path(""),
            archives.display()
        );
        if let Some(sources) = sources {
            fs::write(path("sources.list"), sources).doing(|| "writing sources".into())?;
            text += &format!("Dir::Etc::sourcelist \"{}\";\n", path("sources.list"));
            text += "Dir::Etc::sourceparts \"/dev/null\";\nDir::Etc::preferencesparts \
                     \"/dev/null\";\n";
        }
        let config = folder.join("apt.conf");
        fs::write(&config, text).doing(|| format!("writing {}", config.display()))?;
        let packages = Self { config, archives };
        packages.apt("apt-get", &["update", "-q"])?;
        Ok(packages)
    }

    fn apt(&self, program: &str, arguments: &[&str]) -> Result<String> {
        run(command(program)
            .env("APT_CONFIG", &self.config)
            .env("LC_ALL", "C")
            .current_dir(&self.archives)
            .args(arguments))
    }

    /// The archives behind the sources.
    pub(super) fn archives(&self) -> Result<Vec<Archive>> {
        let format = ["indextargets", "--format", "$(LABEL)|$(REPO_URI)"];
        Ok(parse_archives(&self.apt("apt-get", &format)?))
    }

    /// The packages that a package needs, by name.
    pub(super) fn needs(&self, package: &str) -> Result<Vec<String>> {
        let text = self.apt("apt-cache", &["depends", "--important", package])?;
        Ok(parse_needs(&text))
    }

    /// Fetches packages, each alone, and unpacks them into `into`, which is then complete.
    pub(super) fn unpack(&self, names: &[String], into: &Path) -> Result<()> {
        self.forget()?;
        let mut arguments = vec!["download", "-q"];
        arguments.extend(names.iter().map(String::as_str));
        self.apt("apt-get", &arguments)?;
        self.unpack_all(into)
    }

    /// The same of packages together with what they need and this system lacks.
    pub(super) fn unpack_with_needs(&self, names: &[&str], into: &Path) -> Result<()> {
        self.forget()?;
        let mut arguments = vec!["install", "-q", "-y", "--download-only", "--reinstall"];
        arguments.extend(names);
        self.apt("apt-get", &arguments)?;
        self.unpack_all(into)
    }

    fn forget(&self) -> Result<()> {
        for package in self.fetched()? {
            fs::remove_file(&package).doing(|| format!("removing {}", package.display()))?;
        }
        Ok(())
    }

    fn fetched(&self) -> Result<Vec<PathBuf>> {
        let doing = || format!("reading {}", self.archives.display());
        let entries = fs::read_dir(&self.archives).doing(doing)?;
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths
            .filter(|path| path.extension().is_some_and(|kind| kind == "deb"))
            .collect())
    }

    /// The folder gets its name when all is in it, so that one that is there is whole.
    fn unpack_all(&self, into: &Path) -> Result<()> {
        let partial = into.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        for package in self.fetched()? {
            run(command("dpkg-deb").arg("-x").args([&package, &partial]))?;
        }
        self.forget()?;
        keep_links_inside(&partial, &partial).doing(|| format!("making {}", into.display()))?;
        fs::rename(&partial, into).doing(|| format!("making {}", into.display()))
    }
}

/// Links that begin at the root of the system (`/bin/kmod`) are made to lead to what was unpacked.
fn keep_links_inside(root: &Path, folder: &Path) -> io::Result<()> {
    let depth = folder
        .strip_prefix(root)
        .map_or(0, |below| below.components().count());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() {
            keep_links_inside(root, &path)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&path)?;
            if let Ok(below) = target.strip_prefix("/")
                && fs::symlink_metadata(root.join(below)).is_ok()
            {
                fs::remove_file(&path)?;
                symlink(Path::new(&"../".repeat(depth)).join(below), &path)?;
            }
        }
    }
    Ok(())
}

fn parse_archives(text: &str) -> Vec<Archive> {
    let mut archives: Vec<Archive> = Vec::new();
    for (label, uri) in text.lines().filter_map(|line| line.split_once('|')) {
        let archive = Archive {
            label: label.to_owned(),
            uri: uri.to_owned(),
        };
        if !archives.contains(&archive) {
            archives.push(archive);
        }
    }
    archives
}

fn parse_needs(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let needs = lines.filter_map(|line| line.strip_prefix("Depends: "));
    // Virtual packages stand in angle brackets.
    needs
        .filter(|name| !name.starts_with('<'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_what_was_unpacked() {
        let root = std::env::temp_dir().join(format!("coffer-lab-links-{}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("usr/sbin")).unwrap();
        fs::write(root.join("bin/kmod"), "x").unwrap();
        symlink("/bin/kmod", root.join("usr/sbin/depmod")).unwrap();
        symlink("/elsewhere", root.join("usr/other")).unwrap();
        keep_links_inside(&root, &root).unwrap();
        assert_eq!(fs::read(root.join("usr/sbin/depmod")).unwrap(), b"x");
        assert_eq!(
            fs::read_link(root.join("usr/other")).unwrap(),
            Path::new("/elsewhere")
        );
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_apt_says_is_understood() {
        let archives = parse_archives("Debian|http://a/\nDebian|http://a/\nX|http://b/\n");
        assert_eq!(archives.len(), 2);
        assert!(archives[0].suite("s").contains("http://a/ s main"));
        let text = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Depends: <x>\n";
        assert_eq!(parse_needs(text), ["linux-image-6.1.0-56-amd64"]);
    }
}
