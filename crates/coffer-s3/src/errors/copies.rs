//! What of sealed copies keeps a request from being answered.

use coffer_vault::CopyError;
use s3s::{S3Error, s3_error};

/// What a standby does not do, and a server in whose place one may serve. Why is told to operators.
pub(super) fn standing(error: &CopyError) -> S3Error {
    match error {
        CopyError::Standby { .. } | CopyError::Follows { .. } | CopyError::LeaseEnded => {
            s3_error!(ServiceUnavailable, "{error}")
        }
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

/// What a gateway of an engine does not have, and its store does not give.
pub(super) fn not_fetched() -> S3Error {
    s3_error!(
        ServiceUnavailable,
        "What was asked for is not in this gateway's cache, and could not be fetched from the \
         engine's store. Please try again."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_and_what_was_not_are_told_apart() {
        let name = || "far".to_owned();
        let refused = unacknowledged(&CopyError::GivenUp { name: name() });
        assert!(
            refused
                .message()
                .is_some_and(|told| told.starts_with("Nothing was stored"))
        );
        let doubtful = unacknowledged(&CopyError::NotAnyMore { name: name() });
        assert!(
            doubtful
                .message()
                .is_some_and(|told| told.contains("in doubt"))
        );
        for error in [refused, doubtful] {
            assert_eq!(error.status_code().map(|status| status.as_u16()), Some(503));
        }
    }

    #[test]
    fn what_is_not_done_here_is_told_with_a_status_that_is_tried_again() {
        let standby = standing(&CopyError::Standby {
            what: "it changes nothing",
        });
        let fenced = standing(&CopyError::FencedOff {
            copy: "far".to_owned(),
            why: "secret reasons".to_owned(),
        });
        for (error, said) in [(standby, "changes nothing"), (fenced, "fenced off")] {
            let told = error.message().unwrap_or("");
            assert!(told.contains(said) && !told.contains("secret"), "{told}");
            assert_eq!(error.status_code().map(|status| status.as_u16()), Some(503));
        }
    }
}
