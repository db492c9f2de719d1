//! Policies of buckets: what the model makes of them, and how the vault is told of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use coffer_vault::policy::{Action, NoValues, Timestamp};
use coffer_vault::version::Which;
use coffer_vault::{Asked, AskedAction, AskedOf, Result, Subject};
use proptest::prelude::*;

use crate::model::{DELETE, LIST, Model, READ, WRITE};
use crate::operations::{BUCKETS, Outcome, SUBJECTS, Wish};
use crate::world::{World, bucket_name, object_name};

/// A statement: whom it allows or denies which rights.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    denies: bool,
    /// All, unless it is one.
    whom: Option<usize>,
    rights: BTreeSet<usize>,
}

impl Statement {
    /// Whether it allows a subject anything.
    pub(crate) fn allows_any(&self, subject: usize) -> bool {
        !self.denies && self.whom == Some(subject)
    }
}

/// A wish to set a policy, or to remove it where there are no statements.
pub(crate) fn wish() -> impl Strategy<Value = Wish> {
    let rights = || prop::collection::btree_set(0..4usize, 1..4);
    let allow = (0..SUBJECTS, rights()).prop_map(|(whom, rights)| Statement {
        denies: false,
        whom: Some(whom),
        rights,
    });
    let deny = (prop::option::of(0..SUBJECTS), rights()).prop_map(|(whom, rights)| Statement {
        denies: true,
        whom,
        rights,
    });
    let statements = prop::collection::vec(prop_oneof![2 => allow, 1 => deny], 0..4);
    (0..BUCKETS, statements).prop_map(|(bucket, statements)| Wish::SetPolicy { bucket, statements })
}

impl Model {
    /// Whether the bucket has a policy, or lists count in it.
    pub(crate) fn is_shared(&self, bucket: usize) -> bool {
        !self.buckets[&bucket].policy.is_empty() || self.has_lists(bucket)
    }

    /// Whether a policy allows the subject anything, or lists might.
    pub(crate) fn is_shared_with(&self, subject: usize, bucket: usize) -> bool {
        if self.has_lists(bucket) {
            return true;
        }
        let mut statements = self.buckets[&bucket].policy.iter();
        statements.any(|statement| statement.allows_any(subject))
    }

    pub(crate) fn is_granted(&self, subject: usize, bucket: usize, right: usize) -> bool {
        let grants = self.subjects[subject].grants.as_ref();
        grants.is_none_or(|grants| {
            grants
                .get(&bucket)
                .is_some_and(|rights| rights.contains(&right))
        })
    }

    /// What grants, policy and the bucket's list say together, whatever labels say.
    pub(crate) fn lets(&self, subject: usize, bucket: usize, right: usize) -> bool {
        self.lets_on(subject, bucket, right, None)
    }

    /// The same, with what the list of an object says.
    pub(crate) fn lets_on(
        &self,
        subject: usize,
        bucket: usize,
        right: usize,
        object: Option<usize>,
    ) -> bool {
        if self.denies(subject, bucket, right) {
            return false;
        }
        self.allows(subject, bucket, right)
            || self.lists_give(subject, bucket, right, object)
            || self.is_granted(subject, bucket, right)
    }

    /// The statements of the policy about a subject and a right.
    fn statements(
        &self,
        subject: usize,
        bucket: usize,
        right: usize,
    ) -> impl Iterator<Item = &Statement> {
        let statements = self.buckets[&bucket].policy.iter();
        statements.filter(move |statement| {
            statement.whom.is_none_or(|whom| whom == subject) && statement.rights.contains(&right)
        })
    }

    fn denies(&self, subject: usize, bucket: usize, right: usize) -> bool {
        let mut statements = self.statements(subject, bucket, right);
        statements.any(|statement| statement.denies)
    }

    /// Whether the policy allows it, and does not deny it.
    pub(crate) fn allows(&self, subject: usize, bucket: usize, right: usize) -> bool {
        let is_any = self.statements(subject, bucket, right).next().is_some();
        is_any && !self.denies(subject, bucket, right)
    }

    pub(crate) fn owns(&self, subject: usize, bucket: usize) -> bool {
        match self.buckets[&bucket].maker {
            Some(maker) => maker == subject,
            None => [READ, WRITE, LIST, DELETE]
                .iter()
                .all(|right| self.is_granted(subject, bucket, *right)),
        }
    }

    /// That an object is missing is told to those who may list.
    pub(crate) fn missing(&self, subject: usize, bucket: usize) -> Outcome {
        if self.is_shared(bucket) && !self.lets(subject, bucket, LIST) {
            Outcome::Denied
        } else {
            Outcome::NoSuchObject
        }
    }

