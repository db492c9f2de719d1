//! What a receipt says of data keys that clients were given by sealed transfer: who kept one can
//! open the sealed bytes of that object after the erase as well.

use std::sync::Arc;

use coffer_keys::ErasedWhat;

use super::journal::EraseDraft;
use crate::blocking::blocking;
use crate::error::Result;
use crate::system::{BucketRow, KeyReleases, Kind, System};
use crate::vault::Vault;

/// What is said of data keys that clients have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeysTold {
    /// What is known for certain.
    pub(super) checked: Vec<String>,
    /// What may open something still.
    pub(super) left: Vec<String>,
}

impl Vault {
    /// Keeps a draft, with what clients were given of these buckets, which give nothing any more.
    pub(super) async fn keep_draft(
        &self,
        mut draft: EraseDraft,
        rows: Vec<Arc<BucketRow>>,
    ) -> Result<EraseDraft> {
        let inner = self.inner.clone();
        blocking(move || {
            draft.count_key_releases(&inner.system, &rows)?;
            inner.system.keep(Kind::Erase, draft.id(), &draft)?;
            Ok(draft)
        })
        .await
    }
}

impl EraseDraft {
    /// Notes how many data keys clients were given of the buckets, and of those of the level that
    /// are gone.
    fn count_key_releases(&mut self, system: &System, rows: &[Arc<BucketRow>]) -> Result<()> {
        for bucket in &mut self.buckets {
            let row = rows.iter().find(|row| row.id == bucket.entry.id);
            bucket.key_releases = row.map(|row| system.key_releases(row));
        }
        self.level_key_releases = Some(system.level_key_releases(self.level.id)?);
        Ok(())
    }

    /// What the level is to keep of a bucket that is erased; none where the level goes as well.
    pub(crate) fn key_releases_kept(&self) -> Option<KeyReleases> {
        match self.what {
            ErasedWhat::Level => None,
            ErasedWhat::Bucket => Some(self.released()),
        }
    }

    /// Of all buckets that are erased.
    fn released(&self) -> KeyReleases {
        let each = self.buckets.iter().filter_map(|bucket| bucket.key_releases);
        each.fold(KeyReleases::default(), KeyReleases::and)
    }

    /// What the receipt says.
    pub(super) fn keys_told(&self) -> KeysTold {
        let mut told = KeysTold::default();
        if !self.level.is_known() {
            let unknown = "whether clients were given data keys by sealed transfer is not known, \
                           for the keystore has not the level: who kept one, and has a copy of \
                           that object's sealed bytes, can still open them";
            told.left.push(unknown.to_owned());
            return told;
        }
        if !self.level.options.sealed_transfer {
            let none = "the server gave clients no data keys: the level was made without sealed \
                        transfer";
            told.checked.push(none.to_owned());
            return told;
        }
        let is_level = self.what == ErasedWhat::Level;
        let of_level = self.level_key_releases.unwrap_or_default();
        let gone = if is_level { of_level.count } else { 0 };
        let all = self.released().count.saturating_add(gone);
        let is_incomplete = self.released().is_incomplete || of_level.is_incomplete;
        let is_known = !is_incomplete && !self.level.imported;
        if all == 0 && is_known {
            let none = "the server gave clients no data keys, though the level allows sealed \
                        transfer";
            told.checked.push(none.to_owned());
            return told;
        }
        told.left.push(format!(
            "clients were given at most {all} data keys by sealed transfer: who kept one, and has \
             a copy of that object's sealed bytes, can still open them"
        ));
        for bucket in &self.buckets {
            let count = bucket.key_releases.map_or(0, |releases| releases.count);
            if is_level && count > 0 {
                let name = bucket.name.as_deref().unwrap_or("without a name");
                let id = bucket.entry.id;
                told.left
                    .push(format!("of these at most {count} of bucket {name}, {id}"));
            }
        }
        if gone > 0 {
            told.left.push(format!(
                "of these at most {gone} of buckets that were deleted or erased before"
            ));
        }
        if is_incomplete {
            let more = "clients may have been given data keys that are not counted: the server \
                        went on from an older copy of its database";
            told.left.push(more.to_owned());
        }
        if self.level.imported {
            let more = "the server that the level's key came from may have given clients data \
                        keys, which are not counted here";
            told.left.push(more.to_owned());
        }
        told
    }
}
