//! Making a copy: by a system administrator; and where the keystore goes along, which is an export
//! of every level, on the word of key custodians as well.

use std::path::Path;
use std::time::Duration;

use coffer_durable::now_ms;
use coffer_keys::{ExportRecipient, KeysError};
use coffer_replica::limits::KEEP_MAX_MS;
use coffer_replica::{Copy, CopyRecord, CopyWriter, Place};

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::copies::{Entry, SyncEntry, WithKeystore};
use crate::data_folder::failed;
use crate::error::{CopyError, Result, VaultError};
use crate::limits::{COPY_KEEP_MS, COPY_SYNC_WAIT_MAX, EXPORT_RECIPIENTS_MAX};
use crate::vault::Vault;

/// A copy that is to be made.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// Its name.
    pub name: String,
    /// Where it is to be.
    pub url: String,
    /// How long what was can be restored, in milliseconds; none: as long as
    /// [`COPY_KEEP_MS`] says.
    pub keep_ms: Option<i64>,
    /// Of a copy that acknowledgements wait for: how long, before they are in doubt.
    pub sync: Option<Duration>,
}

impl NewCopy {
    pub(crate) fn keep_ms(&self) -> i64 {
        self.keep_ms.unwrap_or(COPY_KEEP_MS)
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::from([
            ("copy", self.name.clone()),
            ("url", self.url.clone()),
            ("keep_seconds", (self.keep_ms() / 1_000).to_string()),
        ]);
        let waits = self.sync.map(|wait| wait.as_secs().to_string());
        facts.extend(waits.map(|seconds| ("sync_wait_seconds", seconds)));
        facts
    }
}

impl Vault {
    /// Makes a copy, which is kept up from now on. A system administrator's act.
    ///
    /// # Errors
    /// [`CopyError`](crate::CopyError), when there is one of this name, or none can be made there.
    pub async fn add_copy(&self, actor: &Actor, new: &NewCopy) -> Result<()> {
        let (role, act, facts) = (Role::SystemAdministrator, Act::AddCopy, new.facts());
        self.refuse_without(actor, role, act, &facts)?;
        self.check_new_copy(actor, new)
            .map_err(|error| self.failed(act, actor, &facts, error))?;
        let (this, new) = (self.clone(), new.clone());
        let work = async move { this.begin_copy(new, None).await };
        self.act(actor, role, act, facts, work).await
    }

    /// Whether this one may make such a copy. Nothing is made for it.
    fn check_new_copy(&self, actor: &Actor, new: &NewCopy) -> Result<()> {
        self.refuse_in_engine("it makes no copies of its own, for its log is all that it has")?;
        self.inner.copies.registry.cursor_for(&new.name)?;
        let place = Place::parse(&new.url)?;
        check_place(&place, actor, self.inner.folder.path())?;
        if !(0..=KEEP_MAX_MS).contains(&new.keep_ms()) {
            return Err(VaultError::Invalid {
                what: "a copy keeps what was for ten years at most",
            });
        }
        let waits = Duration::from_secs(1)..=COPY_SYNC_WAIT_MAX;
        if new.sync.is_some_and(|wait| !waits.contains(&wait)) {
            return Err(VaultError::Invalid {
                what: "a write waits for a synchronous copy for one second to ten minutes",
            });
        }
        Ok(())
    }

    /// The same of one that the keystore goes along with.
    pub(crate) fn check_new_copy_with_keystore(
        &self,
        actor: &Actor,
        new: &NewCopy,
        recipients: &[ExportRecipient],
    ) -> Result<()> {
        let (role, act) = (Role::SystemAdministrator, Act::AddCopyWithKeystore);
        self.refuse_without(actor, role, act, &new.facts())?;
        let checked = || {
            self.check_new_copy(actor, new)?;
            if recipients.len() > EXPORT_RECIPIENTS_MAX {
                return Err(VaultError::Invalid {
                    what: "a keystore is sealed for 20 recipients at most",
                });
            }
            let levels = self.inner.keystore.levels().into_iter();
            let mut kept = levels.filter(|level| !level.options.exportable);
            // What can't be done needs no approval.
            kept.next().map_or(Ok(()), |level| {
                let (what, name) = ("a copy with the keystore in it", level.name);
                Err(KeysError::NoBackup { what, name }.into())
            })
        };
        checked().map_err(|error| self.failed(act, actor, &new.facts(), error))
    }

