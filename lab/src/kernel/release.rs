//! The kernels that can be booted, and where they lie.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, LabError, Result};
use crate::host::processor::DEBIAN_ARCHITECTURE;
use crate::host::programs::{command, run};
use crate::kernel::accelerator::Accelerator;
use crate::kernel::packages::{Archive, Packages};
use crate::kernel::payload;
use crate::measuring::progress::Progress;

/// Which kernel is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// Debian 12's.
    Stable,
    /// The newer one that is built for Debian 12.
    Backports,
    /// One that the user built.
    Own(PathBuf),
}

impl Choice {
    pub(super) fn parse(text: &str) -> Result<Self> {
        match text {
            "6.1" => Ok(Self::Stable),
            "backports" => Ok(Self::Backports),
            path if Path::new(path).is_file() => Ok(Self::Own(path.into())),
            other => Err(LabError::Data {
                file: other.into(),
                what: "is no kernel: say 6.1, backports, or the path of a bzImage".into(),
            }),
        }
    }
}

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// What a boot loader loads.
    pub(super) image: PathBuf,
    /// The kernel in it, unpacked, where it can be started so.
    pub(super) unpacked: Option<PathBuf>,
    /// Its packages, unpacked; none, where it needs no modules.
    pub(super) packages: Option<Unpacked>,
    /// The lab's module for it, where it was built with the kernel.
    pub(super) module: Option<PathBuf>,
}

impl Kernel {
    /// What is started. A real processor unpacks the image in a moment, a simulated one in seconds.
    pub(super) fn started_by(&self, accelerator: Accelerator) -> &Path {
        match (accelerator, &self.unpacked) {
            (Accelerator::Tcg, Some(unpacked)) => unpacked,
            _ => &self.image,
        }
    }
}

/// Packages of a kernel.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    /// Holds `lib/modules`.
    pub(super) root: PathBuf,
    /// `6.1.0-56-amd64`.
    pub(super) release: String,
    /// Where modules of others are built.
    pub(super) headers: PathBuf,
}

/// Fetches it, unless the cache has it.
pub(super) fn obtain(choice: &Choice, cache: &Path) -> Result<Kernel> {
    let (folder, packages): (&str, fn(&Path) -> Result<Packages>) = match choice {
        Choice::Own(image) => {
            return Ok(Kernel {
                image: image.clone(),
                unpacked: None,
                packages: None,
                module: None,
            });
        }
        Choice::Stable => ("6.1", stable_packages),
        Choice::Backports => ("backports", backports_packages),
    };
    let root = cache.join("kernels").join(folder);
    if !root.is_dir() {
        let _progress = Progress::open("Fetching and unpacking Debian's kernel");
        let packages = packages(cache)?;
        fs::create_dir_all(cache.join("kernels")).doing(|| "making the cache".into())?;
        packages.unpack(&parts(&packages)?, &root)?;
    }
    let mut kernel = look(&root)?;
    if let Some(packages) = &kernel.packages {
        prepare(packages)?;
        let vmlinux = root.join(format!("boot/vmlinux-{}", packages.release));
        if has_entry(&root, packages)?
            && (vmlinux.is_file() || payload::unpack(&kernel.image, &vmlinux)?)
        {
            kernel.unpacked = Some(vmlinux);
        }
    }
    Ok(kernel)
}

/// Debian 12's own packages.
pub(super) fn stable_packages(cache: &Path) -> Result<Packages> {
    packages_of(cache, "6.1", stable)
}

fn backports_packages(cache: &Path) -> Result<Packages> {
    packages_of(cache, "backports", backports)
}

fn packages_of(cache: &Path, folder: &str, suites: fn(&[Archive]) -> String) -> Result<Packages> {
    let system = Packages::of_this_system(&cache.join("apt/system"))?;
    let sources = suites(&system.archives()?);
    Packages::from(&cache.join("apt").join(folder), &sources)
}

fn stable(archives: &[Archive]) -> String {
    let suite = |one: &Archive| match one.label.as_str() {
        "Debian" => Some(one.suite("bookworm")),
        "Debian-Security" => Some(one.suite("bookworm-security")),
        _ => None,
    };
    archives.iter().filter_map(suite).collect()
}

fn backports(archives: &[Archive]) -> String {
    let debian = archives.iter().filter(|one| one.label == "Debian");
    debian.map(|one| one.suite("bookworm-backports")).collect()
}

/// The packages of the kernel that the suite offers: itself, and what modules are built with.
fn parts(packages: &Packages) -> Result<Vec<String>> {
    let mut parts = packages.needs(&format!("linux-image-{DEBIAN_ARCHITECTURE}"))?;
    for headers in packages.needs(&format!("linux-headers-{DEBIAN_ARCHITECTURE}"))? {
        let needs = packages.needs(&headers)?;
        let wanted =
            |name: &String| name.starts_with("linux-headers-") || name.starts_with("linux-kbuild-");
        parts.extend(needs.into_iter().filter(wanted));
        parts.push(headers);
    }
    if parts.is_empty() {
        return Err(LabError::Data {
            file: "apt".into(),
            what: "knows no kernel of Debian: are there Debian's sources?".into(),
        });
    }
    Ok(parts)
}

fn look(root: &Path) -> Result<Kernel> {
    let broken = |what: &str| LabError::Data {
        file: root.display().to_string(),
        what: format!("{what}: remove the folder, and it is made anew"),
    };
    let modules = root.join("lib/modules");
    let release = fs::read_dir(&modules)
        .doing(|| format!("reading {}", modules.display()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| modules.join(name).join("kernel").is_dir())
        .ok_or_else(|| broken("holds no modules"))?;
    let image = root.join(format!("boot/vmlinuz-{release}"));
    if !image.is_file() {
        return Err(broken("holds no kernel"));
    }
    Ok(Kernel {
        image,
        unpacked: None,
        packages: Some(Unpacked {
            root: root.to_owned(),
            headers: root.join(format!("usr/src/linux-headers-{release}")),
            release,
        }),
        module: None,
    })
}

/// Whether QEMU can start the kernel unpacked.
fn has_entry(root: &Path, packages: &Unpacked) -> Result<bool> {
    let config = root.join(format!("boot/config-{}", packages.release));
    let text = fs::read_to_string(&config).doing(|| format!("reading {}", config.display()))?;
    Ok(text.lines().any(|line| line == "CONFIG_PVH=y"))
}

/// Does once what an installation would: lists what modules need each other, and tells the headers
/// where they lie.
fn prepare(unpacked: &Unpacked) -> Result<()> {
    let modules = unpacked.root.join("lib/modules").join(&unpacked.release);
    if modules.join("modules.dep").is_file() {
        return Ok(());
    }
    let makefile = unpacked.headers.join("Makefile");
    let doing = || format!("reading {}", makefile.display());
    let text = fs::read_to_string(&makefile).doing(doing)?;
    let sources = unpacked.root.join("usr/src");
    let text = text.replace(
        "include /usr/src",
        &format!("include {}", sources.display()),
    );
    fs::write(&makefile, text).doing(|| format!("writing {}", makefile.display()))?;
    run(command("depmod")
        .arg("-b")
        .args([unpacked.root.as_os_str(), unpacked.release.as_ref()]))
    .map(drop)
}
