//! Names, each with its versions, in the order of the names' bytes: of a bucket or of a folder.

mod hidden;

mod order;

mod listed;

#[cfg(test)]
mod tests;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::task::block_in_place;
use walkdir::WalkDir;

use crate::migrate::error::MigrateError;
use crate::mover::{MoverError, Seen, is_unfinished, mtime_text};
use crate::s3::{ListedObject, ListedVersion};

pub(super) use self::hidden::Hidden;
pub(super) use self::listed::Listed;
pub(super) use self::order::Kinds;

/// A name, and what there is under it.
#[derive(Debug, Default)]
pub(super) struct Name {
    pub(super) key: String,
    /// Versions and delete markers, the oldest first.
    pub(super) versions: Vec<ListedVersion>,
    /// Why their order can't be told; then they stand as they were listed.
    pub(super) disorder: Option<MigrateError>,
}

/// What comes next of a list.
pub(super) enum Next {
    Name(Name),
    /// A file that is none that can be moved.
    Problem(Problem),
    /// A path that is passed over, as was asked for.
    PassedOver(Option<String>),
    /// A folder with nothing in it, or of another file system than the one around it.
    Folder(Folder),
    /// The folder of ledgers, which change while they are read: where it is, and its name.
    Ledgers(PathBuf, Option<String>),
}

/// A folder that may only seem to be emptied, now or later.
pub(super) struct Folder {
    pub(super) key: String,
    pub(super) is_empty: bool,
    pub(super) is_mount: bool,
}

/// What is at the source, and does not come.
pub(super) struct Problem {
    pub(super) what: String,
    /// Its name in the bucket, if it could have one. Nothing is known of what lies below.
    pub(super) hides: Option<String>,
    pub(super) error: MigrateError,
}

/// A list.
pub(super) enum Names {
    /// Of nothing.
    None,
    Bucket(Box<Listed>),
    Folder(Box<Files>),
}

impl Names {
    pub(super) async fn next(&mut self) -> Result<Option<Next>, MigrateError> {
        match self {
            Self::None => Ok(None),
            Self::Bucket(listed) => Ok(listed.next().await?.map(Next::Name)),
            Self::Folder(files) => block_in_place(|| files.next_in_order()),
        }
    }
}

fn current(object: ListedObject) -> ListedVersion {
    ListedVersion {
        object,
        version_id: "null".to_owned(),
        is_latest: true,
        is_marker: false,
    }
}

/// What symbolic links stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// What they point to.
    Follow,
    /// Nothing that comes along, which is told.
    Tell,
    /// Nothing at all.
    PassOver,
}

/// The list of the files below a folder.
pub(super) struct Files {
    root: PathBuf,
    links: Links,
    /// Whether folders with nothing in them are told.
    tells_empty: bool,
    /// The folder of ledgers, by device and inode.
    ledgers: Option<(u64, u64)>,
    walk: walkdir::IntoIter,
    /// The last name.
    last: Option<String>,
}

impl Files {
    /// All files below a folder, but those in this folder of ledgers, and folders that may only
    /// seem to be emptied: of those with nothing in them, only if that is asked for. A symbolic
    /// link is a problem, unless it is to be followed, or to be passed over.
    pub(super) fn new(root: &Path, links: Links, ledgers: &Path, tells_empty: bool) -> Self {
        // As names of objects are ordered, a folder stands where its slash does.
        let follows = links == Links::Follow;
        let walk = WalkDir::new(root).follow_links(follows);
        let walk = walk.sort_by(move |a, b| {
            let name = |entry: &walkdir::DirEntry| {
                let mut name = entry.file_name().as_encoded_bytes().to_vec();
                // Links are sorted before they are followed.
                let leads_to_folder =
                    || follows && entry.path_is_symlink() && entry.path().is_dir();
                if entry.file_type().is_dir() || leads_to_folder() {
                    name.push(b'/');
                }
                name
            };
            name(a).cmp(&name(b))
        });
        Self {
            root: root.to_owned(),
            links,
            tells_empty,
            ledgers: std::fs::metadata(ledgers)
                .ok()
                .map(|it| (it.dev(), it.ino())),
            walk: walk.into_iter(),
            last: None,
        }
    }

