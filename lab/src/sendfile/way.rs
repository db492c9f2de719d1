//! The ways from a file to the network, and the files that they send.

use std::fs;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use clap::ValueEnum;
use coffer_seal::{Context, SecretKey, random_bytes, seal};
use openssl::symm::{Cipher, encrypt};
use zeroize::Zeroizing;

use crate::cipher::algorithm::Algorithm;
use crate::cipher::roster::kernel_availability;
use crate::contender::TLS_SETTINGS;
use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::host::kernel_tls;

/// Bytes that are encrypted at a time: the most that a record of TLS holds.
pub(super) const RECORD_BYTES: usize = 16_384;

/// Bytes that are read at a time, and written at a time, by all that go through the program.
pub(super) const READ_BYTES: usize = 16 * RECORD_BYTES;

/// The two that B compared, as they stand in tables.
pub const DEVICE: &str = "read, AF_ALG, write";
/// See [`DEVICE`].
pub const SPLICE: &str = "AF_ALG spliced to the connection";

/// A way from a file to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// A plain file, by sendfile.
    SendFile,
    /// A plain file, through the program.
    ReadWrite,
    /// Encrypted in the program.
    Gcm,
    /// TLS in the program.
    Tls,
    /// A sealed file, opened in the program, as TLS.
    SealedTls,
    /// A plain file, by sendfile into kernel TLS.
    KernelTls,
    /// An encrypted file, decrypted by AF_ALG, spliced into kernel TLS.
    AfAlg,
    /// A sealed file, by sendfile.
    SealedSendFile,
    /// A plain file, through the program, with HTTP's heads.
    Http,
    /// The same over TLS.
    Https,
    /// A plain file, encrypted by the kernel for the program, which sends it.
    Device,
    /// A plain file, encrypted by the kernel on its way, which the program does not see.
    EncryptingSplice,
}

impl Way {
    pub(super) const ALL: [Self; 12] = [
        Self::SendFile,
        Self::ReadWrite,
        Self::Gcm,
        Self::Tls,
        Self::SealedTls,
        Self::KernelTls,
        Self::AfAlg,
        Self::SealedSendFile,
        Self::Http,
        Self::Https,
        Self::Device,
        Self::EncryptingSplice,
    ];

