//! Where a migration comes from.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::block_in_place;

use crate::address::{decoded, has_secret, without_secret};
use crate::migrate::MigrationOptions;
use crate::migrate::error::MigrateError;
use crate::s3::Client;

/// A source as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceUrl {
    /// An S3 service, and perhaps one of its buckets.
    Service {
        /// Its address.
        endpoint: String,
        /// The bucket.
        bucket: Option<String>,
    },
    /// A folder.
    Folder(PathBuf),
}

/// What an address may not have in it.
const KEY: &str = "access keys are not written into addresses: name a profile by --source-profile";

impl std::str::FromStr for SourceUrl {
    type Err = MigrateError;

    fn from_str(text: &str) -> Result<Self, MigrateError> {
        let wrong = |problem| MigrateError::Source {
            text: without_secret(text),
            problem,
        };
        if text.is_empty() {
            return Err(MigrateError::Source {
                text: "SOURCE".to_owned(),
                problem: "it is empty: write https://HOST:PORT for all buckets of an S3 server, \
                          https://HOST:PORT/BUCKET for one, or a folder",
            });
        }
        if let Some(path) = text.strip_prefix("file://") {
            if path.is_empty() {
                return Err(wrong(
                    "write file:// and a folder, such as file:///srv/data",
                ));
            }
            let host = path.split('/').next().unwrap_or_default();
            if decoded(host).contains('@') || has_secret(path) {
                return Err(wrong(KEY));
            }
            return Ok(Self::Folder(PathBuf::from(path)));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            if has_secret(text) {
                let problem = "access keys and signatures are not written into addresses: write \
                               https://HOST:PORT, and name a profile by --source-profile; a folder \
                               of such a name is written with ./ before it";
                return Err(wrong(problem));
            }
            return Ok(Self::Folder(PathBuf::from(text)));
        };
        if !matches!(scheme, "http" | "https") {
            let problem = "write https://HOST:PORT for all buckets of an S3 server, \
                           https://HOST:PORT/BUCKET for one, or file://FOLDER";
            return Err(wrong(problem));
        }
        if decoded(rest).contains('@') {
            return Err(wrong(KEY));
        }
        if decoded(rest).contains(['?', '#']) {
            let problem = "an address with a query, as a presigned one has, opens no bucket: write \
                           https://HOST:PORT/BUCKET, and name a profile by --source-profile";
            return Err(wrong(problem));
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let bucket = path.trim_end_matches('/');
        if bucket.contains('/') {
            return Err(wrong("name a bucket alone: its names come all together"));
        }
        Ok(Self::Service {
            endpoint: format!("{scheme}://{host}"),
            bucket: Some(bucket.to_owned()).filter(|bucket| !bucket.is_empty()),
        })
    }
}

/// Where a migration comes from.
#[derive(Clone)]
pub enum Origin {
    /// An S3 service.
    Service {
        /// It.
        client: Arc<Client>,
        /// The one bucket that is meant.
        bucket: Option<String>,
    },
    /// A folder of folders, each of which becomes a bucket.
    Folders(PathBuf),
    /// A folder that becomes a bucket.
    Folder(PathBuf),
}

/// The buckets of a source.
pub(super) struct Found {
    pub(super) buckets: Vec<String>,
    /// Files that lie in none.
    pub(super) strays: Vec<PathBuf>,
}

impl Origin {
    /// The buckets that are meant.
    pub(super) async fn buckets(&self, options: &MigrationOptions) -> Result<Found, MigrateError> {
        let mut strays = Vec::new();
        if let Self::Folder(root) | Self::Folders(root) = self {
            block_in_place(|| check(root))?;
        }
        if let Self::Folder(root) = self
            && !options.buckets.is_empty()
        {
            return Err(MigrateError::Source {
                text: root.display().to_string(),
                problem: "goes to the target as a whole: name the folder below it as the source, \
                          in place of --bucket",
            });
        }
        let mut all = match self {
            Self::Service { client, bucket } => match bucket {
                Some(bucket) => vec![bucket.clone()],
                None => { client.list_buckets().await?.into_iter() }
                    .map(|bucket| bucket.name)
                    .collect(),
            },
            Self::Folder(_) => vec![String::new()],
            Self::Folders(root) => {
                let (folders, files) = block_in_place(|| first_level(root))?;
                strays = files;
                if folders.is_empty() {
                    return Err(MigrateError::NoFolders);
                }
                folders
            }
        };
        if options.buckets.is_empty() {
            return Ok(Found {
                buckets: all,
                strays,
            });
        }
        if let Some(bucket) = { options.buckets.iter() }.find(|named| !all.contains(named)) {
            let bucket = bucket.clone();
            return Err(MigrateError::NoBucket { bucket });
        }
        all.retain(|bucket| options.buckets.contains(bucket));
        Ok(Found {
            buckets: all,
            strays: Vec::new(),
        })
    }

    /// The service, if it is one.
    pub(super) fn client(&self) -> Option<Arc<Client>> {
        match self {
            Self::Service { client, .. } => Some(Arc::clone(client)),
            Self::Folders(_) | Self::Folder(_) => None,
        }
    }

    /// The folder of a bucket.
    pub(super) fn folder(&self, bucket: &str) -> Option<PathBuf> {
        match self {
            Self::Service { .. } => None,
            Self::Folders(root) => Some(root.join(bucket)),
            Self::Folder(root) => Some(root.clone()),
        }
    }

