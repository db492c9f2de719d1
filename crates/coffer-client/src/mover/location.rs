//! A place in a bucket, as it is typed: `s3://BUCKET/NAME`.

use std::fmt;
use std::str::FromStr;

use crate::address::{decoded, has_secret, is_address, without_secret};
use crate::mover::error::MoverError;
use crate::s3::ObjectName;

/// A bucket, and a name or the beginning of names in it, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The bucket.
    pub bucket: String,
    /// The name, or what names begin with.
    pub key: String,
}

impl Location {
    /// Whether a text means a bucket, and no file of this machine.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("s3://")
    }

    /// The object of this name.
    ///
    /// # Errors
    /// [`MoverError::Location`] when there is no name.
    pub fn object(&self) -> Result<ObjectName, MoverError> {
        if self.key.is_empty() {
            return Err(MoverError::Location {
                text: self.to_string(),
                problem: "name an object, s3://BUCKET/NAME, or use -r for all of them",
            });
        }
        Ok(ObjectName::new(&self.bucket, &self.key))
    }

    /// Whether all that begins with `other` also begins with this: what is written there is found
    /// here.
    pub fn holds(&self, other: &Self) -> bool {
        self.bucket == other.bucket && other.key.starts_with(&self.key)
    }

    /// The same as the beginning of names of a folder: with a slash at its end.
    #[must_use]
    pub fn folder(mut self) -> Self {
        if !self.key.is_empty() && !self.key.ends_with('/') {
            self.key.push('/');
        }
        self
    }
}

const WITH_SECRET: &str = "access keys and signatures are not written into places: write \
                           s3://BUCKET/NAME, and name a profile by --profile";

const ADDRESS: &str = "write s3://BUCKET/NAME: the service's address goes into --endpoint, and its \
                       access key into a profile";

impl FromStr for Location {
    type Err = MoverError;

    fn from_str(text: &str) -> Result<Self, MoverError> {
        let rest = text.strip_prefix("s3://").unwrap_or_default();
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let problem = if decoded(bucket).contains(['@', '?']) {
            Some(WITH_SECRET)
        } else if !bucket.is_empty() {
            None
        } else if is_address(text) && !Self::is_meant(text) || has_secret(text) {
            Some(ADDRESS)
        } else {
            Some("write s3://BUCKET/NAME")
        };
        if let Some(problem) = problem {
            return Err(MoverError::Location {
                text: without_secret(text),
                problem,
            });
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (text, bucket, key) in [
            ("s3://b", "b", ""),
            ("s3://b/", "b", ""),
            ("s3://b/a/b c", "b", "a/b c"),
            ("s3://b//a", "b", "/a"),
        ] {
            let place: Location = text.parse().unwrap();
            assert_eq!((place.bucket.as_str(), place.key.as_str()), (bucket, key));
        }
        for wrong in ["", "b/a", "s3:/b/a", "s3://", "s3:///a", "S3://b"] {
            assert!(wrong.parse::<Location>().is_err(), "{wrong}");
        }
        for secret in [
            "https://key:hidden@m",
            "https://m/b/k?X-Amz-Signature=hidden",
            "key:hidden@m/b",
            "s3://key:hidden@m/b",
            "s3://key%3Ahidden%40m/b",
            "k:hidden%40m",
            "s3://b?X-Amz-Signature=hidden",
            "file://key:hidden@m/b",
        ] {
            let told = secret.parse::<Location>().unwrap_err().to_string();
            assert!(
                !told.contains("hidden") && told.contains("profile"),
                "{told}"
            );
        }
        let folder = |text: &str| text.parse::<Location>().unwrap().folder().key;
        assert_eq!(
            (folder("s3://b"), folder("s3://b/a")),
            (String::new(), "a/".to_owned())
        );
        assert!("s3://b".parse::<Location>().unwrap().object().is_err());
        let holds = |one: &str, other: &str| {
            let place = |text: &str| text.parse::<Location>().unwrap().folder();
            place(one).holds(&place(other))
        };
        for (one, other) in [("s3://b", "s3://b/a"), ("s3://b/a", "s3://b/a/")] {
            assert!(holds(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("s3://b/a", "s3://b"),
            ("s3://b/a", "s3://b/ab"),
            ("s3://b", "s3://c/a"),
        ] {
            assert!(!holds(one, other), "{one} {other}");
        }
    }
}
