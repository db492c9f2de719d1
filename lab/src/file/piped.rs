//! A program that takes a file on one side and gives it encrypted on the other.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Doing, Result};
use crate::file::folder_store::sync;
use crate::file::store::{READ_BYTES, Store, evict};
use crate::host::programs::Running;
use crate::measuring::content::{Content, Sink};

/// Makes a command that reads or writes the encrypted file, and its standard input or output.
type Make = Box<dyn Fn(&Path) -> Command>;

/// A file behind a program.
pub(super) struct Piped {
    path: PathBuf,
    encrypting: Make,
    decrypting: Make,
}

impl Piped {
    /// `encrypting` writes the path it is given, `decrypting` reads it.
    pub(super) fn new(folder: &Path, encrypting: Make, decrypting: Make) -> Self {
        Self {
            path: folder.join("encrypted"),
            encrypting,
            decrypting,
        }
    }
}

/// Takes what a command prints.
pub(super) fn receive(command: &mut Command, sink: &mut Sink) -> Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(command)?;
    if let Some(mut output) = running.child.stdout.take() {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match output
                .read(&mut buffer)
                .doing(|| "reading from a program".into())?
            {
                0 => break,
                count => sink.take(&buffer[..count]),
            }
        }
    }
    running.wait()
}

impl Store for Piped {
    fn write(&mut self, content: &mut Content) -> Result<()> {
        let doing = || format!("writing {}", self.path.display());
        let mut command = (self.encrypting)(&self.path);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        if let Some(mut input) = running.child.stdin.take() {
            while let Some(block) = content.next() {
                match input.write_all(block) {
                    // It ended early: its status says why, better than a broken pipe does.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                    other => other.doing(doing)?,
                }
            }
        }
        running.wait()?;
        sync(&File::open(&self.path).doing(doing)?, &self.path)
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        receive(&mut (self.decrypting)(&self.path), sink)
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.path)
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }
}
