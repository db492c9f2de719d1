//! What one subject may not take more of.

use coffer_vault::SubjectLimit;
use http::StatusCode;
use s3s::{S3Error, s3_error};

use super::custom;

/// S3 has a code of its own for buckets alone. Waiting does not help who has too many uploads, so
/// that is nothing on which clients try again.
pub(super) fn from_limit(reached: SubjectLimit) -> S3Error {
    match reached {
        SubjectLimit::Buckets { limit } => s3_error!(
            TooManyBuckets,
            "This access key's subject has made {limit} buckets, as many as one may have: delete \
             some, or have a system administrator make them (coffer bucket create)"
        ),
        SubjectLimit::Uploads { limit } => custom(
            "QuotaExceeded",
            StatusCode::FORBIDDEN,
            format!(
                "This access key's subject has {limit} multipart uploads under way, as many as one \
                 may have: complete some, abort those that ListMultipartUploads lists, or have the \
                 operator end old ones (coffer bucket end-uploads)"
            ),
        ),
        other => s3_error!(SlowDown, "Please reduce your request rate: {other}"),
    }
}
