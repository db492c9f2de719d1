//! Virtual-host style: the bucket in the host's name.
//!
//! A host is a bucket only below a configured domain, and everything else is path style, so that
//! both styles work side by side.

use std::sync::Arc;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};

use crate::http::percent::decode_path;

/// The domains below which a host names a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Domains(Arc<[String]>);

impl Domains {
    /// Takes domain names without ports, in any case; longer ones win over those they end with.
    pub(crate) fn new(domains: &[String]) -> Self {
        let lower = |domain: &String| domain.trim_matches('.').to_ascii_lowercase();
        let mut domains: Vec<_> = domains
            .iter()
            .map(lower)
            .filter(|domain| !domain.is_empty())
            .collect();
        domains.sort_by_key(|domain| std::cmp::Reverse(domain.len()));
        Self(domains.into())
    }

    /// The names of bucket and object in a request, as its host and path have them; empty where it
    /// names none.
    pub(crate) fn bucket_and_object(&self, uri: &Uri, headers: &HeaderMap) -> (String, String) {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        self.named_by(uri, host)
    }

    /// The same, by the text of the `Host` header, if there is one.
    pub(crate) fn named_by(&self, uri: &Uri, host: Option<&str>) -> (String, String) {
        let host = host.or(uri.authority().map(Authority::as_str));
        let path = decode_path(uri.path()).unwrap_or_default();
        let path = path.strip_prefix('/').unwrap_or(&path);
        if let Some(bucket) = host.and_then(|host| self.bucket(host)) {
            return (bucket, path.to_owned());
        }
        let (bucket, object) = path.split_once('/').unwrap_or((path, ""));
        (bucket.to_owned(), object.to_owned())
    }

    /// The bucket that a `Host` header names, if any.
    pub(crate) fn bucket(&self, host: &str) -> Option<String> {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if self.0.contains(&name) {
            return None;
        }
        let bucket = |domain: &String| name.strip_suffix(domain.as_str())?.strip_suffix('.');
        self.0
            .iter()
            .find_map(bucket)
            .filter(|bucket| !bucket.is_empty())
            .map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_found_below_domains_only() {
        let domains = Domains::new(&["S3.example.org".into(), "example.org".into()]);
        let cases = [
            ("s3.example.org", None),
            ("s3.example.org:9000", None),
            ("b.s3.example.org:9000", Some("b")),
            ("a.b.S3.EXAMPLE.org.", Some("a.b")),
            ("c.example.org", Some("c")),
            ("example.org", None),
            ("localhost:9000", None),
            ("127.0.0.1", None),
            ("[::1]:9000", None),
            ("xs3.example.net", None),
            (".s3.example.org", None),
        ];
        for (host, bucket) in cases {
            assert_eq!(domains.bucket(host).as_deref(), bucket, "{host}");
        }
    }
}
