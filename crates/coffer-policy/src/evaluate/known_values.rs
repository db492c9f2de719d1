//! The values of the keys that follow from who asks, when, and on which server.
//!
//! *IAM User Guide*, Policy variables, has the table of principals' values: a user has a name, an
//! id and the type `User`; who is anonymous has no name, the id `anonymous` and the type
//! `Anonymous`.

use std::borrow::Cow;

use super::request::{Request, Requester};
use crate::conditions::{Key, Value, Values};
use crate::names::AccountId;

/// The id of who signed nothing: `aws:userid`.
pub(crate) const ANONYMOUS_ID: &str = "anonymous";

/// All values of a request.
pub(crate) struct KnownValues<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) account: &'a AccountId,
}

impl Values for KnownValues<'_> {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        let subject = match self.request.requester {
            Requester::Anonymous => None,
            Requester::Subject(identity) => Some(identity),
        };
        match key {
            Key::CurrentTime | Key::EpochTime => Some(Value::Date(self.request.time)),
            Key::AwsResourceAccount | Key::ResourceAccount => Some(self.account.as_str().into()),
            Key::PrincipalAccount => subject.map(|_| self.account.as_str().into()),
            Key::PrincipalArn => subject.map(|identity| {
                let arn = crate::grammar::user_arn(self.account, identity.name);
                Value::Text(Cow::Owned(arn))
            }),
            Key::PrincipalType => Some(subject.map_or("Anonymous", |_| "User").into()),
            Key::UserId => {
                let id = subject.map(|identity| identity.id);
                Some(id.unwrap_or(ANONYMOUS_ID).into())
            }
            Key::UserName => subject.map(|identity| identity.name.into()),
            // What goes on grows older meanwhile.
            Key::SignatureAge => match self.request.values.value(key) {
                Some(Value::Date(signed)) => {
                    let seconds = self.request.time.seconds().saturating_sub(signed.seconds());
                    Some(Value::Number(seconds.saturating_mul(1_000).into()))
                }
                other => other,
            },
            other => self.request.values.value(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::{Decimal, ListedValues, Timestamp};
    use crate::evaluate::Resource;
    use crate::names::Action;

    #[test]
    fn a_signature_is_as_old_as_at_the_moment_that_is_asked_for() {
        let account = "111122223333".parse().unwrap();
        let mut values = ListedValues::default();
        values.insert(
            Key::SignatureAge,
            Value::Date(Timestamp::from_seconds(1_000)),
        );
        for (now, age_ms) in [(1_000, 0), (1_004, 4_000), (998, -2_000)] {
            let request = Request {
                requester: Requester::Anonymous,
                action: Action::GetObject,
                resource: Resource::Bucket,
                time: Timestamp::from_seconds(now),
                values: &values,
            };
            let known = KnownValues {
                request: &request,
                account: &account,
            };
            let expected = Some(Value::Number(Decimal::from(age_ms)));
            assert_eq!(known.value(&Key::SignatureAge), expected, "{now}");
        }
    }
}