    /// Sees whether the folder of a bucket is there and can be read.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_folder(&self, bucket: &str) -> Result<(), MigrateError> {
        let Some(folder) = self.folder(bucket) else {
            return Ok(());
        };
        let listed = block_in_place(|| std::fs::read_dir(&folder));
        listed.map(drop).map_err(|error| unread(&folder, error))
    }

    /// Whether a file, which need not be there yet, lies in a folder that is to come.
    pub(super) fn has_below(&self, path: &Path) -> bool {
        let root = match self {
            Self::Service { .. } => return false,
            Self::Folders(root) | Self::Folder(root) => root,
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match (root.canonicalize(), folder.canonicalize()) {
            (Ok(root), Ok(folder)) => folder.starts_with(root),
            _ => false,
        }
    }

    /// How it, and a bucket of it, is told.
    pub(super) fn place(&self, bucket: &str) -> String {
        match self {
            Self::Service { client, .. } => format!("{}/{bucket}", client.endpoint().text()),
            Self::Folders(root) => root.join(bucket).display().to_string(),
            Self::Folder(root) => root.display().to_string(),
        }
    }
}

/// Whether what is to be a folder is something else. What is missing is told when it is read.
fn check(root: &Path) -> Result<(), MigrateError> {
    match std::fs::metadata(root) {
        Ok(there) if !there.is_dir() => Err(MigrateError::Source {
            text: root.display().to_string(),
            problem: "is no folder: `coffer put FILE s3://BUCKET/NAME` stores a file",
        }),
        _ => Ok(()),
    }
}

/// That a folder can't be read. A place of one that is not there may be meant for a server.
fn unread(folder: &Path, error: io::Error) -> MigrateError {
    let error = match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "there is none of this name; name one, or an S3 server as https://HOST:PORT",
        ),
        _ => error,
    };
    MigrateError::local("reading the folder", folder)(error)
}

fn first_level(root: &Path) -> Result<(Vec<String>, Vec<PathBuf>), MigrateError> {
    let failed = |error| unread(root, error);
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some(name) if path.is_dir() => folders.push(name.to_owned()),
            _ => files.push(path),
        }
    }
    folders.sort_unstable();
    files.sort_unstable();
    Ok((folders, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_that_is_to_come() {
        let folder = tempfile::tempdir().unwrap();
        let (root, beside) = (folder.path().join("a"), folder.path().join("ab"));
        for path in [root.join("deep"), beside.clone()] {
            std::fs::create_dir_all(path).unwrap();
        }
        let origin = Origin::Folder(root.clone());
        for within in ["report", "deep/report", "deep/../report"] {
            assert!(origin.has_below(&root.join(within)), "{within}");
        }
        assert!(!origin.has_below(&beside.join("report")));
        assert!(!origin.has_below(&root.join("../report")));
        assert!(!origin.has_below(&root.join("none/report")));
    }

    #[test]
    fn a_file_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("film.mkv");
        std::fs::write(&file, "film").unwrap();
        check(folder.path()).unwrap();
        check(&folder.path().join("missing")).unwrap();
        let error = check(&file).unwrap_err();
        assert_eq!(error.code(), "invalid_argument");
        assert!(error.to_string().contains("coffer put"), "{error}");
    }

    #[test]
    fn sources() {
        let service = |endpoint: &str, bucket: Option<&str>| SourceUrl::Service {
            endpoint: endpoint.to_owned(),
            bucket: bucket.map(str::to_owned),
        };
        for (text, expected) in [
            ("https://m:9000", service("https://m:9000", None)),
            ("http://m:9000/", service("http://m:9000", None)),
            ("http://m/films", service("http://m", Some("films"))),
            ("file:///srv/data", SourceUrl::Folder("/srv/data".into())),
            ("./data", SourceUrl::Folder("./data".into())),
            ("a:b", SourceUrl::Folder("a:b".into())),
            ("a@b", SourceUrl::Folder("a@b".into())),
            ("./a:b@c", SourceUrl::Folder("./a:b@c".into())),
            ("/srv/a:b@c", SourceUrl::Folder("/srv/a:b@c".into())),
            ("file:///srv/a:b@c", SourceUrl::Folder("/srv/a:b@c".into())),
        ] {
            assert_eq!(text.parse::<SourceUrl>().unwrap(), expected, "{text}");
        }
        for wrong in [
            "file://",
            "s3://b",
            "https://key:secret@m",
            "ftp://key:secret@m",
            "https://m/b/prefix",
            "key:secret@m",
            "key:secret@m:9000/b",
            "key:secret/with+slash@m",
            "key:secret@with@m",
            "//key:secret@m",
            "https:/key:secret@m",
            "https:key:secret@m",
            "key:secret@m://b",
            "file://key:secret@m/b",
            "https://m/b?X-Amz-Signature=secret",
            "https://m/b/k?X-Amz-Signature=secret",
            "https://m?X-Amz-Security-Token=secret",
            "https://m/b?Of=a@b&X-Amz-Signature=secret",
            "m/b/k?X-Amz-Signature=secret",
        ] {
            let told = wrong.parse::<SourceUrl>().unwrap_err();
            assert_eq!(told.code(), "invalid_argument", "{wrong}");
            let told = told.to_string();
            assert!(
                !told.contains("secret") && !told.contains("slash"),
                "{told}"
            );
        }
    }
}
