//! What a request asks for, as policies of buckets see it.

use std::fmt;
use std::sync::Arc;

use coffer_policy::{Action, Key, Resource, Timestamp, Value, Values};
use coffer_store::record::{ObjectName, Tags};
use coffer_store::version::Which;

use super::bucket_name::BucketName;
use super::own_values::OwnValues;
use super::rights::Right;
use super::sharing::Sharing;

/// What a request asks for. Front doors say so where [`Vault::asks_of`](crate::Vault::asks_of) says
/// that a policy or lists are to be asked, and a request to such a bucket that does not say is
/// refused.
pub struct Asked {
    /// All that it asks for, in each of its buckets.
    pub actions: Vec<AskedAction>,
    /// When.
    pub time: Timestamp,
    /// What its conditions may ask, but for what they ask of an object that is there.
    pub values: Arc<dyn Values + Send + Sync>,
    /// What it was said for, if not for all that any policy might ask. A policy that asks for more
    /// by the time it judges does not judge it: it is to be sent again.
    pub asks: Option<Asks>,
}

/// What a bucket's policy may ask of requests, as it is when this is made.
#[derive(Clone, Debug)]
pub struct Asks {
    bucket: BucketName,
    /// None where that can't be read: then, all.
    sharing: Option<Arc<Sharing>>,
}

impl Asks {
    pub(crate) fn new(bucket: BucketName, sharing: Option<Arc<Sharing>>) -> Self {
        Self { bucket, sharing }
    }

    /// The bucket.
    pub fn bucket(&self) -> &BucketName {
        &self.bucket
    }

    /// The keys that its conditions may ask for; none: any of them.
    pub fn keys(&self) -> Option<&[Key]> {
        self.sharing.as_ref().map(|sharing| &*sharing.keys)
    }

    /// Whether what was said for it is enough for what is said of sharing the bucket now.
    fn is_enough_for(&self, now: &Sharing) -> bool {
        self.sharing.as_deref().is_none_or(|then| {
            // Nearly always.
            std::ptr::eq(then, now) || now.keys.iter().all(|key| then.keys.contains(key))
        })
    }
}

/// One action on one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAction {
    /// In which bucket.
    pub bucket: BucketName,
    /// What.
    pub action: Action,
    /// On what.
    pub on: AskedOf,
}

/// What an action is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedOf {
    /// The bucket.
    Bucket,
    /// An object, or a version of one.
    Object(ObjectName, Which),
    /// Each of the objects that the vault is told, one by one: a deletion of many.
    Each,
}

impl AskedOf {
    /// As policies name it; none where that is told later.
    pub(crate) fn resource(&self) -> Option<Resource<'_>> {
        match self {
            Self::Bucket => Some(Resource::Bucket),
            Self::Object(name, _) => Some(Resource::Object(name.expose())),
            Self::Each => None,
        }
    }

    /// Which version of the object.
    pub(crate) fn which(&self) -> Which {
        match self {
            Self::Object(_, which) => *which,
            Self::Bucket | Self::Each => Which::Current,
        }
    }
}

impl Asked {
    /// The same, asked for now.
    pub(crate) fn again(&self) -> Self {
        let now_seconds = coffer_durable::now_ms().div_euclid(1_000);
        Self {
            actions: self.actions.clone(),
            time: Timestamp::from_seconds(now_seconds),
            values: self.values.clone(),
            asks: self.asks.clone(),
        }
    }

    /// Whether it says all that may be asked of it.
    pub(crate) fn is_enough_for(&self, sharing: &Sharing) -> bool {
        let asks = self.asks.as_ref();
        asks.is_none_or(|asks| asks.is_enough_for(sharing))
    }

    /// What is asked for in this bucket.
    pub(crate) fn within(&self, bucket: &BucketName) -> impl Iterator<Item = &AskedAction> {
        self.actions
            .iter()
            .filter(move |asked| asked.bucket == *bucket)
    }
}

impl fmt::Debug for Asked {
    /// The actions: values are names of objects, addresses and the like.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions = self.actions.iter().map(|asked| asked.action);
        f.debug_list().entries(actions).finish()
    }
}

/// One of several actions that are asked about one by one, kept to be asked again.
#[derive(Clone)]
pub(crate) struct AskedEach {
    pub(crate) action: Action,
    pub(crate) name: ObjectName,
    pub(crate) which: Which,
    /// What it has of its own for conditions.
    pub(crate) own: Option<Arc<OwnValues>>,
}

impl AskedEach {
    pub(crate) fn single(&self) -> Single<'_> {
        Single {
            action: self.action,
            name: &self.name,
            which: self.which,
            own: self.own.as_deref(),
        }
    }
}

/// An action on one object.
#[derive(Clone, Copy)]
pub(crate) struct Single<'a> {
    pub(crate) action: Action,
    pub(crate) name: &'a ObjectName,
    pub(crate) which: Which,
    /// What it has of its own for conditions.
    pub(crate) own: Option<&'a OwnValues>,
}

/// The values of a request, and what it has of its own besides.
pub(super) struct Besides {
    pub(super) values: Arc<dyn Values + Send + Sync>,
    pub(super) own: OwnValues,
}

impl Values for Besides {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        let said = self.values.value(key);
        said.or_else(|| self.own.value(key))
    }
}

/// What a copy asks for besides that takes its source's tags along.
pub(crate) fn tags_copied(
    from: (&BucketName, &ObjectName, Which),
    to: (&BucketName, &ObjectName),
) -> Vec<AskedAction> {
    let ask = |action, bucket: &BucketName, name: &ObjectName, which| AskedAction {
        bucket: bucket.clone(),
        action,
        on: AskedOf::Object(name.clone(), which),
    };
    let reading = match from.2 {
        Which::Current => Action::GetObjectTagging,
        Which::Version(_) => Action::GetObjectVersionTagging,
    };
    vec![
        ask(reading, from.0, from.1, from.2),
        ask(Action::PutObjectTagging, to.0, to.1, Which::Current),
    ]
}

