//! `Principal` and `NotPrincipal`.
//!
//! *IAM User Guide*, AWS JSON policy elements: Principal
//! (`IAM/latest/UserGuide/reference_policies_elements_principal.html`). As there, the name of a
//! user is turned into its id when a policy is put, and back when it is shown; the id of a user who
//! is gone, or whom the reader may not know, is shown as it is. It means no later user of that
//! name, and may be put again. No wildcards but `*` alone.

use super::json::Json;
use crate::error::{Element, Fault, PolicyError};
use crate::names::{AccountId, SubjectId};

/// Who is who, to the one who puts or reads a policy: what turns names into ids, and back. Of
/// those whom that one may not know it answers as of those who are not there.
pub trait Subjects {
    /// The id of the subject that is called so now.
    fn id_of_name(&self, name: &str) -> Option<SubjectId>;

    /// How this subject is called now; none when it is gone.
    fn name_of_id(&self, id: &SubjectId) -> Option<String>;

    /// Whether this is the id of a subject that may be named. Where that is so of all ids, no
    /// answer tells who is there, and what was read of one who is gone can be put again.
    fn is_id(&self, id: &SubjectId) -> bool {
        self.name_of_id(id).is_some()
    }

    /// The subject of this canonical user id, as owners and grantees have them.
    fn id_of_canonical_user(&self, canonical_id: &str) -> Option<SubjectId> {
        let _ = canonical_id;
        None
    }
}

/// Where names are looked up while a policy is read.
#[derive(Clone, Copy)]
pub(crate) enum Reading<'a> {
    /// What a client sent: names of subjects that there are, and ids.
    Sent(&'a dyn Subjects),
    /// What was stored: ids, whether or not there are such subjects still.
    Stored,
}

/// One principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// `*`: also those who sign nothing.
    Everyone,
    /// The account: all of its subjects, as far as it allows them by itself.
    Account,
    /// A subject.
    Subject(SubjectId),
}

/// Reads the value of `Principal` or `NotPrincipal`.
pub(crate) fn parse(
    json: &Json,
    element: Element,
    account: &AccountId,
    reading: Reading<'_>,
) -> Result<Vec<Principal>, PolicyError> {
    if let Json::Text(text) = json {
        let is_everyone = text == "*";
        return if is_everyone {
            Ok(vec![Principal::Everyone])
        } else {
            Err(refused(text).at(element))
        };
    }
    let mut principals = Vec::new();
    for (name, value) in json.object(element)? {
        let texts = value.texts(element)?;
        for text in texts {
            let principal = match name.as_str() {
                "AWS" => of_account(&text, account, reading),
                "CanonicalUser" => match reading {
                    Reading::Sent(subjects) => subjects.id_of_canonical_user(&text),
                    Reading::Stored => None,
                }
                .map(Principal::Subject),
                // No other services and no federation.
                "Service" | "Federated" => None,
                _ => {
                    let name = name.as_str().into();
                    return Err(Fault::UnknownField { name }.at(element));
                }
            };
            principals.push(principal.ok_or_else(|| refused(&text).at(element))?);
        }
    }
    if principals.is_empty() {
        return Err(Fault::Empty(element).at(element));
    }
    Ok(principals)
}

fn refused(text: &str) -> Fault {
    Fault::Principal { name: text.into() }
}

fn of_account(text: &str, account: &AccountId, reading: Reading<'_>) -> Option<Principal> {
    if text == "*" {
        return Some(Principal::Everyone);
    }
    if text == account.as_str() {
        return Some(Principal::Account);
    }
    if let Some(rest) = text.strip_prefix("arn:aws:iam::") {
        let within = rest.strip_prefix(account.as_str())?.strip_prefix(':')?;
        return match (within, reading) {
            ("root", _) => Some(Principal::Account),
            (_, Reading::Sent(subjects)) => {
                let name = within.strip_prefix("user/")?;
                subjects.id_of_name(name).map(Principal::Subject)
            }
            (_, Reading::Stored) => None,
        };
    }
    let id: SubjectId = text.parse().ok()?;
    let is_known = match reading {
        Reading::Sent(subjects) => subjects.is_id(&id),
        Reading::Stored => true,
    };
    is_known.then_some(Principal::Subject(id))
}

/// Writes them: with names where there are subjects to ask, else with ids.
pub(crate) fn write(
    principals: &[Principal],
    account: &AccountId,
    subjects: Option<&dyn Subjects>,
) -> Json {
    if *principals == [Principal::Everyone] {
        return Json::Text("*".to_owned());
    }
    let text = |principal: &Principal| match principal {
        Principal::Everyone => "*".to_owned(),
        Principal::Account => format!("arn:aws:iam::{account}:root"),
        Principal::Subject(id) => match subjects.and_then(|subjects| subjects.name_of_id(id)) {
            Some(name) => user_arn(account, &name),
            None => id.to_string(),
        },
    };
    let texts = Json::from_texts(principals.iter().map(text));
    Json::Object(vec![("AWS".to_owned(), texts)])
}

/// The ARN of a subject: `aws:PrincipalArn`.
pub(crate) fn user_arn(account: &AccountId, name: &str) -> String {
    format!("arn:aws:iam::{account}:user/{name}")
}
