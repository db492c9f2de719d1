//! AES in plain C inside the kernel: the lab's own module, `/proc/aestest` (lab/kmod/README.md).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use crate::cipher::algorithm::{Algorithm, BLOCK_BYTES};
use crate::cipher::{Cipher, CipherContender, Tag};
use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};

const PATH: &str = "/proc/aestest";

const KEY_BYTES: usize = 32;

/// What the module is asked for, by number.
#[derive(Clone, Copy)]
enum Operation {
    Encrypt = 0,
    Decrypt = 1,
    Loop = 2,
}

/// The module, to be held against the others.
pub fn contender() -> CipherContender {
    let availability = if Path::new(PATH).exists() {
        Availability::Runs
    } else {
        Availability::cannot(
            "the lab's kernel module is not loaded",
            "coffer-lab kernel, which builds and loads it in a virtual machine",
        )
    };
    CipherContender {
        contender: Contender::new(
            "AES in plain C, kernel module",
            Placement::Kernel,
            "lab/kmod",
        )
        .set("the same files as the user program's, with the kernel's own options")
        .available(availability),
        expand: Box::new(|key| Ok(Box::new(KernelModule::open(key)?))),
        own_format: false,
    }
}

/// One open file of the module, with a key.
pub struct KernelModule {
    file: File,
    key: [u8; KEY_BYTES],
}

impl KernelModule {
    /// Opens it, for AES-256-CBC.
    pub fn open(key: &[u8]) -> Result<Self> {
        let key = key.try_into().map_err(|_| LabError::Cipher {
            contender: "AES in plain C, kernel module".into(),
            what: "a key of another length".into(),
        })?;
        let file = OpenOptions::new().read(true).write(true).open(PATH);
        Ok(Self {
            file: file.doing(|| format!("opening {PATH}"))?,
            key,
        })
    }

    /// Runs the loop of table A on `data`; gives the seconds that it took, by the kernel's clock.
    pub fn run_loop(
        &mut self,
        iv: &[u8],
        data: &mut [u8],
        call_bytes: u32,
        turns: u64,
    ) -> Result<f64> {
        self.ask(Operation::Loop, call_bytes, turns, iv, data)
    }

    fn ask(
        &mut self,
        operation: Operation,
        call_bytes: u32,
        turns: u64,
        iv: &[u8],
        data: &mut [u8],
    ) -> Result<f64> {
        let length = data.len();
        let doing = || format!("{PATH}, {length} B");
        let mut request = Vec::with_capacity(64 + data.len());
        request.extend_from_slice(&(operation as u32).to_ne_bytes());
        request.extend_from_slice(&call_bytes.to_ne_bytes());
        request.extend_from_slice(&turns.to_ne_bytes());
        request.extend_from_slice(&self.key);
        request.extend_from_slice(&iv[..BLOCK_BYTES]);
        request.extend_from_slice(data);
        if self.file.write(&request).doing(doing)? != request.len() {
            return Err(short()).doing(doing);
        }
        let mut answer = vec![0; size_of::<u64>() + data.len()];
        let count = self.file.read(&mut answer).doing(doing)?;
        let Some((nanoseconds, found)) = answer[..count].split_first_chunk() else {
            return Err(short()).doing(doing);
        };
        if found.len() != data.len() {
            return Err(short()).doing(doing);
        }
        data.copy_from_slice(found);
        Ok(u64::from_ne_bytes(*nanoseconds) as f64 / 1e9)
    }
}

fn short() -> std::io::Error {
    std::io::Error::other("the kernel module took or gave only a part")
}

impl Cipher for KernelModule {
    fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        self.check(data)?;
        self.ask(Operation::Encrypt, 0, 0, iv, data).map(drop)
    }

    fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        self.check(data)?;
        self.ask(Operation::Decrypt, 0, 0, iv, data).map(drop)
    }
}

impl KernelModule {
    fn check(&self, data: &[u8]) -> Result<()> {
        if Algorithm::Cbc256.takes(data.len()) {
            return Ok(());
        }
        Err(LabError::Cipher {
            contender: "AES in plain C, kernel module".into(),
            what: "data of another length".into(),
        })
    }
}
