//! Checksums that clients send along, in headers and trailers, and get back.

use coffer_vault::record::{Checksum, ChecksumAlgorithm, ChecksumKind};
use coffer_vault::{CheckDigests, ChecksumError, DigestPlan, Digester, VaultError};
use http::{HeaderMap, HeaderValue};
use s3s::{S3Result, s3_error};

use crate::checksums::algorithms::{by_name, is_value, name, row};
use crate::checksums::headers::{
    content_md5, header_value, tells_of_checksums, too_many, trailer_name,
};

/// A checksum that the client says its bytes have.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ExpectedChecksum {
    /// In a header.
    Value(ChecksumAlgorithm, String),
    /// To come in a trailer.
    Trailer(ChecksumAlgorithm),
}

impl ExpectedChecksum {
    fn algorithm(&self) -> ChecksumAlgorithm {
        match self {
            Self::Value(algorithm, _) | Self::Trailer(algorithm) => *algorithm,
        }
    }
}

/// What comes after the bytes.
pub(crate) trait Trailers: Send + 'static {
    /// A trailer of this name.
    fn trailer(&self, name: &str) -> Option<&HeaderValue>;
}

/// After bytes that no trailers follow.
pub(crate) struct NoTrailers;

impl Trailers for NoTrailers {
    fn trailer(&self, _: &str) -> Option<&HeaderValue> {
        None
    }
}

/// What the headers say of the bytes to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpectedDigests {
    checksum: Option<ExpectedChecksum>,
    md5: Option<[u8; 16]>,
}

