//! Whether a bucket keeps versions.

use rusqlite::params;

use crate::catalog::open::Catalog;
use crate::catalog::tables::versioning::{is_mfa_delete_off, state_of};
use crate::error::Result;
use crate::version::{Versioning, VersioningSetting};

impl Catalog {
    /// Whether objects have versions that clients are told of: the bucket keeps them, or did.
    pub fn has_versions(&self) -> bool {
        self.known_versioning().state() != Versioning::Never
    }

    /// Whether the bucket keeps versions.
    ///
    /// # Errors
    /// [`StoreError::InDoubt`](crate::StoreError::InDoubt) while it is in doubt whether that was
    /// changed.
    pub async fn versioning(&self) -> Result<Versioning> {
        Ok(self.versioning_setting().await?.state)
    }

    /// What is set of its versions.
    ///
    /// # Errors
    /// As [`Catalog::versioning`].
    pub async fn versioning_setting(&self) -> Result<VersioningSetting> {
        let known = self.known_versioning();
        let changes = known.changes_ended();
        self.settle().await?;
        let read = self.point(|connection| {
            Ok(VersioningSetting {
                state: state_of(connection)?,
                is_mfa_delete_off: is_mfa_delete_off(connection)?,
            })
        });
        let setting = read.await?;
        if let Some(changes) = changes {
            known.note(changes, setting.state);
        }
        Ok(setting)
    }

    /// Has the bucket keep versions from now on, or keep no more. Writes that are under way may be
    /// of either state. What was said of second factors stays said.
    ///
    /// # Errors
    /// As any write.
    pub async fn set_versioning(&self, setting: impl Into<VersioningSetting>) -> Result<()> {
        let setting = setting.into();
        let known = self.known_versioning();
        known.begin_change();
        let set = self.write(move |session| {
            if setting.is_mfa_delete_off {
                let sql = "INSERT OR REPLACE INTO meta VALUES('mfa_delete', 'disabled')";
                session.execute(sql, ())?;
            }
            match setting.state.word() {
                Some(word) => session.execute(
                    "INSERT OR REPLACE INTO meta VALUES('versioning', ?)",
                    params![word],
                )?,
                None => session.execute("DELETE FROM meta WHERE name = 'versioning'", ())?,
            };
            Ok(())
        });
        let outcome = set.await;
        known.end_change();
        // Also after a failure, which may have changed it all the same. Where that can't be told,
        // writes look.
        let _ = self.versioning().await;
        outcome
    }
}
