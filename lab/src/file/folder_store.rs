//! A file in a folder, which may be the mount point of something that encrypts.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::file::store::{READ_BYTES, Store, evict, files_below};
use crate::host::kernel_crypto::{Driver, drivers, first_choice};
use crate::host::undo::Foundation;
use crate::measuring::content::{Content, Sink};

/// A file in a folder.
pub(super) struct FolderStore {
    file: PathBuf,
    /// Where the bytes lie below the mount point: a file or a folder.
    below: PathBuf,
    settings: Vec<String>,
    /// The algorithm by which the kernel encrypts it, as `/proc/crypto` calls it.
    algorithm: Option<&'static str>,
    _foundation: Foundation,
}

impl FolderStore {
    /// A file in `folder` whose bytes lie in `below`; `foundation` goes with it.
    pub(super) fn new(folder: &Path, below: &Path, foundation: Foundation) -> Self {
        Self {
            file: folder.join("file"),
            below: below.to_owned(),
            settings: Vec::new(),
            algorithm: None,
            _foundation: foundation,
        }
    }

    /// Tells a setting that was found out when it was made.
    pub(super) fn with_setting(mut self, setting: String) -> Self {
        self.settings.push(setting);
        self
    }

    /// Tells by which driver the kernel encrypts; it is listed when something was stored.
    pub(super) fn encrypted_by(mut self, algorithm: Option<&'static str>) -> Self {
        self.algorithm = algorithm;
        self
    }
}

/// Makes a file's bytes and its name durable.
pub(super) fn sync(file: &File, path: &Path) -> Result<()> {
    file.sync_all()
        .doing(|| format!("syncing {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.doing(|| format!("syncing {}", folder.display()))
}

impl Store for FolderStore {
    fn write(&mut self, content: &mut Content) -> Result<()> {
        let doing = || format!("writing {}", self.file.display());
        if self.file.exists() {
            fs::remove_file(&self.file).doing(doing)?;
        }
        let mut file = File::create(&self.file).doing(doing)?;
        while let Some(block) = content.next() {
            file.write_all(block).doing(doing)?;
        }
        sync(&file, &self.file)
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        let doing = || format!("reading {}", self.file.display());
        let mut file = File::open(&self.file).doing(doing)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.read(&mut buffer).doing(doing)? {
                0 => return Ok(()),
                count => sink.take(&buffer[..count]),
            }
        }
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.file)?;
        evict(&self.below)
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = self.settings.clone();
        let drivers = drivers();
        let driver = self.algorithm.map(|name| first_choice(&drivers, name));
        if let Some(driver) = driver.flatten() {
            let Driver {
                algorithm, driver, ..
            } = driver;
            settings.push(format!(
                "the kernel's first choice for {algorithm}: {driver}"
            ));
        }
        settings
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        files_below(&self.below).unwrap_or_default()
    }
}
