//! What a command finds moved by one before it: files and objects as they were left.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::limits::PART_BYTES;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::{Event, Moved};
use crate::mover::journal::{FolderLine, Left, Mark, Notes, mark};
use crate::mover::location::Location;
use crate::mover::source::{Seen, Source};
use crate::s3::{ListedObject, ObjectName, Paging, S3Error};

impl Mover {
    /// The notes of a folder that is stored. What is no more at the target, or other than it was
    /// left, does not count: one list of it tells.
    pub(super) async fn notes_of_put(
        &self,
        from: &Path,
        to: &Location,
    ) -> Result<Notes, MoverError> {
        let mut notes = self.notes(absolute(from), to.to_string());
        if !notes.moved.is_empty() {
            match self.still_there(&notes, to).await {
                Ok(there) => notes.moved.retain(|_, left| there.contains(&left.at)),
                Err(error) if is_refusal(&error) => {
                    self.tell(&Event::Note(&format!(
                        "what was stored before can't be listed, and so is stored again: {error}"
                    )));
                    notes.moved.clear();
                }
                Err(error) => return Err(error),
            }
        }
        // Also where nothing came of many beginnings.
        notes.shorten();
        self.tell_of_lost(&notes);
        Ok(notes)
    }

    async fn still_there(&self, notes: &Notes, to: &Location) -> Result<HashSet<Mark>, MoverError> {
        let left: HashSet<Mark> = notes.moved.values().map(|left| left.at).collect();
        let mut there = HashSet::new();
        let (mut after, mut paging) = (None, Paging::default());
        loop {
            let page = self.page(to, after.as_deref(), &mut paging).await?;
            let objects = page.objects.iter();
            let marks = objects.map(|it| of_object(&it.key, &it.etag, it.bytes));
            there.extend(marks.filter(|mark| left.contains(mark)));
            after = page.next;
            if after.is_none() {
                return Ok(there);
            }
        }
    }

    /// The notes of a folder to which objects are fetched. Whether a file is what it was left as,
    /// is looked at when its object is listed.
    pub(super) fn notes_of_get(&self, from: &Location, to: &Path) -> Notes {
        let mut notes = self.notes(from.to_string(), absolute(to));
        notes.shorten();
        self.tell_of_lost(&notes);
        notes
    }

    fn notes(&self, from: String, to: String) -> Notes {
        let endpoint = self.client.endpoint().text();
        let name = hex::encode(mark(&["folder", endpoint, &from, &to])) + ".jsonl";
        let of = format!("{from} to {to}");
        let folder = FolderLine::Folder { from, to };
        let opened = self.options.state.as_deref().map(|state| {
            block_in_place(|| {
                let notes = state.join("folders");
                let made = DirBuilder::new().recursive(true).mode(0o700).create(&notes);
                made.map_err(MoverError::local("making the folder", &notes))?;
                Notes::open(&notes.join(name), folder)
            })
        });
        match opened {
            None => Notes::none(),
            Some(Ok(notes)) => notes,
            Some(Err(error)) => {
                self.tell_of_unnoted(&error, &of);
                Notes::none()
            }
        }
    }

    /// Keeps notes until the command is done, or, where not all was moved, for the next one.
    pub(super) fn went_through(&self, notes: Arc<Notes>, is_all_moved: bool) {
        if is_all_moved {
            self.notes.lock().push(notes);
        } else {
            notes.end(false);
        }
    }

    /// That a folder has no notes. One that another process moves says nothing of others.
    fn tell_of_unnoted(&self, error: &MoverError, of: &str) {
        let note = if matches!(error, MoverError::Busy { .. }) {
            self.told.busy.store(true, Relaxed);
            format!(
                "another coffer moves {of}, and keeps the notes of that: what breaks off here will \
                 begin anew"
            )
        } else if self.told.unnoted.swap(true, Relaxed) {
            return;
        } else {
            format!(
                "{error}: what breaks off will begin anew; set XDG_STATE_HOME to a folder that can \
                 be written, and it goes on"
            )
        };
        self.tell(&Event::Note(&note));
    }

    /// That not all is noted that was moved of a folder, where that is so: once.
    pub(super) fn tell_of_lost(&self, notes: &Notes) {
        let Some(lost) = notes.lost() else {
            return;
        };
        let (told, what) = if lost.is_all {
            let what =
                "the notes of what was moved are cleared, so what breaks off will begin anew";
            (&self.told.unnoted, what)
        } else {
            let what = "what is moved from here on goes again after a break";
            (&self.told.full, what)
        };
        if !told.swap(true, Relaxed) {
            self.tell(&Event::Note(&format!("{}: {what}", lost.problem)));
        }
    }

    /// A file that goes to a name, with what the object is to have.
    fn of_file(&self, name: &ObjectName, seen: &Seen) -> Mark {
        let headers = serde_json::to_string(&self.options.headers).unwrap_or_default();
        mark(&["put", &name.key, &headers, &seen.text()])
    }

    /// Whether a command before this one has stored a file, which is told then: its length.
    pub(super) fn was_put(&self, notes: &Notes, path: &Path, name: &ObjectName) -> Option<u64> {
        if notes.moved.is_empty() {
            return None;
        }
        let seen = seen_at(path)?;
        let left = notes.moved.get(&self.of_file(name, &seen))?;
        let to = format!("s3://{}/{}", name.bucket, name.key);
        self.tell_of_kept(path.display().to_string(), to, seen.bytes, left);
        Some(seen.bytes)
    }

