//! Levels: made and listed.

use coffer_keys::{LevelEntry, LevelOptions};
use coffer_label::Label;

use crate::act::Facts;
use crate::actor::Actor;
use crate::error::Result;
use crate::manage::blocking;
use crate::roles::Role;
use crate::vault::Vault;

/// A level to be made.
#[derive(Clone, Debug)]
pub struct NewLevel {
    /// Its name.
    pub name: String,
    /// How sensitive its buckets will be.
    pub label: Label,
    /// What is chosen for good.
    pub options: LevelOptions,
}

impl Vault {
    /// Makes a level and its key. A key custodian's act.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`](crate::VaultError::AccessDenied); those of
    /// [`Keystore::add_level`](coffer_keys::Keystore::add_level).
    pub async fn create_level(&self, actor: &Actor, level: NewLevel) -> Result<LevelEntry> {
        let NewLevel {
            name,
            label,
            options,
        } = level;
        let facts = Facts::from([("level", name.clone()), ("label", label.to_string())]);
        let inner = self.inner.clone();
        let work = blocking(move || Ok(inner.keystore.add_level(&name, label, options)?));
        self.act(actor, Role::KeyCustodian, "level.create", facts, work)
            .await
    }
}
