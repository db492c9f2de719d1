//! What of sealed copies keeps a request from being answered.

use coffer_vault::CopyError;
use s3s::{S3Error, s3_error};

use super::outcome::{IN_DOUBT, REFUSED, with_outcome};

/// What a standby does not do, and a server in whose place one may serve. Why is told to operators.
pub(super) fn standing(error: &CopyError) -> S3Error {
    match error {
        CopyError::Standby { .. } => {
            with_outcome(s3_error!(ServiceUnavailable, "{error}"), REFUSED)
        }
        // Another gateway serves soon, or this one.
        CopyError::Follows { .. } | CopyError::LeaseEnded => {
            s3_error!(ServiceUnavailable, "{error}")
        }
        CopyError::FencedOff {
            is_for_good: true, ..
        } => with_outcome(fenced_off(), REFUSED),
        _ => fenced_off(),
    }
}

fn fenced_off() -> S3Error {
    s3_error!(
        ServiceUnavailable,
        "This server is fenced off, so it changes nothing: a standby of it may serve in its \
         place. Reads are answered. Ask the operator."
    )
}

/// What a synchronous copy did not take, or is not asked to.
pub(super) fn unacknowledged(error: &CopyError) -> S3Error {
    match error {
        CopyError::GivenUp { .. } => {
            let refused = s3_error!(
                ServiceUnavailable,
                "Nothing was stored: the server's synchronous copy was given up, and without it \
                 nothing is acknowledged. What is stored can be read. Ask the operator."
            );
            with_outcome(refused, REFUSED)
        }
        // It is in the folder of one gateway: the next that serves may have it, or not.
        CopyError::NotInLog => {
            let in_doubt = s3_error!(
                ServiceUnavailable,
                "The engine's log did not take it in time, or another gateway serves by now: \
                 whether it is stored is in doubt. Look, or try again."
            );
            with_outcome(in_doubt, IN_DOUBT)
        }
        _ => {
            let in_doubt = s3_error!(
                ServiceUnavailable,
                "It is stored here and not yet in the server's synchronous copy: whether it would \
                 survive the loss of this machine is in doubt. It is not undone. Look, or try \
                 again."
            );
            with_outcome(in_doubt, IN_DOUBT)
        }
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
    use super::super::outcome::outcome_of;
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
        let engines = unacknowledged(&CopyError::NotInLog);
        assert!(
            engines
                .message()
                .is_some_and(|told| told.contains("in doubt") && !told.contains("copy"))
        );
        for (error, outcome) in [
            (refused, "refused"),
            (doubtful, "in-doubt"),
            (engines, "in-doubt"),
        ] {
            assert_eq!(error.status_code().map(|status| status.as_u16()), Some(503));
            assert_eq!(outcome_of(&error), Some(outcome));
        }
    }

    #[test]
    fn what_may_be_served_here_soon_is_not_told_as_refused_for_good() {
        let fenced = |is_for_good| {
            standing(&CopyError::FencedOff {
                copy: "far".to_owned(),
                why: String::new(),
                is_for_good,
            })
        };
        assert_eq!(outcome_of(&fenced(true)), Some("refused"));
        let follows = CopyError::Follows {
            what: "it changes nothing",
            serves: None,
        };
        for soon in [
            fenced(false),
            standing(&follows),
            standing(&CopyError::LeaseEnded),
        ] {
            assert_eq!(outcome_of(&soon), None);
        }
    }

    #[test]
    fn what_is_not_done_here_is_told_with_the_status_of_what_is_not_available() {
        let standby = standing(&CopyError::Standby {
            what: "it changes nothing",
        });
        let fenced = standing(&CopyError::FencedOff {
            copy: "far".to_owned(),
            why: "secret reasons".to_owned(),
            is_for_good: true,
        });
        for (error, said) in [(standby, "changes nothing"), (fenced, "fenced off")] {
            let told = error.message().unwrap_or("");
            assert!(told.contains(said) && !told.contains("secret"), "{told}");
            assert_eq!(error.status_code().map(|status| status.as_u16()), Some(503));
            assert_eq!(outcome_of(&error), Some("refused"));
        }
    }
}
