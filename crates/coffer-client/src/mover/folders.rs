//! Folders: names of files to names of objects and back, many files at once. One that fails is
//! told, and the others go on. What was moved is noted, until all of it is.

mod below;
mod paths;
mod recent;

mod going_on;

mod counts;

mod crowd;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::block_in_place;
use walkdir::{DirEntry, WalkDir};

pub use self::counts::Counts;

use self::below::make_folders;
use self::counts::EmptyFolders;
use self::crowd::Crowd;
use self::going_on::note_fetched;
use self::paths::{key_of, path_below, path_of};
use self::recent::Recent;
use crate::limits::PART_BYTES;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::journal::Notes;
use crate::mover::location::Location;
use crate::mover::target::{check, is_unfinished};
use crate::s3::{ListedObject, ObjectName, Paging};

impl Mover {
    /// Stores these files in one bucket, many at once. One that fails is told and counted.
    ///
    /// # Errors
    /// What would fail all of them.
    pub async fn put_files(
        self: &Arc<Self>,
        files: Vec<(PathBuf, ObjectName)>,
    ) -> Result<Counts, MoverError> {
        let mut crowd = Crowd::of_one_bucket(self, &first_of(files.iter().map(|it| &it.1)));
        for (path, name) in files {
            let (what, mover) = (path.display().to_string(), Arc::clone(self));
            let work = async move { Ok(mover.put(&path, &name).await?.bytes) };
            if !crowd.add(what, work).await {
                break;
            }
        }
        crowd.all().await
    }

    /// Fetches these objects, many at once. One that fails is told and counted.
    ///
    /// # Errors
    /// What would fail all of them.
    pub async fn fetch_files(
        self: &Arc<Self>,
        objects: Vec<(ObjectName, PathBuf)>,
    ) -> Result<Counts, MoverError> {
        let mut crowd = Crowd::new(self, &first_of(objects.iter().map(|it| &it.0)));
        for (name, path) in objects {
            let what = format!("s3://{}/{}", name.bucket, name.key);
            let mover = Arc::clone(self);
            let work = async move { Ok(mover.get(&name, &path).await?.bytes) };
            if !crowd.add(what, work).await {
                break;
            }
        }
        crowd.all().await
    }

    /// Stores all files below a folder, under names that begin with `to`.
    ///
    /// # Errors
    /// When the folder can't be read at all, and what would fail all of it; all else is told and
    /// counted.
    pub async fn put_folder(
        self: &Arc<Self>,
        from: &Path,
        to: &Location,
    ) -> Result<Counts, MoverError> {
        let metadata = std::fs::metadata(from).map_err(MoverError::local("reading", from))?;
        if !metadata.is_dir() {
            return Err(MoverError::Unsuitable {
                path: from.to_owned(),
                problem: "is no folder: leave out -r",
            });
        }
        let notes = Arc::new(self.notes_of_put(from, to).await?);
        let counts = self.put_all(from, to, &notes).await;
        let counts = counts.map_err(|error| notes.of_error(error));
        self.went_through(
            notes,
            counts.as_ref().is_ok_and(|counts| counts.failed == 0),
        );
        counts
    }

