//! The keystore's generation in a token: a data object (CKO_DATA), private, whose value is the
//! first half of the ids of the file's keys (8), keystore id (16), generation (8) and time (8).
//!
//! Not every token changes an object in place, so the next is made before the one before goes:
//! after an interruption there are two, and the higher one counts.

use coffer_seal::KeystoreId;
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::Session;

use super::{Family, TokenRoot, failed};
use crate::error::KeysError;
use crate::freshness::{HELD_GENERATION_BYTES, HeldGeneration, Outside};

/// What makes it, in CKA_APPLICATION.
const APPLICATION: &[u8] = b"coffer keystore generation";

/// An object, and what it holds.
type Found = (ObjectHandle, Vec<u8>);

impl TokenRoot {
    /// The highest generation of this keystore that the token holds.
    pub(super) fn generation(&self, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
        let found = self.generations(&self.session()?)?;
        let of_keystore = |(_, value): &Found| {
            let (_, held) = value.split_first_chunk::<{ size_of::<Family>() }>()?;
            HeldGeneration::from_bytes(held, keystore_id)
        };
        let highest = found.iter().filter_map(of_keystore);
        let highest = highest.max_by_key(|held| held.generation);
        Ok(highest.map_or(Outside::Absent, Outside::Held))
    }

    /// Puts a generation in place of those that this file's keystore had.
    pub(super) fn hold_generation(
        &self,
        keystore_id: KeystoreId,
        held: HeldGeneration,
    ) -> Result<(), KeysError> {
        let Some(family) = *self.family.lock() else {
            // Nothing was read from the file or written to it, so nothing can be at stake.
            return Ok(());
        };
        let session = self.session()?;
        let before = self.generations(&session)?;
        let template = [
            Attribute::Class(ObjectClass::DATA),
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Label(self.options.name.clone().into_bytes()),
            Attribute::Application(APPLICATION.to_vec()),
            Attribute::Value([&family[..], &held.to_bytes(keystore_id)].concat()),
        ];
        session
            .create_object(&template)
            .map_err(failed("hold the keystore's generation"))?;
        destroy(&session, of_family(before, &family))
    }

    /// Removes what this file's keystore left, for the root key has gone elsewhere.
    pub(super) fn forget_generation(&self) -> Result<(), KeysError> {
        let Some(family) = *self.family.lock() else {
            return Ok(());
        };
        let session = self.session()?;
        let found = self.generations(&session)?;
        destroy(&session, of_family(found, &family))
    }

    /// All generations under this name, of whichever keystore.
    fn generations(&self, session: &Session) -> Result<Vec<Found>, KeysError> {
        let template = [
            Attribute::Class(ObjectClass::DATA),
            Attribute::Token(true),
            Attribute::Label(self.options.name.clone().into_bytes()),
            Attribute::Application(APPLICATION.to_vec()),
        ];
        let handles = session
            .find_objects(&template)
            .map_err(failed("look for the keystore's generation"))?;
        let mut found = Vec::new();
        for handle in handles {
            let attributes = session
                .get_attributes(handle, &[AttributeType::Value])
                .map_err(failed("read the keystore's generation"))?;
            for attribute in attributes {
                if let Attribute::Value(value) = attribute
                    && value.len() == size_of::<Family>() + HELD_GENERATION_BYTES
                {
                    found.push((handle, value));
                }
            }
        }
        Ok(found)
    }
}

fn of_family(found: Vec<Found>, family: &Family) -> impl Iterator<Item = ObjectHandle> {
    let own = found
        .into_iter()
        .filter(|(_, value)| value.starts_with(family));
    own.map(|(handle, _)| handle)
}

fn destroy(
    session: &Session,
    objects: impl Iterator<Item = ObjectHandle>,
) -> Result<(), KeysError> {
    for object in objects {
        session
            .destroy_object(object)
            .map_err(failed("remove the keystore's former generation"))?;
    }
    Ok(())
}