/// The rights that a grant must give, all of them, for an action that no policy gives.
pub(crate) fn rights_for(action: Action) -> &'static [Right] {
    match action {
        Action::ListBucket
        | Action::ListBucketVersions
        | Action::ListBucketMultipartUploads
        | Action::ListMultipartUploadParts => &[Right::List],
        Action::DeleteObject
        | Action::DeleteObjectVersion
        | Action::DeleteBucket
        | Action::BypassGovernanceRetention => &[Right::Delete],
        // They change what is deleted, or what keeps from it.
        Action::PutLifecycleConfiguration
        | Action::PutBucketVersioning
        | Action::PutBucketObjectLockConfiguration
        | Action::PutObjectRetention
        | Action::PutObjectLegalHold => &[Right::Write, Right::Delete],
        other if other.name().starts_with("Get") => &[Right::Read],
        _ => &[Right::Write],
    }
}

/// Whether an action says who else may use a bucket: its owner's, unless a policy gives it.
pub(crate) fn is_of_owner(action: Action) -> bool {
    matches!(
        action,
        Action::PutBucketPolicy
            | Action::DeleteBucketPolicy
            | Action::PutBucketPublicAccessBlock
            | Action::PutBucketOwnershipControls
            | Action::PutBucketAcl
    )
}

/// Whether an action says who else may use an object: its owner's, unless a policy or a list gives
/// it.
pub(crate) fn is_of_object_owner(action: Action) -> bool {
    matches!(action, Action::PutObjectAcl | Action::PutObjectVersionAcl)
}

/// What the values of a request are together with those of the object that is there.
pub(crate) struct WithObject<'a> {
    pub(crate) values: &'a dyn Values,
    /// The object's tags; none where there is no such object.
    pub(crate) tags: Option<&'a Tags>,
    /// The version that the action names.
    pub(crate) which: Which,
    /// What the action has of its own.
    pub(crate) own: Option<&'a OwnValues>,
}

impl Values for WithObject<'_> {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        match (key, self.which) {
            (Key::ExistingObjectTag(wanted), _) => {
                let mut tags = self.tags?.iter();
                let tag = tags.find(|(key, _)| key == wanted);
                tag.map(|(_, value)| value.as_str().into())
            }
            // Never from anything else that a request says: it may name several.
            (Key::VersionId, Which::Version(version)) => {
                Some(Value::Text(version.to_string().into()))
            }
            (Key::VersionId, Which::Current) => None,
            _ => {
                let said = self.values.value(key);
                said.or_else(|| self.own?.value(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use coffer_policy::NoValues;

    use super::*;
    use crate::access::{Rights, SharingDocuments};

    /// What is said by a policy that asks for these keys.
    fn sharing(keys: &[&str]) -> Arc<Sharing> {
        let conditions: Vec<_> = keys
            .iter()
            .map(|key| format!(r#""{key}":"true""#))
            .collect();
        let policy = format!(
            r#"{{"Statement":[{{"Effect":"Deny","Principal":"*","Action":"s3:*",
                "Resource":"arn:aws:s3:::a/*","Condition":{{"Null":{{{}}}}}}}],
                "Version":"2012-10-17"}}"#,
            conditions.join(",")
        );
        let documents = SharingDocuments {
            policy: Some(policy.into()),
            ..SharingDocuments::default()
        };
        let account = "111122223333".parse().unwrap();
        Arc::new(Sharing::read(documents, "a", &account).unwrap())
    }

    #[test]
    fn what_was_said_for_one_policy_is_enough_for_those_that_ask_for_no_more() {
        let one = sharing(&["aws:SourceIp", "aws:Referer"]);
        let bucket = BucketName::new("a").unwrap();
        let asked = |asks| Asked {
            actions: Vec::new(),
            time: Timestamp::from_seconds(0),
            values: Arc::new(NoValues),
            asks,
        };
        let said = asked(Some(Asks::new(bucket.clone(), Some(one.clone()))));
        assert!(said.is_enough_for(&one));
        assert!(said.is_enough_for(&sharing(&["aws:Referer"])));
        assert!(!said.is_enough_for(&sharing(&["aws:Referer", "aws:UserAgent"])));
        let whole = [asked(None), asked(Some(Asks::new(bucket, None)))];
        let more = sharing(&["aws:UserAgent"]);
        assert!(whole.iter().all(|said| said.is_enough_for(&more)));
    }

    #[test]
    fn each_action_has_the_rights_that_its_operation_takes() {
        for (action, rights) in [
            (Action::GetObject, "read"),
            (Action::GetBucketTagging, "read"),
            (Action::ListBucket, "list"),
            (Action::ListMultipartUploadParts, "list"),
            (Action::PutObject, "write"),
            (Action::DeleteObjectTagging, "write"),
            (Action::AbortMultipartUpload, "write"),
            (Action::DeleteBucketPolicy, "write"),
            (Action::DeleteObject, "delete"),
            (Action::DeleteBucket, "delete"),
            (Action::PutBucketVersioning, "write,delete"),
            (Action::PutLifecycleConfiguration, "write,delete"),
            (Action::PutBucketObjectLockConfiguration, "write,delete"),
            (Action::PutObjectRetention, "write,delete"),
            (Action::PutObjectLegalHold, "write,delete"),
        ] {
            let named: Rights = rights_for(action).iter().copied().collect();
            assert_eq!(named.to_string(), rights, "{action}");
        }
    }
}