    async fn put_all(
        self: &Arc<Self>,
        from: &Path,
        to: &Location,
        notes: &Arc<Notes>,
    ) -> Result<Counts, MoverError> {
        let mut crowd = Crowd::of_one_bucket(self, to);
        let walk = WalkDir::new(from).follow_links(self.options.follow_links);
        let mut walk = walk.into_iter();
        let mut folders = EmptyFolders::default();
        while let Some(entry) = block_in_place(|| walk.next()) {
            folders.see(&entry);
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(from).to_owned();
                    let source = error
                        .into_io_error()
                        .unwrap_or_else(|| std::io::Error::other("links go in a circle"));
                    let error = MoverError::local("reading", &path)(source);
                    crowd.failed(path.display().to_string(), &error);
                    continue;
                }
            };
            // The folder itself may be named by a link.
            if entry.depth() == 0 || entry.file_type().is_dir() {
                continue;
            }
            if let Some(why) = self.passes_over(&entry) {
                let note = format!("{} is passed over: {why}", entry.path().display());
                self.tell(&Event::Note(&note));
                continue;
            }
            let path = entry.into_path();
            let what = path.display().to_string();
            let Some(key) = key_of(&path, from, &to.key) else {
                let problem = "has a name that is no UTF-8, as names of objects are";
                crowd.failed(what, &MoverError::Unsuitable { path, problem });
                continue;
            };
            let name = ObjectName::new(&to.bucket, key);
            if let Some(bytes) = self.was_put(notes, &path, &name) {
                crowd.was_moved(bytes).await;
                continue;
            }
            let (mover, notes) = (Arc::clone(self), Arc::clone(notes));
            let root = from.to_owned();
            let work = async move { mover.put_below((&root, &path), &name, &notes).await };
            if !crowd.add(what, work).await {
                break;
            }
        }
        crowd.counts.empty_folders = folders.count();
        crowd.all().await
    }

    /// Why a file is not stored with its folder, if it is not.
    fn passes_over(&self, entry: &DirEntry) -> Option<&'static str> {
        if is_unfinished(entry.file_name()) {
            return Some("it is of an unfinished coffer get");
        }
        let is_link = entry.path_is_symlink() && !self.options.follow_links;
        is_link.then_some("it is a symbolic link; --follow-links stores what links point to")
    }

    /// Fetches all objects whose names begin with that of `from`, to files below a folder.
    ///
    /// # Errors
    /// When they can't be listed, and what would fail all of them; all else is told and counted.
    pub async fn fetch_folder(
        self: &Arc<Self>,
        from: &Location,
        to: &Path,
    ) -> Result<Counts, MoverError> {
        let notes = Arc::new(self.notes_of_get(from, to));
        let counts = self.fetch_all(from, to, &notes).await;
        let counts = counts.map_err(|error| notes.of_error(error));
        self.went_through(
            notes,
            counts.as_ref().is_ok_and(|counts| counts.failed == 0),
        );
        counts
    }

    async fn fetch_all(
        self: &Arc<Self>,
        from: &Location,
        to: &Path,
        notes: &Arc<Notes>,
    ) -> Result<Counts, MoverError> {
        let mut crowd = Crowd::new(self, from);
        let (mut after, mut paging) = (None, Paging::default());
        let (mut has_any, mut recent) = (false, Recent::default());
        loop {
            let page = self.page(from, after.as_deref(), &mut paging).await?;
            has_any |= !page.objects.is_empty();
            recent.begin_page();
            for object in page.objects {
                let what = format!("s3://{}/{}", from.bucket, object.key);
                // One that is named twice is one object, and comes once.
                if !recent.is_new(&object.key) || crowd.is_under_way(&what) {
                    continue;
                }
                let Some(below) = path_of(&object, &from.key) else {
                    let problem = "is not below the folder, or no path: fetch it by itself";
                    let path = PathBuf::from(&object.key);
                    crowd.failed(what, &MoverError::Unsuitable { path, problem });
                    continue;
                };
                let path = path_below(to, &below);
                if let Some(bytes) = self.was_fetched(notes, &what, &object, &path) {
                    crowd.was_moved(bytes).await;
                    continue;
                }
                let bytes = object.bytes;
                self.tell(&Event::Found { files: 1, bytes });
                let (mover, notes) = (Arc::clone(self), Arc::clone(notes));
                let name = ObjectName::new(&from.bucket, &object.key);
                let to = to.to_owned();
                let work = async move {
                    let place = (to.as_path(), below.as_path());
                    mover.fetch_below(&name, &object, place, &notes).await
                };
                if !crowd.add(what, work).await {
                    return crowd.all().await;
                }
            }
            after = page.next;
            if after.is_none() {
                return crowd.all_below(from, has_any).await;
            }
        }
    }

    /// Fetches an object to a file whose folders may have to be made. One that was listed to be of
    /// one piece is asked for at once: the answer tells what it is.
    async fn fetch_below(
        self: &Arc<Self>,
        name: &ObjectName,
        listed: &ListedObject,
        (root, below): (&Path, &Path),
        notes: &Notes,
    ) -> Result<u64, MoverError> {
        let is_folder = name.key.ends_with('/');
        if is_folder && listed.bytes > 0 {
            return Err(MoverError::Unsuitable {
                path: PathBuf::from(&name.key),
                problem: "has bytes, and a name that ends with / can't be a file's: fetch it by \
                          itself, to a file that you name",
            });
        }
        let folder = if is_folder {
            Some(below)
        } else {
            below.parent()
        };
        let folder = block_in_place(|| make_folders(root, folder.unwrap_or(Path::new(""))))?;
        if is_folder {
            return Ok(0);
        }
        let to = &path_below(root, below);
        let path = &folder.path_of(below.file_name().unwrap_or_default())?;
        if path.is_dir() {
            return Err(MoverError::Unsuitable {
                path: to.clone(),
                problem: "is a folder: an object has the name of one that others are in",
            });
        }
        block_in_place(|| check(path)).map_err(|error| folder.told(error))?;
        let answer = if listed.bytes <= PART_BYTES {
            Some(self.ask_for_all(name).await?)
        } else {
            None
        };
        // One that was replaced since it was listed, or whose answer is odd, goes as any other.
        let (head, first) = match answer.map(|answer| answer.of_listed(listed)) {
            Some(Ok((head, answer))) => (head, Some(answer)),
            _ => (self.head(name).await?, None),
        };
        let moved = self.fetch_known(name, &head, (path, to), first).await;
        let moved = moved.map_err(|error| folder.told(error))?;
        if head.check_listed(listed).is_ok() {
            note_fetched(notes, listed, path, moved.verified);
            self.tell_of_lost(notes);
        }
        Ok(moved.bytes)
    }

    /// Has the server copy all objects whose names begin with that of `from`.
    ///
    /// # Errors
    /// When they can't be listed, or the copies would lie among what is copied, or what is copied
    /// among them: then there would be no end of it, or copies would replace what is to be copied
    /// yet. And what would fail all of them; all else is told and counted.
    pub async fn copy_folder(
        self: &Arc<Self>,
        from: &Location,
        to: &Location,
    ) -> Result<Counts, MoverError> {
        if from.holds(to) {
            return Err(MoverError::Location {
                text: to.to_string(),
                problem: "lies in what is copied, so the copies would be copied as well, without \
                          an end: name a place outside of it",
            });
        }
        if to.holds(from) {
            return Err(MoverError::Location {
                text: to.to_string(),
                problem: "holds what is copied, so copies could replace what is not copied yet: \
                          name a place beside it",
            });
        }
        let mut crowd = Crowd::of_one_bucket(self, to);
        let (mut after, mut paging) = (None, Paging::default());
        let (mut has_any, mut recent) = (false, Recent::default());
        loop {
            let page = self.page(from, after.as_deref(), &mut paging).await?;
            has_any |= !page.objects.is_empty();
            recent.begin_page();
            for object in page.objects {
                let what = format!("s3://{}/{}", from.bucket, object.key);
                if !recent.is_new(&object.key) || crowd.is_under_way(&what) {
                    continue;
                }
                let rest = object.key.strip_prefix(&from.key).unwrap_or(&object.key);
                let source = ObjectName::new(&from.bucket, &object.key);
                let target = ObjectName::new(&to.bucket, format!("{}{rest}", to.key));
                let bytes = object.bytes;
                self.tell(&Event::Found { files: 1, bytes });
                let mover = Arc::clone(self);
                let listed = object.etag;
                let work = async move {
                    let moved = mover.copy_known(&source, &target, Some(&listed)).await?;
                    Ok(moved.bytes)
                };
                if !crowd.add(what, work).await {
                    return crowd.all().await;
                }
            }
            after = page.next;
            if after.is_none() {
                return crowd.all_below(from, has_any).await;
            }
        }
    }
}

/// The bucket of the first of several objects.
fn first_of<'a>(mut names: impl Iterator<Item = &'a ObjectName>) -> Location {
    Location {
        bucket: names
            .next()
            .map_or_else(String::new, |name| name.bucket.clone()),
        key: String::new(),
    }
}