    /// What comes next. A name that comes too late ends it, for what the target has of that name
    /// was taken for gone: a link may lead elsewhere by now than when it was sorted.
    fn next_in_order(&mut self) -> Result<Option<Next>, MigrateError> {
        let next = self.next();
        if let Some(Next::Name(name)) = &next {
            if self.last.as_ref().is_some_and(|last| *last >= name.key) {
                return Err(MigrateError::Disorder { side: "the source" });
            }
            self.last = Some(name.key.clone());
        }
        Ok(next)
    }

    fn next(&mut self) -> Option<Next> {
        loop {
            let entry = match self.walk.next()? {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(&self.root).to_owned();
                    let source = error
                        .into_io_error()
                        .unwrap_or_else(|| std::io::Error::other("links go in a circle"));
                    let error = MoverError::local("reading", &path)(source);
                    return Some(self.problem(&path, error.into()));
                }
            };
            // The folder itself may be named by a link.
            let is_folder = entry.depth() == 0 || entry.file_type().is_dir();
            let path = entry.path();
            if is_folder {
                if self.is_of_ledgers(&entry) {
                    self.walk.skip_current_dir();
                    return Some(Next::Ledgers(path.to_owned(), self.key(path)));
                }
                if let Some(folder) = self.folder(&entry) {
                    return Some(Next::Folder(folder));
                }
                continue;
            }
            if is_unfinished(entry.file_name()) {
                return Some(self.problem(path, MigrateError::Unfinished));
            }
            match self.links {
                Links::Tell if entry.path_is_symlink() => {
                    return Some(self.problem(path, MigrateError::Link));
                }
                Links::PassOver if entry.path_is_symlink() => {
                    return Some(Next::PassedOver(self.key(path)));
                }
                _ => {}
            }
            return Some(match self.named(path) {
                Ok(name) => Next::Name(name),
                Err(error) => self.problem(path, error),
            });
        }
    }

    /// A folder, if it may only seem to be emptied. What can't be asked of it is told when it is
    /// read.
    fn folder(&self, entry: &walkdir::DirEntry) -> Option<Folder> {
        let path = entry.path();
        let device = |path: &Path| std::fs::metadata(path).ok().map(|it| it.dev());
        let around = if entry.depth() == 0 {
            path.canonicalize().ok()?.parent().and_then(device)
        } else {
            path.parent().and_then(device)
        };
        let is_mount = around.is_some() && device(path) != around;
        let has_none = || std::fs::read_dir(path).is_ok_and(|mut it| it.next().is_none());
        let is_empty = self.tells_empty && entry.depth() > 0 && has_none();
        let key = self.key(path).filter(|_| is_mount || is_empty)?;
        Some(Folder {
            key,
            is_empty,
            is_mount,
        })
    }

    fn is_of_ledgers(&self, entry: &walkdir::DirEntry) -> bool {
        let is = |ledgers| { entry.metadata() }.is_ok_and(|it| (it.dev(), it.ino()) == ledgers);
        entry.depth() > 0 && self.ledgers.is_some_and(is)
    }

    fn problem(&self, path: &Path, error: MigrateError) -> Next {
        Next::Problem(Problem {
            what: path.display().to_string(),
            hides: self.key(path),
            error,
        })
    }

    /// The name that a path has in the bucket; of the folder itself it is empty.
    fn key(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        parts.map(|parts| parts.join("/"))
    }

    fn named(&self, path: &Path) -> Result<Name, MigrateError> {
        let unsuitable = |problem| MoverError::Unsuitable {
            path: path.to_owned(),
            problem,
        };
        let metadata = std::fs::metadata(path).map_err(MoverError::local("reading", path))?;
        if !metadata.is_file() {
            return Err(unsuitable("is no file").into());
        }
        let problem = "has a name that is no UTF-8, as names of objects are";
        let key = self.key(path).ok_or_else(|| unsuitable(problem))?;
        let modified = metadata.modified().map(mtime_text).unwrap_or_default();
        Ok(Name {
            key: key.clone(),
            versions: vec![current(ListedObject {
                key,
                bytes: metadata.size(),
                // Of a file, this names its content: with the time of the change, which no
                // program can set back.
                etag: Seen::of(&metadata).text(),
                modified,
            })],
            disorder: None,
        })
    }
}
