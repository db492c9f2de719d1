//! A folder as a store: as `object_store` has it, but for links, which it follows nowhere.
//!
//! What is removed here is what a list gave, and who can write to the folder could have a link lead
//! from it to any other. So lists refuse a folder that has links below its root, puts and reads
//! look for them, and a removal goes down folder by folder and opens no link, so that none can come
//! in between. Lists also show the files that a put leaves that was ended half-way, `NAME#N`: no
//! name of a copy's has a `#`, so none is taken for one.

use std::fmt;
use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};

use futures::future::ready;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::limits::{LISTED_AT_ONCE, REMOVED_AT_ONCE};

/// A folder that copies are in.
#[derive(Debug)]
pub(crate) struct Folder {
    inner: LocalFileSystem,
    root: Root,
}

/// Where it is, and the number of its inode: it goes away with its disk, and what lies below the
/// mount point then, or would be made there, is no place.
#[derive(Clone, Debug)]
struct Root {
    path: PathBuf,
    inode: u64,
}

impl Root {
    fn is(&self, found: &fs::Metadata) -> Result<()> {
        if found.ino() == self.inode {
            return Ok(());
        }
        Err(gone())
    }

    /// Whether it is still there.
    fn check(&self) -> Result<()> {
        self.is(&fs::metadata(&self.path).map_err(|_| gone())?)
    }

    /// Opens it, if it is still there.
    fn open(&self) -> Result<File> {
        let opened = File::open(&self.path).map_err(|_| gone())?;
        self.is(&opened.metadata().map_err(failed)?)?;
        Ok(opened)
    }
}

impl Folder {
    /// A folder that is there. It may be reached by a link itself.
    pub(crate) fn open(path: &FilePath) -> Result<Self> {
        let inner = LocalFileSystem::new_with_prefix(path)?;
        let path = path.canonicalize().map_err(failed)?;
        let inode = fs::metadata(&path).map_err(failed)?.ino();
        let root = Root { path, inode };
        let inner = inner.with_fsync(true);
        Ok(Self { inner, root })
    }

    /// What was put counts only in the folder that it was to be in.
    async fn still_here<T>(&self, put: T) -> Result<T> {
        let root = self.root.clone();
        blocking(move || root.check()).await?;
        Ok(put)
    }

    async fn refuse_links(&self, location: &Path) -> Result<()> {
        let (root, location) = (self.root.clone(), location.clone());
        blocking(move || refuse_links(&root, &location)).await
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "folder {}", self.root.path.display())
    }
}

/// An upload in parts, which tells why its end failed: who ends one gives it up then, and that
/// would say that there is none any more.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    root: Root,
    is_ended: bool,
}

#[async_trait::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.is_ended = true;
        let put = self.inner.complete().await?;
        let root = self.root.clone();
        blocking(move || root.check()).await?;
        Ok(put)
    }

    async fn abort(&mut self) -> Result<()> {
        if self.is_ended {
            return Ok(());
        }
        self.inner.abort().await
    }
}

fn failed(error: io::Error) -> Error {
    Error::Generic {
        store: "folder",
        source: error.into(),
    }
}

fn gone() -> Error {
    let problem = "the folder is not there any more: is its disk mounted?";
    failed(io::Error::other(problem))
}

fn link(location: &dyn fmt::Display) -> Error {
    let problem = format!("{location} in it is a link, which no copy has: remove the link");
    failed(io::Error::other(problem))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work).await?
}

/// Refuses what is reached by a link, or is one; and all where the folder itself is gone.
fn refuse_links(root: &Root, location: &Path) -> Result<()> {
    root.check()?;
    let mut path = root.path.clone();
    for part in location.parts() {
        path.push(part.as_ref());
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Ok(found) if found.is_symlink() => return Err(link(location)),
            found => found.map_err(failed)?,
        };
    }
    Ok(())
}

/// Removes a file, and the folders above it that are empty then.
fn remove(root: &Root, location: &Path) -> Result<()> {
    let at = |error: Errno| match error {
        Errno::ENOENT => Error::NotFound {
            path: location.to_string(),
            source: io::Error::from(error).into(),
        },
        Errno::ELOOP | Errno::ENOTDIR => link(location),
        error => failed(error.into()),
    };
    let parts: Vec<_> = location.parts().collect();
    let Some((name, folders)) = parts.split_last() else {
        return Err(at(Errno::ENOENT));
    };
    let mut opened: Vec<OwnedFd> = vec![root.open()?.into()];
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_RDONLY;
    for folder in folders {
        let above = opened[opened.len() - 1].as_fd();
        let folder = openat(above, folder.as_ref(), flags, Mode::empty()).map_err(at)?;
        opened.push(folder);
    }
    let last = opened[opened.len() - 1].as_fd();
    unlinkat(last, name.as_ref(), UnlinkatFlags::NoRemoveDir).map_err(at)?;
    File::from(last.try_clone_to_owned().map_err(failed)?)
        .sync_all()
        .map_err(failed)?;
    for (above, folder) in opened.iter().zip(folders).rev() {
        // One that is not empty stays, and all above it.
        if unlinkat(above, folder.as_ref(), UnlinkatFlags::RemoveDir).is_err() {
            break;
        }
    }
    Ok(())
}

