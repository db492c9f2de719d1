//! The bytes of an upload, from s3s to the vault.

use std::sync::Arc;

use coffer_vault::record::ChecksumAlgorithm;
use coffer_vault::{Body, BodyError, Digester, Incoming, VaultError};
use futures::{StreamExt, TryStreamExt};
use parking_lot::{Mutex, MutexGuard};
use s3s::dto::StreamingBlob;
use s3s::{S3Result, s3_error};

use crate::checksums::algorithms::digester;
use crate::checksums::expected::{ExpectedDigests, NoTrailers, Trailers};

/// A body with its length and the digests that it is to have.
pub(crate) fn incoming(
    body: Option<StreamingBlob>,
    content_length: Option<i64>,
    expected: ExpectedDigests,
    trailers: impl Trailers,
) -> S3Result<Incoming> {
    let declared_bytes = Some(declared(content_length)?);
    let (digests, is_proven) = (expected.plan(), expected.has_any());
    let check = expected.check(trailers);
    Ok(Incoming {
        declared_bytes,
        digests,
        body: stream(body),
        check,
        is_proven,
        arrived: None,
    })
}

/// As [`incoming`], but the client's checksum is computed here, for the vault computes another:
/// the one that the whole object will have.
pub(crate) fn incoming_summed(
    body: Option<StreamingBlob>,
    content_length: Option<i64>,
    expected: ExpectedDigests,
    algorithm: ChecksumAlgorithm,
    trailers: impl Trailers,
) -> S3Result<Incoming> {
    let declared_bytes = Some(declared(content_length)?);
    let (for_vault, for_us) = expected.split();
    let digests = for_vault.plan();
    let sum = Arc::new(Mutex::new(Some(digester(algorithm))));
    let summing = sum.clone();
    let body = stream(body).inspect_ok(move |bytes| {
        if let Some(digester) = lock(&summing).as_mut() {
            digester.update(bytes);
        }
    });
    let check_vault = for_vault.check(NoTrailers);
    let check = Box::new(
        move |digests: &coffer_vault::Digests| -> Result<(), VaultError> {
            check_vault(digests)?;
            for_us.compare(&trailers, None, |_| {
                let digests = lock(&sum).take()?.finish();
                digests.checksum.map(|checksum| checksum.value)
            })
        },
    );
    Ok(Incoming {
        declared_bytes,
        digests,
        body: body.boxed(),
        check,
        is_proven: true, // there is a checksum
        arrived: None,
    })
}

fn lock(sum: &Mutex<Option<Digester>>) -> MutexGuard<'_, Option<Digester>> {
    // Digesters don't panic.
    sum.lock()
}

/// The length of the bytes to come: of an aws-chunked body, what it has without its framing. S3 has
/// it told also where none come: in HTTP/1.1 a request without it has no body, and a client that
/// forgot both would empty what is there.
fn declared(content_length: Option<i64>) -> S3Result<u64> {
    let length = content_length.and_then(|length| u64::try_from(length).ok());
    length.ok_or_else(|| {
        s3_error!(
            MissingContentLength,
            "You must provide the Content-Length HTTP header."
        )
    })
}

fn stream(body: Option<StreamingBlob>) -> Body {
    match body {
        Some(body) => Box::pin(body.map_err(BodyError)),
        None => Box::pin(futures::stream::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_a_length_is_not_an_empty_one() {
        assert_eq!(declared(Some(0)).unwrap(), 0);
        assert_eq!(declared(Some(7)).unwrap(), 7);
        for none in [None, Some(-1)] {
            let refused = declared(none).unwrap_err();
            assert_eq!(refused.code().as_str(), "MissingContentLength");
        }
    }
}