impl ExpectedDigests {
    /// Reads the headers of an upload.
    pub(crate) fn read(headers: &HeaderMap) -> S3Result<Self> {
        if !tells_of_checksums(headers) {
            return Ok(Self::default());
        }
        let in_headers = header_value(headers)?;
        let in_trailers = trailer_name(headers)?;
        let checksum = match (in_headers, in_trailers) {
            (Some((algorithm, value)), None) => Some(ExpectedChecksum::Value(algorithm, value)),
            (None, Some(algorithm)) => Some(ExpectedChecksum::Trailer(algorithm)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err(too_many()),
        };
        if headers
            .get("x-amz-checksum-type")
            .is_some_and(|kind| kind != "FULL_OBJECT")
        {
            return Err(s3_error!(
                InvalidRequest,
                "The checksum type of an upload in one piece is FULL_OBJECT"
            ));
        }
        check_announced(headers, checksum.as_ref())?;
        Ok(Self {
            checksum,
            md5: content_md5(headers)?,
        })
    }

    /// Reads `Content-MD5` alone.
    pub(crate) fn md5_only(headers: &HeaderMap) -> S3Result<Self> {
        Ok(Self {
            checksum: None,
            md5: content_md5(headers)?,
        })
    }

    /// Whether there is anything to compare the bytes with.
    pub(crate) fn has_any(&self) -> bool {
        self.checksum.is_some() || self.md5.is_some()
    }

    /// The algorithm of the client's checksum.
    pub(crate) fn algorithm(&self) -> Option<ChecksumAlgorithm> {
        self.checksum.as_ref().map(ExpectedChecksum::algorithm)
    }

    /// The checksum that a header tells, of the whole.
    pub(crate) fn told(&self) -> Option<Checksum> {
        match &self.checksum {
            Some(ExpectedChecksum::Value(algorithm, value)) => Some(Checksum {
                algorithm: *algorithm,
                kind: ChecksumKind::FullObject,
                value: value.clone(),
            }),
            _ => None,
        }
    }

    /// What the vault is to compute.
    pub(crate) fn plan(&self) -> DigestPlan {
        DigestPlan {
            checksum: self.algorithm(),
            md5: self.md5.is_some(),
        }
    }

    /// The comparison to make once the bytes have come.
    pub(crate) fn check(self, trailers: impl Trailers) -> CheckDigests {
        Box::new(move |digests| {
            let found = digests.checksum.as_ref();
            self.compare(&trailers, digests.md5, |algorithm| {
                found
                    .filter(|sum| sum.algorithm == algorithm)
                    .map(|sum| sum.value.clone())
            })
        })
    }

    /// Compares with digests: MD5 where it was computed, and the value of an algorithm.
    pub(crate) fn compare(
        &self,
        trailers: &dyn Trailers,
        md5: Option<[u8; 16]>,
        value: impl FnOnce(ChecksumAlgorithm) -> Option<String>,
    ) -> Result<(), VaultError> {
        match (self.md5, md5) {
            (Some(sent), Some(computed)) if sent != computed => {
                return Err(ChecksumError::OtherMd5 { sent, computed }.into());
            }
            (Some(_), None) => {
                return Err(VaultError::BadDigest {
                    what: "Content-MD5",
                });
            }
            _ => {}
        }
        let Some(claim) = &self.checksum else {
            return Ok(());
        };
        let algorithm = claim.algorithm();
        let expected = match claim {
            ExpectedChecksum::Value(_, value) => value.clone(),
            ExpectedChecksum::Trailer(_) => trailer_value(trailers, algorithm)?,
        };
        if value(algorithm) != Some(expected) {
            return Err(VaultError::BadDigest {
                what: name(algorithm),
            });
        }
        Ok(())
    }

    /// Compares with a body that is in memory, and what came after it.
    pub(crate) fn compare_whole(
        &self,
        body: &[u8],
        trailers: &dyn Trailers,
    ) -> Result<(), VaultError> {
        let mut digester = Digester::new(self.plan());
        digester.update(body);
        let digests = digester.finish();
        self.compare(trailers, digests.md5, |_| {
            digests.checksum.map(|checksum| checksum.value)
        })
    }

    /// Splits off the checksum: what is left for the vault, and what the front door compares.
    pub(crate) fn split(self) -> (Self, Self) {
        (
            Self {
                checksum: None,
                md5: self.md5,
            },
            Self {
                checksum: self.checksum,
                md5: None,
            },
        )
    }
}

fn trailer_value(
    trailers: &dyn Trailers,
    algorithm: ChecksumAlgorithm,
) -> Result<String, VaultError> {
    let missing = VaultError::Invalid {
        what: "the checksum that x-amz-trailer announces is missing",
    };
    let value = trailers.trailer(row(algorithm).header).ok_or(missing)?;
    let value = value.to_str().unwrap_or("").to_owned();
    if !is_value(algorithm, &value) {
        return Err(VaultError::Invalid {
            what: "the checksum in the trailer is not valid",
        });
    }
    Ok(value)
}

/// `x-amz-sdk-checksum-algorithm` must be that of the checksum which is sent.
fn check_announced(headers: &HeaderMap, claim: Option<&ExpectedChecksum>) -> S3Result {
    let Some(announced) = headers.get("x-amz-sdk-checksum-algorithm") else {
        return Ok(());
    };
    let announced = by_name(announced.to_str().unwrap_or(""))?;
    match claim {
        Some(claim) if claim.algorithm() == announced => Ok(()),
        Some(_) => Err(s3_error!(
            InvalidRequest,
            "Value for x-amz-sdk-checksum-algorithm header is invalid."
        )),
        // Content-MD5 is a checksum as well, which older clients prefer.
        None if headers.contains_key("content-md5") => Ok(()),
        None => Err(s3_error!(
            InvalidRequest,
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or \
             x-amz-trailer headers were found."
        )),
    }
}

#[cfg(test)]
mod tests {
    use coffer_vault::Digests;
    use coffer_vault::record::{Checksum, ChecksumKind};
    use http::HeaderName;

    use super::*;

    fn expected(pairs: &[(&'static str, &'static str)]) -> Result<ExpectedDigests, String> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        ExpectedDigests::read(&pairs.iter().map(pair).collect())
            .map_err(|error| error.code().as_str().to_owned())
    }