    /// Whether a command before this one has fetched an object, which is told then: its length.
    pub(super) fn was_fetched(
        &self,
        notes: &Notes,
        what: &str,
        object: &ListedObject,
        path: &Path,
    ) -> Option<u64> {
        let left = notes.moved.get(&of_listed(object))?;
        if seen_at(path).map(|seen| at_path(&seen)) != Some(left.at) {
            return None;
        }
        let to = path.display().to_string();
        self.tell_of_kept(what.to_owned(), to, object.bytes, left);
        Some(object.bytes)
    }

    /// Stores a file of a folder, and notes that.
    pub(super) async fn put_below(
        self: &Arc<Self>,
        (root, path): (&Path, &Path),
        name: &ObjectName,
        notes: &Notes,
    ) -> Result<u64, MoverError> {
        let source = self.settled(root, path).await?;
        let bytes = source.seen().bytes;
        let is_fresh = source.seen().is_fresh(SystemTime::now());
        self.tell(&Event::Found { files: 1, bytes });
        let of = self.of_file(name, source.seen());
        let noting = notes.of(of);
        let stored = self.put_known(source, path, name, noting.as_ref()).await;
        self.tell_of_lost(notes);
        let (moved, etag) = stored?;
        // What the server has yet to open is looked at again. What has no tag is not found again.
        if moved.stored.is_none() && !etag.is_empty() && !is_fresh {
            let at = of_object(&name.key, &etag, bytes);
            notes.note(&of, &at, moved.verified);
            self.tell_of_lost(notes);
        }
        Ok(bytes)
    }

    /// Opens a file. A large one that was changed just before is waited for, as long as a change
    /// may go unseen: what is read meanwhile can't be noted, and would go twice after a break. A
    /// small one is compared by its bytes.
    async fn settled(&self, root: &Path, path: &Path) -> Result<Source, MoverError> {
        let open = || Source::open_found(root, path, self.options.follow_links);
        let source = block_in_place(open)?;
        let pause = source.seen().pause(SystemTime::now());
        if source.seen().bytes <= PART_BYTES || pause.is_zero() {
            return Ok(source);
        }
        sleep(pause).await;
        block_in_place(open)
    }

    fn tell_of_kept(&self, from: String, to: String, bytes: u64, left: &Left) {
        self.tell(&Event::Found { files: 1, bytes });
        self.tell(&Event::Kept(bytes));
        self.tell(&Event::Done(&Moved {
            from,
            to,
            bytes,
            kept_bytes: bytes,
            checksum: None,
            verified: left.was_verified,
            checked: None,
            stored: None,
            transfer: self.transfer_of(false),
            version_id: None,
        }));
    }
}

/// Whether the server said no, for good.
fn is_refusal(error: &MoverError) -> bool {
    let MoverError::S3(error @ S3Error::Refused { .. }) = error else {
        return false;
    };
    !error.is_passing()
}

/// Notes that an object is fetched, as it was listed, to a file.
pub(super) fn note_fetched(notes: &Notes, object: &ListedObject, path: &Path, verified: bool) {
    if let Some(seen) = seen_at(path) {
        notes.note(&of_listed(object), &at_path(&seen), verified);
    }
}

/// What a file is now.
fn seen_at(path: &Path) -> Option<Seen> {
    let found = block_in_place(|| std::fs::metadata(path)).ok()?;
    found.is_file().then(|| Seen::of(&found))
}

fn at_path(seen: &Seen) -> Mark {
    mark(&["file", &seen.text()])
}

/// An object that is to be fetched.
fn of_listed(object: &ListedObject) -> Mark {
    let (bytes, etag) = (object.bytes.to_string(), object.etag.trim_matches('"'));
    mark(&["get", &object.key, etag, &object.modified, &bytes])
}

/// An object that was stored.
fn of_object(key: &str, etag: &str, bytes: u64) -> Mark {
    mark(&["object", key, etag.trim_matches('"'), &bytes.to_string()])
}

fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_files_are_told_from_others() {
        let one = of_object("a", "\"e\"", 1);
        assert_eq!(one, of_object("a", "e", 1));
        for other in [
            of_object("b", "e", 1),
            of_object("a", "f", 1),
            of_object("a", "e", 2),
        ] {
            assert_ne!(one, other);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let before = at_path(&seen_at(&path).unwrap());
        assert_eq!(at_path(&seen_at(&path).unwrap()), before);
        std::fs::write(folder.path().join("other"), "two").unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        assert_ne!(at_path(&seen_at(&path).unwrap()), before);
        assert!(seen_at(folder.path()).is_none());
    }

    #[test]
    fn what_was_fetched_is_known_by_its_list_and_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let object = ListedObject {
            key: "k".to_owned(),
            bytes: 3,
            etag: "\"e\"".to_owned(),
            modified: "2026".to_owned(),
        };
        let line = || FolderLine::Folder {
            from: "s3://b/".to_owned(),
            to: "/f".to_owned(),
        };
        let noted = folder.path().join("notes");
        note_fetched(&Notes::open(&noted, line()).unwrap(), &object, &path, true);
        let notes = Notes::open(&noted, line()).unwrap();
        let left = Left {
            at: at_path(&seen_at(&path).unwrap()),
            was_verified: true,
        };
        assert_eq!(notes.moved.get(&of_listed(&object)), Some(&left));
        let replaced = ListedObject {
            modified: "2027".to_owned(),
            ..object
        };
        assert_eq!(notes.moved.get(&of_listed(&replaced)), None);
    }
}
