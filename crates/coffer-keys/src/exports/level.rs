//! Levels' keys on their way to another keystore, sealed by age (<https://age-encryption.org/v1>).
//!
//! What is sealed is a root key of its own and, under it, the body of a keystore that holds one
//! level and its buckets; `docs/FORMAT.md`, "Exports". An export that is opened can open what the
//! level held, for ever: so exports are counted in the keystore, and receipts tell the count.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, Encryptor, scrypt, x25519};
use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{BucketId, LevelId, SecretKey, wrap_key};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::keystore::body::check_new_level_name;
use crate::keystore::contents::{Contents, LevelEntry, level_context};
use crate::keystore::state::Keystore;
use crate::limits::{BUCKET_COUNT_MAX, EXPORT_MAX_BYTES, LEVEL_COUNT_MAX};
use crate::root::source::RootKey;

const HEADING: &[u8] = b"coffer level export v1\0";

/// Who can open an export: a recipient of age, `age1…`.
#[derive(Clone)]
pub struct ExportRecipient(x25519::Recipient);

/// What opens an export: an identity of age, `AGE-SECRET-KEY-1…`.
#[derive(Clone)]
pub struct ExportIdentity(x25519::Identity);

impl Keystore {
    /// Seals a level's key and those of its buckets for these recipients, as an armored age file.
    /// The export is counted, durably, before it is given out.
    ///
    /// # Errors
    ///
    /// [`KeysError::NotExportable`]; when there is no such level or no recipient, or the keystore
    /// can't be written.
    pub fn export_level(
        &self,
        level_id: LevelId,
        recipients: &[ExportRecipient],
    ) -> Result<Vec<u8>, KeysError> {
        let seal = Seal::for_recipients(recipients)?;
        let plaintext = self.change(|contents, root| {
            let key = contents.level_key(root, level_id)?;
            let (level, _) = contents
                .levels
                .get_mut(&level_id)
                .ok_or(KeysError::NoSuchLevel { level_id })?;
            if !level.options.exportable {
                return Err(KeysError::NotExportable {
                    name: level.name.clone(),
                });
            }
            level.export_count = level.export_count.saturating_add(1);
            let level = level.clone();
            Ok(self.export_plaintext(contents, level, &key))
        })?;
        seal.seal(&plaintext)
    }

    /// Takes in a level with its buckets from an export, under its own name or another. The
    /// buckets' folders are the caller's to copy.
    ///
    /// # Errors
    ///
    /// When the export doesn't open or is malformed; when the level, its name or one of its buckets
    /// is here already, there are too many, or the keystore can't be written.
    pub fn import_level(
        &self,
        export: &[u8],
        identity: &ExportIdentity,
        name: Option<&str>,
        may_share_label: bool,
    ) -> Result<LevelEntry, KeysError> {
        let (exported_root, exported) = open(export, identity)?;
        let malformed = KeysError::Malformed { what: "export" };
        let (level, _) = exported.levels.values().next().ok_or(malformed)?;
        let key = exported.level_key(&exported_root, level.id)?;
        let mut level = level.clone();
        level.imported = true;
        level.export_count = 0;
        if let Some(name) = name {
            level.name = name.to_owned();
        }
        self.change(|contents, root| {
            accept(contents, &level, &exported)?;
            let mut levels = contents.levels.values();
            let same = levels.find(|(other, _)| other.label == level.label);
            if let Some((other, _)) = same.filter(|_| !may_share_label) {
                return Err(KeysError::SameLabel {
                    level: other.name.clone(),
                });
            }
            let wrapped = wrap_key(root.secret(), &level_context(&level), &key);
            contents.levels.insert(level.id, (level.clone(), wrapped));
            contents.buckets.extend(&exported.buckets);
            Ok(level)
        })
    }

    /// The level that an export is of, under its own name. Nothing is taken in.
    ///
    /// # Errors
    ///
    /// When the export doesn't open or is malformed.
    pub fn level_of_export(
        export: &[u8],
        identity: &ExportIdentity,
    ) -> Result<LevelEntry, KeysError> {
        let (_, exported) = open(export, identity)?;
        let malformed = KeysError::Malformed { what: "export" };
        let (level, _) = exported.levels.values().next().ok_or(malformed)?;
        Ok(level.clone())
    }

    /// A keystore's body of one level, and the root key that goes with it.
    fn export_plaintext(
        &self,
        contents: &Contents,
        level: LevelEntry,
        key: &SecretKey,
    ) -> Zeroizing<Vec<u8>> {
        let root = RootKey::generate();
        // System and receipt key are new ones, and of no use: those of this keystore stay here.
        let mut exported = Contents::new(self.id(), &root);
        let wrapped = wrap_key(root.secret(), &level_context(&level), key);
        let of_level = contents.buckets_of(level.id);
        exported.buckets = of_level.map(|(id, bucket)| (id, *bucket)).collect();
        exported.levels.insert(level.id, (level, wrapped));
        let body = exported.to_bytes();
        // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
        let mut plaintext =
            Zeroizing::new(Vec::with_capacity(HEADING.len() + KEY_BYTES + body.len()));
        plaintext.extend_from_slice(HEADING);
        plaintext.extend_from_slice(root.secret().expose());
        plaintext.extend_from_slice(&body);
        plaintext
    }
}