    // Of "123456789": the CRC catalogue's check value, in Base64.
    const CRC32: &str = "y/Q5Jg==";

    fn found(value: &str) -> Digests {
        let checksum = Checksum {
            algorithm: ChecksumAlgorithm::Crc32,
            kind: ChecksumKind::FullObject,
            value: value.into(),
        };
        Digests {
            checksum: Some(checksum),
            md5: None,
        }
    }

    #[test]
    fn checksums_in_headers_are_compared() {
        let expected = expected(&[("x-amz-checksum-crc32", CRC32)]).unwrap();
        assert_eq!(expected.plan().checksum, Some(ChecksumAlgorithm::Crc32));
        assert!(expected.clone().check(NoTrailers)(&found(CRC32)).is_ok());
        let wrong = expected.clone().check(NoTrailers)(&found("AAAAAA=="));
        assert!(matches!(
            wrong,
            Err(VaultError::BadDigest { what: "CRC32" })
        ));
        assert!(expected.compare_whole(b"123456789", &NoTrailers).is_ok());
        assert!(expected.compare_whole(b"1234", &NoTrailers).is_err());
    }

    #[test]
    fn content_md5_is_compared() {
        // RFC 1321, appendix A.5: "abc".
        let expected = expected(&[("content-md5", "kAFQmDzST7DWlj99KOF/cg==")]).unwrap();
        assert!(expected.plan().md5);
        assert!(expected.compare_whole(b"abc", &NoTrailers).is_ok());
        let other = expected.compare_whole(b"abd", &NoTrailers);
        let Err(VaultError::Checksum(ChecksumError::OtherMd5 { sent, computed })) = other else {
            panic!("{other:?}");
        };
        assert_eq!(sent[..4], [0x90, 0x01, 0x50, 0x98]);
        assert_ne!(sent, computed);
    }

    #[test]
    fn a_trailer_that_was_announced_must_come() {
        let expected = expected(&[("x-amz-trailer", "X-Amz-Checksum-Crc32")]).unwrap();
        assert_eq!(expected.plan().checksum, Some(ChecksumAlgorithm::Crc32));
        let missing = expected.check(NoTrailers)(&found(CRC32));
        assert!(matches!(missing, Err(VaultError::Invalid { .. })));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let invalid = Err("InvalidRequest".to_owned());
        assert_eq!(expected(&[("x-amz-checksum-crc32", "AAAA")]), invalid);
        assert_eq!(expected(&[("x-amz-checksum-crc32", "!")]), invalid);
        assert_eq!(expected(&[("x-amz-checksum-xxhash64", "AAAA")]), invalid);
        assert_eq!(
            expected(&[("x-amz-checksum-xxhash32", "AAAAAA==")]),
            invalid
        );
        for trailer in ["x-amz-checksum-md4", "x-foo", "x-amz-checksum-crc32, x-foo"] {
            assert_eq!(
                expected(&[("x-amz-trailer", trailer)]),
                invalid,
                "{trailer}"
            );
        }
        assert_eq!(
            expected(&[("x-amz-sdk-checksum-algorithm", "CRC32")]),
            invalid
        );
        assert_eq!(
            expected(&[("x-amz-sdk-checksum-algorithm", "ROT13")]),
            invalid
        );
        let two = [
            ("x-amz-checksum-crc32", CRC32),
            ("x-amz-checksum-crc32c", CRC32),
        ];
        assert_eq!(expected(&two), invalid);
        let other = [
            ("x-amz-checksum-crc32", CRC32),
            ("x-amz-sdk-checksum-algorithm", "SHA1"),
        ];
        assert_eq!(expected(&other), invalid);
        assert_eq!(
            expected(&[("content-md5", "abc")]),
            Err("InvalidDigest".to_owned())
        );
        assert_eq!(
            expected(&[("x-amz-checksum-mode", "ENABLED")]),
            Ok(ExpectedDigests::default())
        );
    }
}
