//! A canary: something unmistakable, stored through S3, that no file may then hold.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aho_corasick::AhoCorasick;
use coffer_client::ClientError;
use coffer_client::s3::{Client, Request, S3Error};
use http::Method;
use hyper::body::Bytes;

use crate::limits::{CANARY_LARGE_BYTES, CANARY_SMALL_BYTES};
use crate::prove::kind::Kind;
use crate::prove::needles::{forms, marker};
use crate::prove::report::{Planted, Proof};
use crate::prove::walk::each;

/// File systems keep times with some coarseness.
const CLOCK_COARSENESS: Duration = Duration::from_secs(5);

/// What is planted: each part has a marker of its own, so that a finding says which was readable.
struct Canary {
    bucket: String,
    objects: [String; 2],
    markers: Vec<(&'static str, String)>,
    planted: SystemTime,
}

/// Plants a canary, searches the data folder for it, and removes it.
///
/// # Errors
/// In words, when it could not be planted or not be removed.
pub async fn canary(
    s3: &Client,
    through: &str,
    data: &Path,
    proof: &mut Proof,
) -> Result<(), String> {
    let canary = Canary::new();
    let planted = canary.plant(s3).await;
    let searched = match planted {
        Ok(()) => tokio::task::block_in_place(|| canary.search(data, proof)),
        Err(problem) => Err(problem),
    };
    let removed = canary.remove(s3).await;
    let (files_searched, forms_searched) = searched?;
    removed?;
    proof.canary = Some(Planted {
        through: through.to_owned(),
        files_searched,
        forms_searched,
    });
    Ok(())
}

impl Canary {
    fn new() -> Self {
        let [bucket, name, content, metadata, tag] = std::array::from_fn(|_| marker());
        Self {
            objects: ["small", "large"].map(|size| format!("canary/{name}/{size}")),
            markers: vec![
                ("the bucket's name", bucket.clone()),
                ("an object's name", name),
                ("an object's content", content),
                ("an object's metadata", metadata),
                ("an object's tag", tag),
            ],
            bucket: format!("canary-{bucket}"),
            planted: SystemTime::now(),
        }
    }

    fn marker(&self, of: &str) -> &str {
        let found = self.markers.iter().find(|(what, _)| *what == of);
        found.map_or("", |(_, marker)| marker)
    }

    /// Nothing but the marker, over and over.
    fn content(&self, length: usize) -> Bytes {
        let line = format!("{}\n", self.marker("an object's content"));
        line.bytes().cycle().take(length).collect()
    }

    /// Stores it, and reads it back: so it did go through all that data goes through.
    async fn plant(&self, s3: &Client) -> Result<(), String> {
        expect(s3, &Request::of_bucket(Method::PUT, &self.bucket)).await?;
        let lengths = [CANARY_SMALL_BYTES, CANARY_LARGE_BYTES];
        for (name, length) in self.objects.iter().zip(lengths) {
            let request = |method| Request::of_object(method, &self.bucket, name);
            let content = self.content(length);
            let tagging = format!("canary={}", self.marker("an object's tag"));
            let store = request(Method::PUT)
                .header("x-amz-meta-canary", self.marker("an object's metadata"))
                .header("x-amz-tagging", tagging)
                .body(content.clone(), None);
            expect(s3, &store).await?;
            if expect(s3, &request(Method::GET)).await? != content {
                return Err("the canary reads back differently".to_owned());
            }
        }
        Ok(())
    }

    async fn remove(&self, s3: &Client) -> Result<(), String> {
        let objects = { self.objects.iter() }
            .map(|name| Request::of_object(Method::DELETE, &self.bucket, name));
        let bucket = Request::of_bucket(Method::DELETE, &self.bucket);
        for request in objects.chain([bucket]) {
            expect_gone(s3, &request)
                .await
                .map_err(|problem| self.left_behind(&problem))?;
        }
        Ok(())
    }