    /// As the command line calls it.
    pub(super) fn argument(self) -> String {
        self.to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether the kernel seals what goes over the connection.
    pub(super) fn through_kernel_tls(self) -> bool {
        matches!(self, Self::KernelTls | Self::AfAlg)
    }

    /// Whether questions and answers have heads.
    pub(super) fn speaks_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Whether the kernel's cipher encrypts what goes over the connection, in counter mode.
    pub(super) fn arrives_counter_encrypted(self) -> bool {
        matches!(self, Self::Device | Self::EncryptingSplice)
    }

    pub(super) fn contender(self) -> Contender {
        let one = Contender::new;
        let rustls = "rustls over aws-lc-rs";
        match self {
            Self::SendFile => one("none, sendfile", Placement::None, "sendfile(2)")
                .set("an order to the kernel, no byte for the program"),
            Self::ReadWrite => one("none, read and write", Placement::None, "read(2), write(2)")
                .set("256 KiB at a time"),
            Self::Gcm => one("AES-256-GCM in the program", Placement::User, "aws-lc-rs")
                .set("the way of 2001: read 256 KiB, encrypt in place 16 KiB at a time, write all"),
            Self::Tls => one("TLS in the program", Placement::User, rustls)
                .set(TLS_SETTINGS)
                .set("read 256 KiB, encrypt into records of 16 KiB, write all of them at once"),
            Self::SealedTls => one("sealed file, TLS in the program", Placement::User, rustls)
                .set(TLS_SETTINGS)
                .set("as coffer serves: read 16 chunks of 16 KiB, open them, encrypt into records")
                .set("and write all of them at once"),
            Self::KernelTls => one(
                "kernel TLS, sendfile",
                Placement::Kernel,
                "the kernel's tls",
            )
            .set(kernel_tls::SETTINGS)
            .set("sendfile(2): nothing enters the program")
            .available(kernel_tls::availability()),
            Self::AfAlg => one(
                "AF_ALG spliced into kernel TLS",
                Placement::Kernel,
                "the kernel's crypto API and tls",
            )
            .set("AES-256-CTR at rest")
            .set("file, pipe, AF_ALG, pipe, socket: splice(2), 64 KiB at a time")
            .set(kernel_tls::SETTINGS)
            .available(spliced_availability()),
            Self::SealedSendFile => one(
                "sealed file, sendfile, opened by the client",
                Placement::Client,
                "sendfile(2)",
            )
            .set("Cobblestone-256 as it lies on the disk: no cryptography on the server"),
            Self::Http => one("HTTP", Placement::None, "read(2), write(2)")
                .set("as read and write, with the heads of HTTP/1.1"),
            Self::Https => one("HTTPS", Placement::User, rustls)
                .set(TLS_SETTINGS)
                .set("as TLS in the program, with the heads of HTTP/1.1"),
            Self::Device => one(DEVICE, Placement::Kernel, "the kernel's crypto API")
                .set("what B measured against: AES-256-CTR by AF_ALG, as a crypto device")
                .set("read 256 KiB, encrypt 64 KiB at a time in place, write all")
                .available(kernel_availability(Algorithm::Ctr256)),
            Self::EncryptingSplice => one(SPLICE, Placement::Kernel, "the kernel's crypto API")
                .set("what B proposed: AES-256-CTR on the way, the program gives orders only")
                .set("file, pipe, AF_ALG, pipe, socket: splice(2), 64 KiB at a time")
                .available(kernel_availability(Algorithm::Ctr256)),
        }
    }
}

fn spliced_availability() -> Availability {
    match kernel_tls::availability() {
        Availability::Runs => kernel_availability(Algorithm::Ctr256),
        missing => missing,
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
    /// Of files that AF_ALG decrypts.
    pub(super) counter: Zeroizing<[u8; 32]>,
    /// Where their counter begins: in all alike, since these files protect nothing.
    pub(super) counter_iv: [u8; 16],
}

impl Keys {
    pub(super) fn new() -> Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM, &random_bytes::<32>());
        Ok(Self {
            seal: SecretKey::generate(),
            context: Context::raw(*b"coffer-lab sendfile"),
            gcm: LessSafeKey::new(key.map_err(|_| failed("a key"))?),
            counter: Zeroizing::new(random_bytes()),
            counter_iv: random_bytes(),
        })
    }

    /// Encrypts a record in place, and gives its tag; its number is its nonce. The same number
    /// comes again with the next transfer: this key protects nothing.
    pub(super) fn encrypt(&self, number: u64, record: &mut [u8]) -> Result<Tag> {
        let sealed = self
            .gcm
            .seal_in_place_separate_tag(nonce(number), Aad::empty(), record);
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

/// One content, as plaintext, sealed, and encrypted in counter mode.
pub(super) struct Files {
    pub(super) bytes: u64,
    /// What must arrive.
    pub(super) content: Vec<u8>,
    pub(super) plain: PathBuf,
    pub(super) sealed: PathBuf,
    pub(super) sealed_bytes: u64,
    /// Of so many bytes as the plaintext.
    pub(super) counter_encrypted: PathBuf,
}

impl Files {
    /// Writes all right before they are read, so that they lie in memory in the same way.
    pub(super) fn create(folder: &Path, bytes: u64, keys: &Keys) -> Result<Self> {
        let length = usize::try_from(bytes).map_err(failed)?;
        let mut content = Vec::with_capacity(length);
        while content.len() < length {
            content.extend_from_slice(&random_bytes::<4096>());
        }
        content.truncate(length);
        let (iv, cipher) = (Some(&keys.counter_iv[..]), Cipher::aes_256_ctr());
        let counted = encrypt(cipher, &*keys.counter, iv, &content).map_err(failed)?;
        let sealed_content = seal(&keys.seal, &keys.context, &content);
        let files = Self {
            bytes,
            plain: folder.join(format!("plain-{bytes}")),
            sealed: folder.join(format!("sealed-{bytes}")),
            counter_encrypted: folder.join(format!("counter-{bytes}")),
            sealed_bytes: sealed_content.len() as u64,
            content,
        };
        for (path, content) in [
            (&files.plain, &files.content),
            (&files.sealed, &sealed_content),
            (&files.counter_encrypted, &counted),
        ] {
            fs::write(path, content).doing(|| format!("writing {}", path.display()))?;
        }
        Ok(files)
    }
}
