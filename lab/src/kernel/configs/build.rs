//! One kernel of the ladder with the lab's module: built once, then kept.

use std::fmt::Write;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aws_lc_rs::digest::{SHA256, digest};

use crate::error::{Doing, LabError, Result};
use crate::host::machine::core_count;
use crate::host::programs::{Running, run};
use crate::kernel::configs::source::Source;
use crate::kernel::configs::steps::refused;
use crate::kernel::own_module;

/// A kernel that can be booted, and the lab's module for it.
#[derive(Debug, Clone)]
pub(super) struct Built {
    pub(super) image: PathBuf,
    pub(super) module: PathBuf,
}

/// Where builds are made and kept.
pub(super) struct Builder<'a> {
    pub(super) source: &'a Source,
    /// `6.1.192`.
    pub(super) version: &'a str,
    /// The compiler's name and version, for builds by another are others.
    pub(super) compiler: &'a str,
    /// What is kept.
    pub(super) kept: PathBuf,
    /// What all builds are made in, one after the other: each compiles only what it changes.
    pub(super) work: PathBuf,
}

impl Builder<'_> {
    /// Builds what is configured, unless it is there.
    pub(super) fn build(&self, configuration: &str) -> Result<Built> {
        let folder = self.kept.join(self.name(configuration));
        let built = Built {
            image: folder.join("bzImage"),
            module: folder.join("aestest.ko"),
        };
        if folder.is_dir() {
            return Ok(built);
        }
        self.configure(configuration)?;
        let jobs = format!("-j{}", core_count());
        self.compile(self.make().args([&jobs, "bzImage", "modules"]))?;
        let module = own_module::build(&self.work, &self.work.join("own-module"))?;
        let partial = self.kept.join("partial");
        let _ = fs::remove_dir_all(&partial);
        let doing = || format!("making {}", folder.display());
        fs::create_dir_all(&partial).doing(doing)?;
        let image = self.work.join("arch/x86/boot/bzImage");
        let configured = self.work.join(".config");
        for (from, to) in [
            (&image, "bzImage"),
            (&module, "aestest.ko"),
            (&configured, "config"),
        ] {
            fs::copy(from, partial.join(to)).doing(|| format!("copying {}", from.display()))?;
        }
        // It gets its name when all is in it.
        fs::rename(&partial, &folder).doing(doing)?;
        Ok(built)
    }

    /// Minutes of work, whose processes are not left behind by a lab that is told to end.
    fn compile(&self, make: &mut Command) -> Result<()> {
        let path = self.work.join("build.log");
        let doing = || format!("writing {}", path.display());
        let log = File::create(&path).doing(doing)?;
        let same = log.try_clone().doing(doing)?;
        make.stdin(Stdio::null()).stdout(log).stderr(same);
        Running::start(make)?.wait().map_err(|error| match error {
            LabError::Program { command, what } => LabError::Program {
                command,
                what: format!("{what} all that it said is in {}", path.display()),
            },
            other => other,
        })
    }

    fn make(&self) -> Command {
        let mut make = self.source.make(&self.work);
        make.arg(format!("CC={}", own_module::compiler()));
        make
    }

    /// Sets all options, over the smallest kernel that Linux knows.
    fn configure(&self, configuration: &str) -> Result<()> {
        let doing = || format!("configuring {}", self.work.display());
        fs::create_dir_all(&self.work).doing(doing)?;
        run(self.make().arg("tinyconfig"))?;
        let file = self.work.join(".config");
        let mut options = OpenOptions::new().append(true).open(&file).doing(doing)?;
        options.write_all(configuration.as_bytes()).doing(doing)?;
        run(self.make().arg("olddefconfig"))?;
        let finished = fs::read_to_string(&file).doing(doing)?;
        let refused = refused(configuration, &finished);
        if refused.is_empty() {
            return Ok(());
        }
        Err(LabError::Data {
            file: format!("the configuration of Linux {}", self.version),
            what: format!("these can't be chosen: {}", refused.join(", ")),
        })
    }

    /// All that makes a build what it is.
    fn name(&self, configuration: &str) -> String {
        let mut all = format!("{}\n{}\n{configuration}", self.version, self.compiler);
        for (name, text) in own_module::SOURCES {
            let _ = write!(all, "{name}\n{text}");
        }
        let digest = digest(&SHA256, all.as_bytes());
        format!("{}-{}", self.version, hex::encode(&digest.as_ref()[..8]))
    }
}

/// Where what is built lies below the cache.
pub(super) fn kept_below(cache: &Path) -> PathBuf {
    cache.join("configs")
}
