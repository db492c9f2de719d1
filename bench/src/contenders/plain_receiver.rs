//! What storing a plain stream costs at least: TCP into a file, with `fdatasync`. No TLS, no HTTP,
//! a thread a connection.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, io};

use crate::contenders::receiver::OPTION;
use crate::error::{Doing, Result};
use crate::machine::server_process::{Ready, ServerProcess, free_address};

/// What is read and written at once. From 64 KiB on, the size makes little difference.
const PIECE_BYTES: usize = 256 * 1024;

/// A running plain receiver.
pub struct PlainReceiver {
    /// Its process.
    pub process: ServerProcess,
    /// Where it receives.
    pub address: SocketAddr,
    folder: PathBuf,
}

impl PlainReceiver {
    /// Starts it with a folder of its own.
    pub fn start(folder: &Path, pinned: bool) -> Result<Self> {
        let address = free_address()?;
        let program = std::env::current_exe().doing(|| "looking for this program".into())?;
        let mut command = Command::new(program);
        command.arg(OPTION).arg(folder).arg("--plain");
        command.arg("--listen").arg(address.to_string());
        let ready = Ready::Says("ready");
        let process = ServerProcess::start("plain receiver", command, pinned, ready, folder)?;
        Ok(Self {
            process,
            address,
            folder: folder.into(),
        })
    }

    /// Where it stored what was sent by a name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes what was stored.
    pub fn discard(&self, name: &str) -> Result<()> {
        let path = self.file(name);
        fs::remove_file(&path).doing(|| format!("removing {}", path.display()))
    }
}

/// The server itself: runs until it is killed.
pub fn serve(folder: &Path, address: SocketAddr) -> Result<()> {
    let folder: Arc<Path> = folder.into();
    let listener = TcpListener::bind(address).doing(|| format!("binding {address}"))?;
    println!("ready");
    loop {
        let (stream, _) = listener.accept().doing(|| "accepting".into())?;
        let folder = Arc::clone(&folder);
        std::thread::spawn(move || {
            if let Err(error) = connection(stream, &folder) {
                eprintln!("plain receiver: {error}");
            }
        });
    }
}

fn connection(mut stream: TcpStream, folder: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(PIECE_BYTES, stream.try_clone()?);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let bad = || io::Error::other("no name and length");
        let (name, length) = line.trim_end().split_once(' ').ok_or_else(bad)?;
        let mut left: usize = length.parse().map_err(|_| bad())?;
        let mut file = File::create_new(folder.join(name))?;
        while left > 0 {
            let read = reader.read(&mut piece[..PIECE_BYTES.min(left)])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.write_all(&piece[..read])?;
            left -= read;
        }
        file.sync_data()?;
        stream.write_all(b"k")?;
    }
}
