//! The ways from a file to the network, and the files that they send.

use std::fs;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use coffer_seal::{Context, SecretKey, random_bytes, seal};

use crate::contender::{Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::kernel_tls;
use crate::tls;

/// Bytes that are read, and encrypted, at a time by those that go through the program.
pub(super) const BUFFER_BYTES: usize = 16_384;

/// A way from a file to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    SendFile,
    ReadWrite,
    Gcm,
    Tls,
    SealedTls,
    KernelTls,
    SealedSendFile,
}

impl Way {
    pub(super) const ALL: [Self; 7] = [
        Self::SendFile,
        Self::ReadWrite,
        Self::Gcm,
        Self::Tls,
        Self::SealedTls,
        Self::KernelTls,
        Self::SealedSendFile,
    ];

    pub(super) fn contender(self) -> Contender {
        let one = Contender::new;
        let rustls = "rustls over aws-lc-rs";
        match self {
            Self::SendFile => one("none, sendfile", Placement::None, "sendfile(2)")
                .set("no copy by the processor into or out of the program"),
            Self::ReadWrite => one("none, read and write", Placement::None, "read(2), write(2)")
                .set("16 KiB at a time: copied into the program and out of it"),
            Self::Gcm => one("AES-256-GCM in the program", Placement::User, "aws-lc-rs").set(
                "read 16 KiB, encrypted in place, written: copied in and out; the way of 2001",
            ),
            Self::Tls => one("TLS in the program", Placement::User, rustls)
                .set(tls::SETTINGS)
                .set("read 16 KiB at a time: copied in, encrypted into a record, copied out"),
            Self::SealedTls => one("sealed file, TLS in the program", Placement::User, rustls)
                .set(tls::SETTINGS)
                .set("as coffer serves: chunks of 16 KiB are opened, then encrypted into records"),
            Self::KernelTls => one(
                "kernel TLS, sendfile",
                Placement::Kernel,
                "the kernel's tls",
            )
            .set("TLS 1.3 records, AES-256-GCM, sendfile(2): nothing enters the program")
            .available(kernel_tls::availability()),
            Self::SealedSendFile => one(
                "sealed file, sendfile, opened by the client",
                Placement::Client,
                "sendfile(2)",
            )
            .set("Cobblestone-256 as it lies on the disk: no cryptography on the server"),
        }
    }
}

fn failed(what: impl ToString) -> LabError {
    LabError::Cipher {
        contender: "sendfile".into(),
        what: what.to_string(),
    }
}

/// What server and client share.
pub(super) struct Keys {
    /// Of sealed files.
    pub(super) seal: SecretKey,
    /// Where they belong.
    pub(super) context: Context,
    /// Of what is encrypted on the way.
    gcm: LessSafeKey,
}

impl Keys {
    pub(super) fn new() -> Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM, &random_bytes::<32>());
        Ok(Self {
            seal: SecretKey::generate(),
            context: Context::raw(*b"coffer-lab sendfile"),
            gcm: LessSafeKey::new(key.map_err(|_| failed("a key"))?),
        })
    }

    /// Encrypts a piece in place; its number is its nonce. The same number comes again with the
    /// next transfer: this key protects nothing.
    pub(super) fn encrypt(&self, number: u64, piece: &mut Vec<u8>) -> Result<()> {
        let sealed = self
            .gcm
            .seal_in_place_append_tag(nonce(number), Aad::empty(), piece);
        sealed.map_err(|_| failed("encrypting"))
    }

    /// Decrypts a piece in place.
    pub(super) fn decrypt<'a>(&self, number: u64, piece: &'a mut [u8]) -> Result<&'a [u8]> {
        let opened = self.gcm.open_in_place(nonce(number), Aad::empty(), piece);
        opened.map(|piece| &*piece).map_err(|_| LabError::Tag)
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// One content, as plaintext and sealed.
pub(super) struct Files {
    pub(super) bytes: u64,
    /// What must arrive.
    pub(super) content: Vec<u8>,
    pub(super) plain: PathBuf,
    pub(super) sealed: PathBuf,
    pub(super) sealed_bytes: u64,
}

impl Files {
    /// Writes both right before they are read, so that they lie in memory in the same way.
    pub(super) fn create(folder: &Path, bytes: u64, keys: &Keys) -> Result<Self> {
        let length = usize::try_from(bytes).map_err(failed)?;
        let mut content = Vec::with_capacity(length);
        while content.len() < length {
            content.extend_from_slice(&random_bytes::<4096>());
        }
        content.truncate(length);
        let sealed_content = seal(&keys.seal, &keys.context, &content);
        let files = Self {
            bytes,
            plain: folder.join(format!("plain-{bytes}")),
            sealed: folder.join(format!("sealed-{bytes}")),
            sealed_bytes: sealed_content.len() as u64,
            content,
        };
        for (path, content) in [
            (&files.plain, &files.content),
            (&files.sealed, &sealed_content),
        ] {
            fs::write(path, content).doing(|| format!("writing {}", path.display()))?;
        }
        Ok(files)
    }
}
