//! What one entry of a deletion, an upload or a copy has for condition keys, where the request
//! itself does not say it.

use std::borrow::Cow;

use coffer_policy::{
    Acl, CannedAcl, Grant, Grantee, Key, Permission, SubjectId, Timestamp, Value, Values,
    grants_in_header,
};
use coffer_store::lock::{Lock, RetentionMode};
use coffer_store::record::{Precondition, Tags};

use super::acl::{ListAsSent, kept_grants};

const DAY_SECONDS: i64 = 86_400;

/// What an action on one object has of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnValues {
    /// The entity tag that must be there, as `If-Match` has it.
    if_match: Option<String>,
    /// Tags that the object gets.
    tags: Tags,
    /// What is to keep it from being deleted, and the time by which locks end.
    lock: Option<(Lock, i64)>,
    /// Who else may use it, in the words of headers.
    list: ListAsSent,
}

impl OwnValues {
    /// Of a deletion that requires something; none where it does not.
    pub(crate) fn of_precondition(precondition: &Precondition) -> Option<Self> {
        let if_match = match precondition {
            Precondition::Etag(etag) => format!("\"{etag}\""),
            Precondition::Present => "*".to_owned(),
            Precondition::None | Precondition::Absent => return None,
        };
        Some(Self {
            if_match: Some(if_match),
            ..Self::default()
        })
    }

    /// Of what gets these tags.
    pub(crate) fn of_tags(tags: Tags) -> Self {
        Self {
            tags,
            ..Self::default()
        }
    }

    /// The same with a lock, in milliseconds since 1970 by the time by which locks end.
    pub(crate) fn locked(self, lock: Lock, lock_now_ms: i64) -> Self {
        Self {
            lock: Some((lock, lock_now_ms)),
            ..self
        }
    }

    /// The same with what headers said of a list.
    pub(crate) fn with_list_sent(self, list: ListAsSent) -> Self {
        Self { list, ..self }
    }

    /// The same with a list of which only what it grants is known: the canned one that it is, or
    /// else its grants.
    pub(crate) fn shared(self, acl: &Acl, bucket_owner: &SubjectId) -> Self {
        let kept = kept_grants(acl);
        let canned = CannedAcl::NAMES.iter().find(|(canned, _)| {
            let same = canned.grants(acl.owner(), Some(bucket_owner));
            kept_grants(&same) == kept
        });
        let list = match canned {
            Some((_, name)) => [(Key::Acl, (*name).to_owned())].into(),
            None => acl.grants().iter().fold(ListAsSent::new(), with_grant),
        };
        Self { list, ..self }
    }

    fn retention(&self) -> Option<(RetentionMode, i64)> {
        let retention = self.lock.as_ref()?.0.retention?;
        Some((retention.mode, retention.until_ms.div_euclid(1_000)))
    }
}

/// Adds a grant to the header that gives such.
fn with_grant(mut list: ListAsSent, grant: &Grant) -> ListAsSent {
    let key = match grant.permission {
        Permission::FullControl => Key::GrantFullControl,
        Permission::Read => Key::GrantRead,
        Permission::ReadAcp => Key::GrantReadAcp,
        Permission::Write => Key::GrantWrite,
        Permission::WriteAcp => Key::GrantWriteAcp,
    };
    let to = match &grant.grantee {
        Grantee::Subject(id) => format!("id={id}"),
        Grantee::Group(group) => format!("uri={}", group.uri()),
    };
    let text = list.entry(key).or_default();
    if !text.is_empty() {
        text.push_str(", ");
    }
    text.push_str(&to);
    list
}

impl Values for OwnValues {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        match key {
            Key::IfMatch => self.if_match.as_deref().map(Into::into),
            Key::RequestObjectTag(wanted) => {
                let tag = self.tags.iter().find(|(key, _)| key == wanted);
                tag.map(|(_, value)| value.as_str().into())
            }
            Key::RequestObjectTagKeys => (!self.tags.is_empty()).then(|| {
                let keys = self.tags.iter().map(|(key, _)| Cow::Borrowed(key.as_str()));
                Value::Texts(keys.collect())
            }),
            Key::ObjectLockMode => self.retention().map(|(mode, _)| match mode {
                RetentionMode::Governance => "GOVERNANCE".into(),
                RetentionMode::Compliance => "COMPLIANCE".into(),
            }),
            Key::ObjectLockLegalHold => {
                let (lock, _) = self.lock?;
                match (lock.has_hold, lock.hold_is_off) {
                    (true, _) => Some("ON".into()),
                    (false, true) => Some("OFF".into()),
                    (false, false) => None,
                }
            }
            Key::ObjectLockRetainUntilDate => self
                .retention()
                .map(|(_, until)| Value::Date(Timestamp::from_seconds(until))),
            Key::ObjectLockRemainingRetentionDays => {
                let (_, now_ms) = self.lock?;
                let (_, until) = self.retention()?;
                let seconds = until.saturating_sub(now_ms.div_euclid(1_000));
                // A day that has begun counts.
                let days = seconds
                    .saturating_add(DAY_SECONDS - 1)
                    .div_euclid(DAY_SECONDS);
                Some(Value::Number(days.into()))
            }
            Key::Acl => self.list.get(key).map(|text| text.as_str().into()),
            other => self
                .list
                .get(other)
                .map(|text| grants_in_header(text.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use coffer_policy::Group;

    use super::*;

    #[test]
    fn a_list_is_told_as_its_header_had_it() {
        let [owner, other] = ["1", "2"].map(|digit| digit.repeat(32).parse().unwrap());
        let told = |acl: &Acl, key: &Key| {
            let own = OwnValues::default().shared(acl, &owner);
            match own.value(key) {
                Some(Value::Text(text)) => Some(text.into_owned()),
                Some(Value::Spelled { meant, .. }) => Some(meant[0].to_string()),
                _ => None,
            }
        };
        let canned = CannedAcl::PublicRead.grants(Some(&other), Some(&owner));
        assert_eq!(told(&canned, &Key::Acl).as_deref(), Some("public-read"));
        assert_eq!(told(&canned, &Key::GrantRead), None);
        let read = |grantee| Grant {
            grantee,
            permission: Permission::Read,
        };
        let both = vec![
            read(Grantee::Subject(other.clone())),
            read(Grantee::Group(Group::AuthenticatedUsers)),
        ];
        let listed = Acl::new(Some(owner.clone()), both).unwrap();
        assert_eq!(told(&listed, &Key::Acl), None);
        let uri = Group::AuthenticatedUsers.uri();
        let expected = format!("id={other}, uri={uri}");
        assert_eq!(told(&listed, &Key::GrantRead), Some(expected));
    }
}
