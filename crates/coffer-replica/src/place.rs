//! Where a copy is, by its URL.
//!
//! `file:///mnt/disk/copies/coffer`; `s3://bucket/prefix` with the parameters `endpoint`, `region`,
//! `checksum` (one to send with what is put), `ca` (a file of certificates) and `credentials` (a
//! file as the tools of that cloud have it); `az://container/prefix` with `account` in place of
//! region and checksum; `gs://bucket/prefix` with none of them.
//! Credentials come from that file or from the environment, never from the URL.

use std::borrow::Cow;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::Checksum;
use url::{ParseError, Url};

use crate::error::{ReplicaError, Result};

mod folder;

mod guarded;

mod cloud;

use self::folder::Folder;
#[cfg(test)]
pub(crate) use self::guarded::Guarded;

/// What a place is written like.
const BEGINNINGS: &str = "it must begin with file://, s3://, az:// or gs://; a folder is \
                          file:///FOLDER, with its whole path";

/// A place for a copy.
#[derive(Clone, Debug)]
pub struct Place {
    url: Url,
}

impl Place {
    /// Reads a URL; nothing is opened yet.
    ///
    /// # Errors
    /// [`ReplicaError::Url`].
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |problem: &str| ReplicaError::Url {
            url: text.to_owned(),
            problem: problem.to_owned(),
        };
        let url = Url::parse(text).map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => refused(BEGINNINGS),
            error => refused(&error.to_string()),
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(
                "it has credentials in it: name a file, `?credentials=FILE`",
            ));
        }
        let known: &[&str] = match url.scheme() {
            "file" if url.host_str().is_none_or(str::is_empty) && url.path() != "/" => &[],
            "file" => return Err(refused("write file:///FOLDER, with three slashes")),
            "s3" => &["endpoint", "region", "checksum", "ca", "credentials"],
            "az" => &["endpoint", "account", "ca", "credentials"],
            "gs" => &["endpoint", "ca", "credentials"],
            _ => return Err(refused(BEGINNINGS)),
        };
        if url.scheme() != "file" && url.host_str().is_none_or(str::is_empty) {
            return Err(refused(match url.scheme() {
                "az" => "write az://CONTAINER/PREFIX?account=…",
                "gs" => "write gs://BUCKET/PREFIX",
                _ => "write s3://BUCKET/PREFIX?endpoint=…",
            }));
        }
        let path = (url.scheme() == "file").then(|| url.to_file_path());
        if path.is_some_and(|path| path.is_ok_and(|path| path.to_str().is_none())) {
            return Err(refused("its folder's name is no UTF-8"));
        }
        for (name, value) in url.query_pairs() {
            if !known.contains(&name.as_ref()) {
                return Err(refused(&format!(
                    "it has no parameter `{name}`: {known:?} are known"
                )));
            }
            if name == "endpoint" {
                check_endpoint(&value).map_err(refused)?;
            }
            if name == "checksum" && value.parse::<Checksum>().is_err() {
                return Err(refused("its checksum is sha256 or crc64nvme"));
            }
        }
        Ok(Self { url })
    }

    /// The URL. There is no secret in it.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The URL without what names files of certificates and credentials, and how it is written to.
    pub fn public_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        let kept = self.url.query_pairs();
        let is_told = |name: &str| !["ca", "credentials", "checksum"].contains(&name);
        for (name, value) in kept.filter(|(name, _)| is_told(name)) {
            url.query_pairs_mut().append_pair(&name, &value);
        }
        url.to_string()
    }

    /// The folder, if it is one.
    pub fn folder(&self) -> Option<PathBuf> {
        let is_folder = self.url.scheme() == "file";
        is_folder.then(|| self.url.to_file_path().ok()).flatten()
    }

    /// Whether it names files of this machine: a folder, certificates or credentials.
    pub fn names_files(&self) -> bool {
        self.url.scheme() == "file" || self.files().next().is_some()
    }

    /// Whether a file that it names is looked for from the folder that a program happens to run in.
    pub fn names_relative_files(&self) -> bool {
        self.files().any(|file| !file.starts_with('/'))
    }

    /// The files of certificates and credentials that it names.
    fn files(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let named = self.url.query_pairs();
        let named = named.filter(|(name, _)| ["ca", "credentials"].contains(&name.as_ref()));
        named.map(|(_, file)| file)
    }

    /// Opens the store. A folder is made where it is absent if `makes`. Blocks.
    ///
    /// # Errors
    /// [`ReplicaError::Url`], when it can't be.
    pub fn open(&self, makes: bool) -> Result<Arc<dyn ObjectStore>> {
        match self.url.scheme() {
            "file" => self.open_folder(makes),
            _ => self.open_cloud(),
        }
    }

    fn refused(&self, problem: impl ToString) -> ReplicaError {
        ReplicaError::Url {
            url: self.url.to_string(),
            problem: problem.to_string(),
        }
    }

    fn open_folder(&self, makes: bool) -> Result<Arc<dyn ObjectStore>> {
        let path = self
            .url
            .to_file_path()
            .map_err(|()| self.refused("it is no path"))?;
        if makes && !path.exists() {
            // Only itself: what is above it may be a disk that is not there.
            use std::os::unix::fs::DirBuilderExt;
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| self.refused(not_made(&error)))?;
        }
        let found = fs::metadata(&path).map_err(|error| self.refused(not_found(&error)))?;
        if !found.is_dir() {
            return Err(self.refused("what is there is no folder"));
        }
        let folder = Folder::open(&path).map_err(|error| self.refused(error))?;
        Ok(Arc::new(folder))
    }
}