    /// Whether a subject may say who else may use a bucket; otherwise why not.
    pub(crate) fn says_who_may(
        &mut self,
        subject: usize,
        bucket: usize,
    ) -> std::result::Result<(), Outcome> {
        let writes = self.writes(subject, bucket)?;
        let owns = self.owns(subject, bucket);
        // Where there is a policy, it is asked before what the subject has read.
        if !writes {
            return Err(Outcome::Denied);
        }
        if !self.is_granted(subject, bucket, WRITE) || self.is_shared(bucket) && !owns {
            return Err(self.refused(subject, bucket));
        }
        self.carries_nothing_down(subject, self.buckets[&bucket].level)?;
        if owns { Ok(()) } else { Err(Outcome::Denied) }
    }

    pub(crate) fn set_policy(
        &mut self,
        subject: usize,
        bucket: usize,
        statements: &[Statement],
    ) -> std::result::Result<Outcome, Outcome> {
        self.says_who_may(subject, bucket)?;
        // What is taken and what is refused tells of what others have set.
        self.is_told(subject, bucket);
        self.buckets.get_mut(&bucket).unwrap().policy = statements.to_vec();
        Ok(Outcome::Done)
    }
}

/// What an operation asks for, as a front door would say it.
fn actions(wish: &Wish) -> Vec<AskedAction> {
    let on_object = |bucket: usize, action, object| AskedAction {
        bucket: bucket_name(bucket),
        action,
        on: AskedOf::Object(object_name(object), Which::Current),
    };
    let on_bucket = |bucket: usize, action| AskedAction {
        bucket: bucket_name(bucket),
        action,
        on: AskedOf::Bucket,
    };
    match *wish {
        Wish::Put { bucket, object }
        | Wish::BeginPut { bucket, object }
        | Wish::SetTags { bucket, object } => vec![on_object(bucket, Action::PutObject, object)],
        Wish::Upload { bucket } => vec![on_object(bucket, Action::PutObject, 0)],
        Wish::Get { bucket, object } | Wish::Head { bucket, object } => {
            vec![on_object(bucket, Action::GetObject, object)]
        }
        Wish::Delete { bucket, object } => vec![on_object(bucket, Action::DeleteObject, object)],
        Wish::List { bucket } | Wish::ListUploads { bucket } | Wish::HeadBucket { bucket } => {
            vec![on_bucket(bucket, Action::ListBucket)]
        }
        Wish::DeleteBucket { bucket } => vec![on_bucket(bucket, Action::DeleteBucket)],
        Wish::SetPolicy { bucket, .. } => vec![on_bucket(bucket, Action::PutBucketPolicy)],
        Wish::SetLists { bucket, .. } => vec![
            on_bucket(bucket, Action::PutBucketOwnershipControls),
            on_bucket(bucket, Action::PutBucketAcl),
        ],
        Wish::Copy {
            from,
            object,
            to,
            name,
        } => vec![
            on_object(to, Action::PutObject, name),
            on_object(from, Action::GetObject, object),
        ],
        _ => Vec::new(),
    }
}

impl World {
    /// The subject as it asks for this, where a policy is to be asked.
    pub(crate) fn asking(&self, subject: Arc<Subject>, wish: &Wish) -> Arc<Subject> {
        let actions = actions(wish);
        let is_shared = |asked: &AskedAction| self.vault.is_shared(&subject, asked.bucket.as_str());
        if !actions.iter().any(is_shared) {
            return subject;
        }
        Arc::new(subject.asking(Asked {
            actions,
            time: Timestamp::from_seconds(1_790_000_000),
            values: Arc::new(NoValues),
            asks: None,
        }))
    }

    pub(crate) async fn set_policy(
        &self,
        subject: &Arc<Subject>,
        bucket: usize,
        statements: &[Statement],
    ) -> Result<Outcome> {
        let name = bucket_name(bucket);
        let json = |statement: &Statement| {
            let effect = if statement.denies { "Deny" } else { "Allow" };
            let principal = match statement.whom {
                None => "\"*\"".to_owned(),
                // By name only those could be named that the asker may know.
                Some(whom) => format!("{{\"AWS\": \"{}\"}}", self.subject_ids[whom]),
            };
            let named = ["GetObject", "PutObject", "ListBucket", "DeleteObject"];
            let rights = statement.rights.iter();
            let actions: Vec<_> = rights
                .map(|right| format!("\"s3:{}\"", named[*right]))
                .collect();
            format!(
                "{{\"Effect\": \"{effect}\", \"Principal\": {principal}, \"Action\": [{}], \
                 \"Resource\": [\"arn:aws:s3:::{name}\", \"arn:aws:s3:::{name}/*\"]}}",
                actions.join(", ")
            )
        };
        let statements: Vec<_> = statements.iter().map(json).collect();
        let policy = format!("{{\"Statement\": [{}]}}", statements.join(", "));
        let policy = (!statements.is_empty()).then_some(policy.as_bytes());
        self.vault.set_bucket_policy(subject, &name, policy).await?;
        Ok(Outcome::Done)
    }
}