    /// Refuses what an engine's log takes care of.
    pub(crate) fn refuse_in_engine(&self, what: &'static str) -> Result<()> {
        if self.inner.gate.is_of_engine() {
            return Err(CopyError::OfEngine { what }.into());
        }
        Ok(())
    }

    /// Makes it. `keystore`: as what the keystore goes along, if it does.
    pub(crate) async fn begin_copy(
        &self,
        new: NewCopy,
        keystore: Option<WithKeystore>,
    ) -> Result<()> {
        let copies = &self.inner.copies;
        let _alone = copies.changing.lock().await;
        let cursor = copies.registry.cursor_for(&new.name)?;
        let place = Place::parse(&new.url)?;
        let id = self.inner.keystore.id();
        let record = if keystore.as_ref().is_some_and(|with| with.is_of_engine) {
            CopyRecord::of_engine(id)
        } else {
            CopyRecord::new(id)
        };
        let (url, public_url) = (place.url().to_owned(), place.public_url());
        // A folder names no versions; and an engine may have its log where versions are kept.
        let is_to_forget = keystore.as_ref().is_some_and(|with| !with.is_of_engine);
        let is_to_forget = is_to_forget && place.folder().is_none();
        let store = blocking(move || Ok(place.open(true)?)).await?;
        let key = self.inner.keystore.system_key();
        let copy = Copy::new(store, record.copy, &key);
        if is_to_forget && copy.keeps_versions().await? {
            return Err(CopyError::KeepsVersions { url: public_url }.into());
        }
        let writer = CopyWriter::begin(copy, &record).await?;
        let entry = Entry {
            url,
            id: record.copy,
            cursor,
            made_ms: now_ms(),
            removed_ms: None,
            newest_ms: None,
            known: Some(writer.known()),
            as_of_ms: 0,
            keep_ms: new.keep_ms(),
            rested: None,
            keystore,
            sync: new.sync.map(|wait| SyncEntry {
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                since_ms: None,
            }),
            fenced_off: None,
            name: new.name,
        };
        let (registry, added) = (copies.registry.clone(), entry.clone());
        blocking(move || registry.change(|entries| entries.push(added))).await?;
        self.follow(&entry, Some(writer)).await;
        Ok(())
    }
}

/// Whether a copy may be made there by this one. Nothing is made for it.
fn check_place(place: &Place, actor: &Actor, data: &Path) -> Result<()> {
    // Who signs in from elsewhere may be no user of this machine.
    if place.names_files() && !matches!(actor, Actor::Local { .. }) {
        return Err(VaultError::Invalid {
            what: "a place that names files of the server's machine (file://, `ca`, \
                   `credentials`) can only be chosen there, at the socket in its data folder",
        });
    }
    if place.names_relative_files() {
        return Err(VaultError::Invalid {
            what: "files that a copy's URL names (`ca`, `credentials`) are looked for by the \
                   server at each of its starts: name them from / on",
        });
    }
    let Some(folder) = place.folder() else {
        return Ok(());
    };
    let data = data.canonicalize().map_err(failed("find", data))?;
    // What is not there yet is made below the nearest that is.
    let is_inside = folder.ancestors().find_map(|above| {
        let found = above.canonicalize().ok()?;
        Some(found.starts_with(&data) || above == folder && data.starts_with(&found))
    });
    if is_inside == Some(true) {
        return Err(VaultError::Invalid {
            what: "a copy can't be made inside the data folder, nor in a folder that holds it: \
                   choose a folder of another disk",
        });
    }
    let is_of_another = |above: &Path| above.join(coffer_replica::RECORD).is_file();
    if folder.ancestors().skip(1).any(is_of_another) {
        return Err(VaultError::Invalid {
            what: "a copy can't be made inside another, which would take its files for its own: \
                   choose a folder beside that one",
        });
    }
    Ok(())
}