    fn left_behind(&self, problem: &str) -> String {
        format!(
            "{problem}: remove the bucket {} by hand, if it is there",
            self.bucket
        )
    }

    /// Searches all files that were written since, and their names. How many files, how many forms.
    fn search(&self, data: &Path, proof: &mut Proof) -> Result<(u64, u64), String> {
        let (mut kinds, mut needles) = (Vec::new(), Vec::new());
        for (what, marker) in &self.markers {
            for (form, needle) in forms(marker) {
                kinds.push((*what, form));
                needles.push(needle);
            }
        }
        let found = |pattern: usize| {
            format!(
                "it holds {} of the canary, {}",
                kinds[pattern].0, kinds[pattern].1
            )
        };
        let searcher = AhoCorasick::new(&needles).map_err(|error| error.to_string())?;
        let since = self.planted - CLOCK_COARSENESS;
        let mut searched_count = 0;
        let mut failure = None;
        let walked = each(data, &mut |relative, metadata| {
            let name = relative.as_os_str().as_encoded_bytes();
            if let Some(hit) = searcher.find(name) {
                proof.find(
                    relative,
                    format!("its name: {}", found(hit.pattern().as_usize())),
                );
            }
            let is_blob = Kind::of(relative, false) == Some(Kind::Blob);
            if metadata.is_file() && (!is_blob || changed(metadata.ctime()) >= since) {
                match search_file(&searcher, &data.join(relative)) {
                    Ok(hit) => {
                        searched_count += 1;
                        if let Some(pattern) = hit {
                            proof.find(relative, found(pattern));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => failure = Some(format!("{}: {error}", relative.display())),
                }
            }
            relative != Path::new("lost+found")
        });
        walked.map_err(|error| error.to_string())?;
        match failure {
            Some(failure) => Err(failure),
            None => Ok((searched_count, needles.len() as u64)),
        }
    }
}

/// When a file was changed last, by its `st_ctime`, which no program can set.
fn changed(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Which needle a file holds first.
fn search_file(searcher: &AhoCorasick, path: &Path) -> io::Result<Option<usize>> {
    let hit = searcher.stream_find_iter(File::open(path)?).next();
    Ok(hit.transpose()?.map(|hit| hit.pattern().as_usize()))
}

/// Sends, and gives the body of an answer that is a success.
async fn expect(s3: &Client, request: &Request) -> Result<Bytes, String> {
    let answer = s3.send(request).await.map_err(|error| told(&error))?;
    let body = answer.whole(CANARY_LARGE_BYTES).await;
    body.map_err(|error| told(&error))
}

/// Sends, and takes an answer that there is no such thing for a success.
async fn expect_gone(s3: &Client, request: &Request) -> Result<(), String> {
    match s3.send(request).await {
        Err(error) if !error.is_absent() => Err(told(&error)),
        _ => Ok(()),
    }
}

fn told(error: &S3Error) -> String {
    match error {
        S3Error::Refused { status, code, .. } => format!("S3 answered {status} {code}"),
        S3Error::Client(ClientError::Unreachable { problem, .. }) => problem.clone(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_part_is_planted_in_whatever_form_it_is_found() {
        let canary = Canary::new();
        for (what, marker) in &canary.markers {
            for (form, needle) in forms(marker) {
                let folder = tempfile::tempdir().unwrap();
                let around = [b"before".as_slice(), &needle, b"after"].concat();
                std::fs::write(folder.path().join("system.db"), around).unwrap();
                let mut proof = Proof::default();
                canary.search(folder.path(), &mut proof).unwrap();
                assert_eq!(proof.finding_count, 1, "{what}, {form}");
                assert!(
                    proof.findings[0].what.contains(what),
                    "{:?}",
                    proof.findings
                );
            }
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(&canary.bucket), "").unwrap();
        let mut proof = Proof::default();
        canary.search(folder.path(), &mut proof).unwrap();
        assert!(
            proof.findings[0].what.starts_with("its name"),
            "{:?}",
            proof.findings
        );
    }
}
