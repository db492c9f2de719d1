//! Refusals of requests with a key of the client's own, or without one that is needed. S3 documents
//! no codes for them; these are what others saw on AWS.

use coffer_vault::CustomerKeyError;
use s3s::{S3Error, s3_error};

pub(super) fn from_customer_key(error: CustomerKeyError) -> S3Error {
    use CustomerKeyError::{Blocked, Missing, MissingForPart, NotApplicable, Wrong, WrongForPart};
    match error {
        Blocked => s3_error!(
            AccessDenied,
            "Access Denied: this bucket takes no objects encrypted with keys that the client \
             provides (SSE-C). PutBucketEncryption with BlockedEncryptionTypes NONE allows them; \
             above the lowest label, that takes a data user who is a system administrator as well."
        ),
        Wrong => s3_error!(AccessDenied, "Access Denied"),
        Missing => s3_error!(
            InvalidRequest,
            "The object was stored using a form of Server Side Encryption. The correct parameters \
             must be provided to retrieve the object."
        ),
        NotApplicable => s3_error!(
            InvalidRequest,
            "The encryption parameters are not applicable to this object."
        ),
        MissingForPart => s3_error!(
            InvalidRequest,
            "The multipart upload initiate requested encryption. Subsequent part requests must \
             include the appropriate encryption parameters."
        ),
        WrongForPart => s3_error!(
            InvalidRequest,
            "The provided encryption parameters did not match the ones used originally."
        ),
    }
}