fn not_made(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the folder that it is to be in is not there: make that first, or \
                                mount its disk"
            .to_owned(),
        _ => format!("the folder can't be made: {error}"),
    }
}

fn not_found(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such folder: is its disk mounted?".to_owned(),
        _ => format!("the folder can't be opened: {error}"),
    }
}

/// What is told of a wrong one does not repeat it: where it has credentials, the URL that it is in
/// is shown to the one who gave it alone.
fn check_endpoint(text: &str) -> std::result::Result<(), &'static str> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let url = url.ok_or("its endpoint must be https://HOST or http://HOST")?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err("its endpoint has credentials in it: name a file, `?credentials=FILE`");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    #[test]
    fn files_that_depend_on_the_folder_of_a_program_are_known() {
        for (url, relative) in [
            ("s3://b/p?ca=/etc/ca.pem&credentials=/etc/far", false),
            ("s3://b/p?endpoint=https://h", false),
            ("s3://b/p?ca=/etc/ca.pem&credentials=far", true),
            ("az://c/p?account=a&ca=./ca.pem", true),
        ] {
            let place = Place::parse(url).unwrap();
            assert_eq!(place.names_relative_files(), relative, "{url}");
        }
    }

    #[test]
    fn what_is_no_place_is_told_with_what_to_do() {
        for (url, told) in [
            ("mnt/disk", "a folder is file:///FOLDER"),
            ("/mnt/disk", "a folder is file:///FOLDER"),
            ("file://mnt/disk", "three slashes"),
            ("s3:///prefix", "s3://BUCKET"),
            ("az:///prefix", "az://CONTAINER"),
            ("gs:///prefix", "gs://BUCKET"),
            ("az://container?region=x", "no parameter `region`"),
            ("az://container?sas_token=x", "no parameter `sas_token`"),
            ("s3://bucket?checksum=md5", "sha256 or crc64nvme"),
            ("gs://bucket?account=x", "no parameter `account`"),
            ("s3://b?endpoint=ftp://host", "https://HOST"),
            (
                "s3://b?endpoint=https://id:secret@host",
                "credentials in it",
            ),
            ("az://c?endpoint=https://host/%3Fsig=x", "credentials in it"),
            ("ftp://host/x", "must begin with"),
            ("file:///t/a%FFb", "no UTF-8"),
            ("s3://bucket/x?bucket=y", "no parameter `bucket`"),
            ("s3://id:secret@bucket/x", "credentials in it"),
        ] {
            let error = Place::parse(url).unwrap_err().to_string();
            assert!(error.contains(told), "{url}: {error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_in_plain_words() {
        let root = tempfile::tempdir().unwrap();
        let told = |below: &str, makes: bool| {
            let url = format!("file://{}", root.path().join(below).display());
            let opened = Place::parse(&url).unwrap().open(makes);
            opened.err().map(|error| error.to_string())
        };
        let absent = told("absent", false).unwrap();
        assert!(absent.contains("there is no such folder"), "{absent}");
        let above = told("absent/below", true).unwrap();
        assert!(above.contains("to be in is not there"), "{above}");
        fs::write(root.path().join("file"), "").unwrap();
        for makes in [false, true] {
            let file = told("file", makes).unwrap();
            assert!(file.contains("no folder"), "{file}");
        }
        assert_eq!(told("made", true), None);
    }

    #[test]
    fn a_place_is_told_without_files_and_ways_of_writing() {
        let same = "s3://b/p?ca=/x&checksum=sha256&endpoint=https://h&credentials=/y";
        let told = Place::parse(same).unwrap().public_url();
        let plain = Place::parse("s3://b/p?endpoint=https://h").unwrap();
        assert_eq!(told, plain.public_url());
    }
}
