//! What of sealed copies keeps a request from being answered.

use coffer_vault::CopyError;
use s3s::{S3Error, s3_error};

/// What a standby does not do, and a server in whose place one may serve. Why is told to operators.
pub(super) fn standing(error: &CopyError) -> S3Error {
    match error {
        CopyError::Standby { .. } => s3_error!(ServiceUnavailable, "{error}"),
        _ => s3_error!(
            ServiceUnavailable,
            "This server is fenced off, so it changes nothing: a standby of it may serve in its \
             place. Reads are answered. Ask the operator."
        ),
    }
}

/// What a synchronous copy did not take, or is not asked to.
pub(super) fn unacknowledged(error: &CopyError) -> S3Error {
    match error {
        CopyError::GivenUp { .. } => s3_error!(
            ServiceUnavailable,
            "Nothing was stored: the server's synchronous copy was given up, and without it \
             nothing is acknowledged. What is stored can be read. Ask the operator."
        ),
        _ => s3_error!(
            ServiceUnavailable,
            "It is stored here and not yet in the server's synchronous copy: whether it would \
             survive the loss of this machine is in doubt. It is not undone. Look, or try again."
        ),
    }
}
