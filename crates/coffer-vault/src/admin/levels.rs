//! Levels: made and listed.

use std::collections::HashMap;

use coffer_keys::{KeysError, LevelEntry, LevelOptions};
use coffer_label::Label;
use coffer_seal::LevelId;

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result, VaultError};
use crate::vault::Vault;

const ACT: Act = Act::CreateLevel;

/// A level to be made.
#[derive(Clone, Debug)]
pub struct NewLevel {
    /// Its name.
    pub name: String,
    /// How sensitive its buckets will be.
    pub label: Label,
    /// What is chosen for good.
    pub options: LevelOptions,
    /// Whether another level may have the same label.
    pub may_share_label: bool,
}

/// A level, and what it holds.
#[derive(Clone, Debug)]
pub struct LevelInfo {
    /// The level.
    pub level: LevelEntry,
    /// Its buckets, as many as the actor may know of.
    pub bucket_count: usize,
}

/// What is recorded of a level that is made or imported.
pub(crate) fn told_of(name: &str, label: &Label, options: LevelOptions) -> Facts {
    Facts::from([
        ("level", name.to_owned()),
        ("label", label.to_string()),
        ("approvals", options.approvals.to_string()),
        ("exportable", options.exportable.to_string()),
        ("audit_data", options.audit_data.to_string()),
        ("public", options.public.to_string()),
        ("erase_breaks_locks", options.erase_breaks_locks.to_string()),
        ("sealed_transfer", options.sealed_transfer.to_string()),
    ])
}

impl Vault {
    /// Makes a level and its key. A key custodian's act.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`](crate::VaultError::AccessDenied);
    /// [`AdministrationError::SameLabel`], [`AdministrationError::LevelGoing`]; those of
    /// [`Keystore::add_level`](coffer_keys::Keystore::add_level).
    pub async fn create_level(&self, actor: &Actor, level: NewLevel) -> Result<LevelInfo> {
        let NewLevel {
            name,
            label,
            options,
            may_share_label,
        } = level;
        let facts = told_of(&name, &label, options);
        self.refuse_without(actor, Role::KeyCustodian, ACT, &facts)?;
        if self.inner.keystore.level_named(&name).is_some() {
            let error = KeysError::LevelExists { name }.into();
            return Err(self.failed(ACT, actor, &facts, error));
        }
        let (inner, wanted) = (self.inner.clone(), name.clone());
        let refuse_ordered = move || inner.refuse_ordered(|level| level.name == wanted);
        if let Err(error) = blocking(refuse_ordered).await {
            return Err(self.failed(ACT, actor, &facts, error));
        }
        if options.public && label != Label::LOWEST {
            let error = VaultError::Invalid {
                what: "a public level has rank 0 and no categories: who signs nothing is cleared \
                       for no other",
            };
            return Err(self.failed(ACT, actor, &facts, error));
        }
        let has_label = |level: &LevelEntry| level.label == label;
        let same = self.inner.keystore.levels().into_iter().find(has_label);
        if let Some(same) = same.filter(|_| !may_share_label) {
            let (level, label) = (same.name, label.to_string());
            let error = AdministrationError::SameLabel { level, label }.into();
            return Err(self.failed(ACT, actor, &facts, error));
        }
        let inner = self.inner.clone();
        let work = blocking(move || Ok(inner.keystore.add_level(&name, label, options)?));
        let level = self
            .act(actor, Role::KeyCustodian, ACT, facts, work)
            .await?;
        Ok(LevelInfo {
            level,
            bucket_count: 0,
        })
    }

    /// The levels that the actor may know of, by rank and then by name.
    pub async fn levels(&self, actor: &Actor) -> Result<Vec<LevelInfo>> {
        let mut counts: HashMap<LevelId, usize> = HashMap::new();
        let rows = self.inner.system.buckets().into_iter();
        for row in rows.filter(|row| self.may_look_after(actor, row)) {
            *counts.entry(row.level_id).or_default() += 1;
        }
        let levels = self.inner.keystore.levels().into_iter();
        let mut levels: Vec<LevelInfo> = levels
            .filter(|level| actor.may_know(&level.label))
            .map(|level| LevelInfo {
                bucket_count: counts.get(&level.id).copied().unwrap_or(0),
                level,
            })
            .collect();
        let order = |info: &LevelInfo| (info.level.label.rank, info.level.name.clone());
        levels.sort_by_key(order);
        Ok(levels)
    }

    /// A level.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`], also for one that the actor may not know of.
    pub async fn level(&self, actor: &Actor, name: &str) -> Result<LevelInfo> {
        let levels = self.levels(actor).await?;
        let named = |info: &LevelInfo| info.level.name == name;
        levels
            .into_iter()
            .find(named)
            .ok_or(VaultError::NoSuchLevel)
    }
}