/// Whether there is room for the level, and nothing in its place.
fn accept(contents: &Contents, level: &LevelEntry, exported: &Contents) -> Result<(), KeysError> {
    check_new_level_name(&level.name)?;
    if contents.levels.contains_key(&level.id) {
        return Err(KeysError::LevelPresent { level_id: level.id });
    }
    let has_name = |known: &LevelEntry| known.name == level.name;
    if contents.levels.values().any(|(known, _)| has_name(known)) {
        return Err(KeysError::LevelExists {
            name: level.name.clone(),
        });
    }
    let count = contents.levels.len();
    if count >= LEVEL_COUNT_MAX {
        return Err(KeysError::TooManyLevels { count });
    }
    let present = |id: &&BucketId| contents.buckets.contains_key(*id);
    if let Some(bucket_id) = exported.buckets.keys().find(present) {
        return Err(KeysError::BucketExists {
            bucket_id: *bucket_id,
        });
    }
    let count = contents.buckets.len();
    if count + exported.buckets.len() > BUCKET_COUNT_MAX {
        return Err(KeysError::TooManyBuckets { count });
    }
    Ok(())
}

/// What seals for recipients. Made before anything is counted: there must be a recipient.
pub(crate) struct Seal(Encryptor);

impl Seal {
    pub(crate) fn for_recipients(recipients: &[ExportRecipient]) -> Result<Self, KeysError> {
        let recipients = recipients.iter().map(|one| &one.0 as &dyn age::Recipient);
        Encryptor::with_recipients(recipients)
            .map(Self)
            .map_err(|source| KeysError::ExportNotSealed { source })
    }

    /// For who knows a passphrase, at the cost of 2 to the power of `work_factor`.
    pub(crate) fn for_passphrase(
        passphrase: SecretString,
        work_factor: u8,
    ) -> Result<Self, KeysError> {
        let mut recipient = scrypt::Recipient::new(passphrase);
        recipient.set_work_factor(work_factor);
        Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient))
            .map(Self)
            .map_err(|source| KeysError::ExportNotSealed { source })
    }

    /// An armored age file.
    pub(crate) fn seal(self, plaintext: &[u8]) -> Result<Vec<u8>, KeysError> {
        let sealed = || -> io::Result<Vec<u8>> {
            let armored = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
            let mut writer = self.0.wrap_output(armored)?;
            writer.write_all(plaintext)?;
            writer.finish()?.finish()
        };
        // Into memory, so only age itself could fail.
        sealed().map_err(|source| KeysError::ExportNotSealed {
            source: age::EncryptError::Io(source),
        })
    }
}

pub(crate) fn open(
    export: &[u8],
    identity: &ExportIdentity,
) -> Result<(RootKey, Contents), KeysError> {
    let plaintext = decrypt(export, identity).ok_or(KeysError::ExportDidNotOpen)?;
    read_plaintext(&plaintext)
}

/// What was sealed: an export's root key, and a keystore's body of one level.
pub(crate) fn read_plaintext(plaintext: &[u8]) -> Result<(RootKey, Contents), KeysError> {
    let malformed = || KeysError::Malformed { what: "export" };
    let rest = plaintext.strip_prefix(HEADING).ok_or_else(malformed)?;
    let (root, body) = rest
        .split_first_chunk::<KEY_BYTES>()
        .ok_or_else(malformed)?;
    let root = SecretKey::try_filled(|out| {
        out.copy_from_slice(root);
        Ok::<_, KeysError>(())
    })
    .map(RootKey::from_secret)?;
    let contents = Contents::from_bytes(body)?;
    if contents.levels.len() != 1 {
        return Err(malformed());
    }
    Ok((root, contents))
}

/// One opaque failure for whatever is wrong with sealed bytes.
pub(crate) fn decrypt(export: &[u8], identity: &ExportIdentity) -> Option<Zeroizing<Vec<u8>>> {
    let export = export.get(..EXPORT_MAX_BYTES.min(export.len()))?;
    decrypt_by(export, &identity.0).ok()
}

/// What an age file, armored or not, opens to.
pub(crate) fn decrypt_by(
    sealed: &[u8],
    identity: &dyn age::Identity,
) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
    let decryptor = Decryptor::new_buffered(ArmoredReader::new(sealed))?;
    let mut reader = decryptor.decrypt(std::iter::once(identity))?;
    // Never outgrown: what is sealed is longer than what is in it.
    let mut plaintext = Zeroizing::new(vec![0; sealed.len()]);
    let mut filled_bytes = 0;
    loop {
        match reader.read(&mut plaintext[filled_bytes..])? {
            0 => break,
            read_bytes => filled_bytes += read_bytes,
        }
    }
    plaintext.truncate(filled_bytes);
    Ok(plaintext)
}

impl FromStr for ExportRecipient {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let recipient = text.trim().parse();
        recipient.map(Self).map_err(|_| KeysError::ExportRecipient)
    }
}

impl fmt::Display for ExportRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ExportRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportRecipient({self})")
    }
}

impl ExportIdentity {
    pub(crate) fn generate() -> Self {
        Self(x25519::Identity::generate())
    }

    /// As [`ExportIdentity::from_str`] reads it.
    pub(crate) fn to_text(&self) -> SecretString {
        self.0.to_string()
    }

    /// Who it opens exports for.
    pub fn recipient(&self) -> ExportRecipient {
        ExportRecipient(self.0.to_public())
    }
}

impl FromStr for ExportIdentity {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let identity = text.trim().parse();
        identity.map(Self).map_err(|_| KeysError::ExportIdentity)
    }
}

impl fmt::Debug for ExportIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExportIdentity(redacted)")
    }
}
