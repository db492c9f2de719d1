//! Bodies of the fuzz targets: what parses must survive being written and parsed again.

use crate::conditions::{ListedValues, Timestamp};
use crate::error::Fault;
use crate::evaluate::{Identity, Request, Requester, Resource, evaluate};
use crate::grammar::{Policy, Subjects};
use crate::names::{AccountId, Action, SubjectId};
use crate::public::is_public;

/// Every subject is called by its id.
struct CalledById;

impl Subjects for CalledById {
    fn id_of_name(&self, name: &str) -> Option<SubjectId> {
        name.parse().ok()
    }

    fn name_of_id(&self, id: &SubjectId) -> Option<String> {
        Some(id.to_string())
    }
}

/// Any bytes as a policy.
///
/// # Panics
///
/// When a policy that parses doesn't come back as the same from what is stored or shown: what the
/// fuzzer looks for.
pub fn fuzz_policy(data: &[u8]) {
    let (Ok(account), Ok(id)) = (
        "111122223333".parse::<AccountId>(),
        "AIDAEXAMPLEEXAMPLE01".parse::<SubjectId>(),
    ) else {
        return;
    };
    let Ok(policy) = Policy::parse(data, "bucket", &account, &CalledById) else {
        return;
    };
    let stored = policy.to_stored();
    let again = Policy::from_stored(stored.as_bytes(), "bucket", &account);
    assert!(again.is_ok_and(|again| again == policy), "stored");
    let shown = policy.shown(&CalledById);
    match Policy::parse(shown.as_bytes(), "bucket", &account, &CalledById) {
        Ok(again) => assert!(again == policy, "shown"),
        // It quotes numbers and writes accounts in full.
        Err(error) => assert!(
            matches!(error.fault, Fault::TooLong { .. }),
            "shown: {error}"
        ),
    }
    let identity = Identity {
        id: id.as_str(),
        name: "ann",
        owns_bucket: false,
    };
    for requester in [Requester::Anonymous, Requester::Subject(identity)] {
        for (action, resource) in [
            (Action::GetObject, Resource::Object("a/b")),
            (Action::ListBucket, Resource::Bucket),
        ] {
            let request = Request {
                requester,
                action,
                resource,
                time: Timestamp::from_seconds(0),
                values: &ListedValues::default(),
            };
            evaluate(&policy, &request);
        }
    }
    is_public(&policy);
}
