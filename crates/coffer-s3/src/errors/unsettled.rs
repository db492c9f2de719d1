//! What was done, although its answer is an error.

use coffer_vault::VaultError;
use s3s::{S3Error, s3_error};

use super::outcome::{DONE, with_outcome};

/// An act was done, and either the audit log doesn't have that, or how new the data is could not
/// be written down. What of the disk is behind it is told to operators alone.
pub(super) fn done(error: &VaultError) -> S3Error {
    tracing::error!(target: "coffer::s3", %error, "what a request asked for was done");
    let told = match error {
        VaultError::EndNotHeld(_) => s3_error!(
            InternalError,
            "This was done, but how new the data is could not be written down, so that an older \
             copy which is put back might not be found. Ask the operator."
        ),
        _ => s3_error!(
            InternalError,
            "This was done, but the audit log, which has that it began, can't be written any more. \
             Ask the operator."
        ),
    };
    with_outcome(told, DONE)
}

#[cfg(test)]
mod tests {
    use coffer_vault::VaultError;

    use crate::errors::from_vault;
    use crate::errors::outcome::outcome_of;

    #[test]
    fn what_was_done_is_not_told_as_if_it_were_to_be_tried_again() {
        let cause = Box::new(VaultError::StorageFull);
        let told = from_vault(VaultError::EndNotHeld(cause));
        assert_eq!(told.code().as_str(), "InternalError");
        let message = told.message().unwrap();
        assert!(message.starts_with("This was done") && !message.contains("try again"));
        assert_eq!(outcome_of(&told), Some("done"));
    }
}