/// What a folder has; nothing, if it is not there.
fn entries(folder: &FilePath) -> Result<Option<fs::ReadDir>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        entries => Ok(Some(entries.map_err(failed)?)),
    }
}

/// What is listed of it.
enum Found {
    Folder(PathBuf, Path),
    File(ObjectMeta),
    Other,
}

fn found(root: &FilePath, entry: &DirEntry) -> Result<Found> {
    let path = entry.path();
    let below = path.strip_prefix(root).ok().and_then(FilePath::to_str);
    // No name of a copy's.
    let Some(location) = below.and_then(|below| Path::parse(below).ok()) else {
        return Ok(Found::Other);
    };
    let kind = entry.file_type().map_err(failed)?;
    if kind.is_symlink() {
        return Err(link(&location));
    }
    if kind.is_dir() {
        return Ok(Found::Folder(path, location));
    }
    let metadata = match entry.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Other),
        metadata => metadata.map_err(failed)?,
    };
    if !metadata.is_file() {
        return Ok(Found::Other);
    }
    Ok(Found::File(ObjectMeta {
        location,
        last_modified: metadata.modified().map_err(failed)?.into(),
        size: metadata.len(),
        e_tag: None,
        version: None,
    }))
}

/// Sends all files below a folder, until it is not listened to any more.
fn walk(root: &Root, from: &Path, to: &mpsc::Sender<Result<ObjectMeta>>) -> Result<()> {
    refuse_links(root, from)?;
    let mut waiting = vec![root.path.join(from.as_ref())];
    while let Some(folder) = waiting.pop() {
        for entry in entries(&folder)?.into_iter().flatten() {
            match found(&root.path, &entry.map_err(failed)?)? {
                Found::Folder(path, _) => waiting.push(path),
                Found::File(meta) => {
                    if to.blocking_send(Ok(meta)).is_err() {
                        return Ok(());
                    }
                }
                Found::Other => {}
            }
        }
    }
    Ok(())
}

#[async_trait::async_trait]
impl ObjectStore for Folder {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.refuse_links(location).await?;
        let put = self.inner.put_opts(location, payload, options).await?;
        self.still_here(put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.refuse_links(location).await?;
        let upload = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(Upload {
            inner: upload,
            root: self.root.clone(),
            is_ended: false,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.refuse_links(location).await?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let root = self.root.clone();
        let removed = locations.map(move |location| {
            let root = root.clone();
            async move {
                let location = location?;
                blocking(move || remove(&root, &location).map(|()| location)).await
            }
        });
        removed.buffered(REMOVED_AT_ONCE).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (root, from) = (self.root.clone(), prefix.cloned().unwrap_or_default());
        let (to, listed) = mpsc::channel(LISTED_AT_ONCE);
        let walked = async move {
            let last = to.clone();
            let walked = blocking(move || walk(&root, &from, &to)).await;
            if let Err(error) = walked {
                // Who does not listen any more is told nothing.
                let _ = last.send(Err(error)).await;
            }
        };
        let listed = stream::unfold(listed, async |mut listed| {
            Some((listed.recv().await?, listed))
        });
        // The walk goes on as the list is read, and gives nothing itself.
        let walked = walked.map(|()| None).into_stream();
        let both = stream::select(walked, listed.map(Some));
        both.filter_map(ready).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (root, from) = (self.root.clone(), prefix.cloned().unwrap_or_default());
        let mut listed = ListResult {
            common_prefixes: Vec::new(),
            objects: Vec::new(),
            extensions: Default::default(),
        };
        blocking(move || {
            refuse_links(&root, &from)?;
            let folder = root.path.join(from.as_ref());
            for entry in entries(&folder)?.into_iter().flatten() {
                match found(&root.path, &entry.map_err(failed)?)? {
                    Found::Folder(_, location) => listed.common_prefixes.push(location),
                    Found::File(meta) => listed.objects.push(meta),
                    Found::Other => {}
                }
            }
            Ok(listed)
        })
        .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.refuse_links(from).await?;
        self.refuse_links(to).await?;
        self.inner.copy_opts(from, to, options).await?;
        self.still_here(()).await
    }
}
