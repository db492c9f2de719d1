//! Where a copy is, by its URL.
//!
//! `file:///mnt/disk/coffer`, or `s3://bucket/prefix` with the parameters `endpoint`, `region`,
//! `ca` (a file of certificates) and `credentials` (a file as the AWS tools have it). Credentials
//! come from that file, or from the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
//! `AWS_SESSION_TOKEN`), never from the URL.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::prefix::PrefixStore;
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use crate::error::{ReplicaError, Result};
use crate::limits::{CONNECT_TIMEOUT, REQUEST_TIMEOUT, RETRIES, RETRY_TIMEOUT, SETTINGS_MAX_BYTES};

mod folder;

use self::folder::Folder;

/// The region where none is named.
const REGION: &str = "us-east-1";

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
        let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(
                "it has credentials in it: name a file, `?credentials=FILE`",
            ));
        }
        let known: &[&str] = match url.scheme() {
            "file" if url.host_str().is_none_or(str::is_empty) && url.path() != "/" => &[],
            "file" => return Err(refused("write file:///FOLDER, with three slashes")),
            "s3" if url.host_str().is_some_and(|host| !host.is_empty()) => {
                &["endpoint", "region", "ca", "credentials"]
            }
            "s3" => return Err(refused("write s3://BUCKET/PREFIX?endpoint=…")),
            "az" | "gs" => return Err(refused("this version is built for file:// and s3:// only")),
            _ => return Err(refused("it must begin with file:// or s3://")),
        };
        let path = (url.scheme() == "file").then(|| url.to_file_path());
        if path.is_some_and(|path| path.is_ok_and(|path| path.to_str().is_none())) {
            return Err(refused("its folder's name is no UTF-8"));
        }
        for (name, _) in url.query_pairs() {
            if !known.contains(&name.as_ref()) {
                return Err(refused(&format!(
                    "it has no parameter `{name}`: {known:?} are known"
                )));
            }
        }
        Ok(Self { url })
    }

    /// The URL. There is no secret in it.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The URL without what names files of certificates and credentials.
    pub fn public_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        let kept = self.url.query_pairs();
        for (name, value) in kept.filter(|(name, _)| !["ca", "credentials"].contains(&&**name)) {
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
        let is_file = |name: &str| ["ca", "credentials"].contains(&name);
        self.url.scheme() == "file" || self.url.query_pairs().any(|(name, _)| is_file(&name))
    }

    /// Opens the store. A folder is made where it is absent if `makes`. Blocks.
    ///
    /// # Errors
    /// [`ReplicaError::Url`], when it can't be.
    pub fn open(&self, makes: bool) -> Result<Arc<dyn ObjectStore>> {
        match self.url.scheme() {
            "file" => self.open_folder(makes),
            _ => self.open_s3(),
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
            made.map_err(|error| self.refused(error))?;
        }
        let folder = Folder::open(&path).map_err(|error| self.refused(error))?;
        Ok(Arc::new(folder))
    }

    fn open_s3(&self) -> Result<Arc<dyn ObjectStore>> {
        let query: HashMap<_, _> = self.url.query_pairs().collect();
        let get = |name: &str| query.get(name).map(|value| value.as_ref());
        let mut client = ClientOptions::new()
            .with_timeout(REQUEST_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT);
        if let Some(ca) = get("ca") {
            let pem = self.read(ca)?;
            let all = Certificate::from_pem_bundle(pem.as_bytes());
            for certificate in all.map_err(|error| self.refused(error))? {
                client = client.with_root_certificate(certificate);
            }
        }
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(self.url.host_str().unwrap_or_default())
            .with_region(get("region").unwrap_or(REGION))
            .with_retry(RetryConfig {
                max_retries: RETRIES,
                retry_timeout: RETRY_TIMEOUT,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = get("endpoint") {
            client = client.with_allow_http(endpoint.starts_with("http://"));
            builder = builder
                .with_endpoint(endpoint)
                .with_virtual_hosted_style_request(false);
        }
        let [id, secret, token] = match get("credentials") {
            Some(file) => {
                let text = self.read(file)?;
                credentials_in(&text)
            }
            None => [
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
            ]
            .map(|name| std::env::var(name).ok()),
        };
        let (Some(id), Some(secret)) = (id, secret) else {
            return Err(self.refused(
                "there are no credentials: name a file as the AWS tools have it, \
                 `?credentials=FILE`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the \
                 server",
            ));
        };
        builder = builder
            .with_access_key_id(id)
            .with_secret_access_key(secret);
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
        let store = builder.with_client_options(client).build();
        let store = store.map_err(|error| self.refused(error))?;
        let prefix = self.url.path().trim_matches('/');
        if prefix.is_empty() {
            return Ok(Arc::new(store));
        }
        Ok(Arc::new(PrefixStore::new(store, prefix)))
    }

    fn read(&self, file: &str) -> Result<String> {
        let read = |file: &str| {
            let mut text = String::new();
            let opened = fs::File::open(Path::new(file))?;
            opened.take(SETTINGS_MAX_BYTES).read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        read(file).map_err(|error| self.refused(format!("{file}: {error}")))
    }
}

/// Access key, secret and token of the first profile.
fn credentials_in(text: &str) -> [Option<String>; 3] {
    let value = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    [
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
    ]
    .map(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    #[test]
    fn what_is_no_place_is_told_with_what_to_do() {
        for (url, told) in [
            ("mnt/disk", "relative URL"),
            ("file://mnt/disk", "three slashes"),
            ("s3:///prefix", "s3://BUCKET"),
            ("az://container", "file:// and s3:// only"),
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
    fn credentials_are_read_as_the_aws_tools_write_them() {
        let text = "[default]\naws_access_key_id = A\naws_secret_access_key=B=C\n";
        let found = credentials_in(text);
        assert_eq!(found, [Some("A".to_owned()), Some("B=C".to_owned()), None]);
    }
}
