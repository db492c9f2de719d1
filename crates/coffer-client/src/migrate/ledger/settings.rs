//! What this migration has set of a bucket.

use super::Ledger;
use super::lines::Line;
use crate::migrate::error::MigrateError;

impl Ledger {
    /// Notes that a setting is being made this: should the answer be lost, or this process end,
    /// what is at the target is known for what it is.
    pub(in crate::migrate) fn setting(
        &self,
        setting: &str,
        document: &str,
    ) -> Result<(), MigrateError> {
        self.note(Line::Setting {
            setting: setting.to_owned(),
            document: document.to_owned(),
        })
    }

    /// Notes what a setting of the bucket is now, as the target says it; nothing, where it was
    /// removed.
    pub(in crate::migrate) fn set(
        &self,
        setting: &str,
        document: &str,
    ) -> Result<(), MigrateError> {
        self.note(Line::Set {
            setting: setting.to_owned(),
            document: document.to_owned(),
        })
    }

    /// Notes what a bucket that was just made has of a setting.
    pub(in crate::migrate) fn found(
        &self,
        setting: &str,
        document: &str,
    ) -> Result<(), MigrateError> {
        self.note(Line::Found {
            setting: setting.to_owned(),
            document: document.to_owned(),
        })
    }

    /// What this migration made of a setting, if it has set it and not removed it.
    pub(in crate::migrate) fn has_set(&self, setting: &str) -> Option<String> {
        let set = self.known.lock().settings.get(setting).cloned();
        set.filter(|document| !document.is_empty())
    }

    /// What is at the target of a setting, as far as this migration has brought that about: what
    /// it set last, or what the bucket had when this migration made it.
    pub(in crate::migrate) fn stands(&self, setting: &str) -> Option<String> {
        let known = self.known.lock();
        let set = known.settings.get(setting).filter(|set| !set.is_empty());
        set.or_else(|| known.found.get(setting)).cloned()
    }

    /// What may be there in its place: what it was to be set to when no answer came.
    pub(in crate::migrate) fn may_stand(&self, setting: &str) -> Option<String> {
        self.known.lock().setting.get(setting).cloned()
    }
}
