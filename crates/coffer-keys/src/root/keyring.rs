//! The root key in the kernel's keyring, never in a file.
//!
//! In the user keyring of the server's user (`user-keyring(7)`) are one or two keys of the type
//! `user`, described as `coffer:NAME:a` and `coffer:NAME:b`, of 32 bytes. A reboot destroys them:
//! what was sealed under them is erased then, unless the operator puts the key back from where it
//! came.
//!
//! A third one, `coffer:NAME:generation`, holds the keystore's generation. A reboot takes it away
//! as well: then none is held until the next is.

use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{KeystoreId, SecretKey};
use linux_keyutils::{
    Key, KeyError, KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission,
};

use crate::error::KeysError;
use crate::freshness::{HELD_GENERATION_BYTES, HeldGeneration, Keeping, Outside};
use crate::root::source::{RootKey, RootMedium, RootSource, Sanitization};

/// Root keys in the kernel keyring of the user that the server runs as.
#[derive(Debug, Clone)]
pub struct KeyringRoot {
    name: String,
}

impl KeyringRoot {
    /// The source of this name; one keystore, one name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// What both keys may be called.
    fn descriptions(&self) -> [String; 2] {
        ["a", "b"].map(|place| format!("coffer:{}:{place}", self.name))
    }

    /// What the keystore's generation is called.
    fn generation_description(&self) -> String {
        format!("coffer:{}:generation", self.name)
    }

    fn keys(&self) -> Result<[Option<(Key, RootKey)>; 2], KeysError> {
        let ring = user_keyring()?;
        let [a, b] = self.descriptions().map(|name| find(&ring, &name));
        Ok([a?, b?])
    }
}

impl RootSource for KeyringRoot {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        let found = self.keys()?.into_iter().flatten();
        Ok(found.map(|(_, root)| root).collect())
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        let free = self
            .keys()?
            .iter()
            .position(Option::is_none)
            .ok_or_else(|| KeysError::RootUnsettled {
                place: self.describe(),
            })?;
        let (ring, root) = (user_keyring()?, RootKey::generate());
        let key = ring
            .add_key(&self.descriptions()[free], root.secret().expose())
            .map_err(failed("add a key"))?;
        share(&key)?;
        Ok(root)
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        let found: Vec<_> = self.keys()?.into_iter().flatten().collect();
        if kept.is_some_and(|kept| found.iter().all(|(_, root)| root != kept)) {
            return Err(KeysError::RootMissing {
                place: self.describe(),
            });
        }
        let ring = user_keyring()?;
        for (key, root) in found {
            if Some(&root) != kept {
                // Revoked, it can't be read any more at once; unlinked, the kernel frees it, and
                // zeroizes it as it does.
                key.revoke().map_err(failed("revoke a key"))?;
                ring.unlink_key(key).map_err(failed("unlink a key"))?;
            }
        }
        let left = self.candidates()?;
        if left.iter().any(|root| Some(root) != kept) {
            return Err(KeysError::RootUnsettled {
                place: self.describe(),
            });
        }
        if kept.is_none()
            && let Some(key) = look_for(&ring, &self.generation_description())?
        {
            ring.unlink_key(key).map_err(failed("unlink a key"))?;
        }
        Ok(())
    }

    fn keeping(&self) -> Keeping {
        Keeping::InMemory
    }

    fn outside(&self, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
        let Some(key) = look_for(&user_keyring()?, &self.generation_description())? else {
            return Ok(Outside::Absent);
        };
        let mut bytes = [0; HELD_GENERATION_BYTES];
        let length = key.read(&mut bytes).map_err(failed("read a key"))?;
        let found = bytes.get(..length).unwrap_or_default();
        let held = HeldGeneration::from_bytes(found, keystore_id);
        Ok(held.map_or(Outside::Absent, Outside::Held))
    }

    fn hold_outside(
        &self,
        keystore_id: KeystoreId,
        generation: HeldGeneration,
    ) -> Result<(), KeysError> {
        let bytes = generation.to_bytes(keystore_id);
        let ring = user_keyring()?;
        let description = self.generation_description();
        if let Some(key) = look_for(&ring, &description)? {
            return key.update(&bytes).map_err(failed("update a key"));
        }
        let added = ring.add_key(&description, &bytes);
        let key = added.map_err(failed("add a key"))?;
        share(&key)
    }

    fn describe(&self) -> String {
        format!("kernel keyring, name {}", self.name)
    }

    fn medium(&self) -> RootMedium {
        RootMedium {
            category: Sanitization::Clear,
            holder: format!("the kernel's keyring, in memory, name {}", self.name),
            destruction: "revoked and unlinked; the kernel zeroizes its memory".to_owned(),
            remaining:
                "whoever read the key from the keyring while it was there, as every process \
                        of the same user and root can, or kept the copy from which it was put \
                        there, can still open copies of the keystore from before"
                    .to_owned(),
        }
    }
}

fn user_keyring() -> Result<KeyRing, KeysError> {
    let ring = KeyRing::from_special_id(KeyRingIdentifier::User, true)
        .map_err(failed("open the user's keyring"))?;
    // A session that doesn't have the user's keyring, as in a container, may not use what is in
    // it. Where the session can't be changed the next call says so.
    if let Ok(session) = KeyRing::from_special_id(KeyRingIdentifier::Session, false) {
        let _ = session.link_keyring_id(KeyRingIdentifier::User);
    }
    Ok(ring)
}

/// Each process of the same user may use it, whatever session it is: so can the server after a
/// restart.
fn share(key: &Key) -> Result<(), KeysError> {
    let all = KeyPermissionsBuilder::builder()
        .posessor(Permission::ALL)
        .user(Permission::ALL)
        .build();
    key.set_perms(all)
        .map_err(failed("set a key's permissions"))
}

fn look_for(ring: &KeyRing, description: &str) -> Result<Option<Key>, KeysError> {
    match ring.search(description) {
        Ok(key) => Ok(Some(key)),
        Err(KeyError::KeyDoesNotExist | KeyError::KeyRevoked | KeyError::KeyExpired) => Ok(None),
        Err(source) => Err(failed("find a key")(source)),
    }
}

fn find(ring: &KeyRing, description: &str) -> Result<Option<(Key, RootKey)>, KeysError> {
    let Some(key) = look_for(ring, description)? else {
        return Ok(None);
    };
    let secret = SecretKey::try_filled(|out| {
        // The kernel tells the payload's whole length, and fills no more than there is room.
        match key.read(&mut out.as_mut_slice()) {
            Ok(KEY_BYTES) => Ok(()),
            Ok(_) => Err(KeyError::InvalidArguments),
            Err(source) => Err(source),
        }
    });
    let root = RootKey::from_secret(secret.map_err(failed("read a key"))?);
    Ok(Some((key, root)))
}

fn failed(op: &'static str) -> impl FnOnce(KeyError) -> KeysError {
    move |source| KeysError::Keyring { op, source }
}
