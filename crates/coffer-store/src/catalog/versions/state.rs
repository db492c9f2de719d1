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
        self.settle().await?;
        self.point(state_of).await
    }

    /// What is set of its versions.
    ///
    /// # Errors
    /// As [`Catalog::versioning`].
    pub async fn versioning_setting(&self) -> Result<VersioningSetting> {
        self.settle().await?;
        let read = self.point(|connection| {
            Ok(VersioningSetting {
                state: state_of(connection)?,
                is_mfa_delete_off: is_mfa_delete_off(connection)?,
            })
        });
        read.await
    }

    /// Has the bucket keep versions from now on, or keep no more. Writes that are under way may be
    /// of either state. What was said of second factors stays said.
    ///
    /// # Errors
    /// As any write.
    pub async fn set_versioning(&self, setting: impl Into<VersioningSetting>) -> Result<()> {
        let setting = setting.into();
        let known = self.known_versioning();
        let change = known.begin_change();
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
        match &outcome {
            Ok(()) => known.note(change, setting.state),
            // It may have changed all the same. While that isn't known, writes look.
            Err(_) => {
                if let Ok(state) = self.versioning().await {
                    known.note(change, state);
                }
            }
        }
        outcome
    }
}
