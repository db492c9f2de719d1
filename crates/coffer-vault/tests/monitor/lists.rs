//! Access control lists: what the model makes of them, and how the vault is told of them. A
//! bucket's list lets some of the subjects list it, and what an object's owner has is its own list.
//! What a subject owns gives it nothing that its grants leave out, unless it may write there by
//! leave of a policy alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use coffer_vault::policy::{CannedAcl, ObjectOwnership, Permission};
use coffer_vault::{AskedAcl, AskedGrant, AskedGrantee, Result, Subject};
use proptest::prelude::*;

use crate::model::{DELETE, LIST, Model, READ, WRITE};
use crate::operations::{BUCKETS, Outcome, SUBJECTS, Wish};
use crate::world::{World, bucket_name};

/// A wish to have lists count, with these who may list the bucket, or to have none count.
pub(crate) fn wish() -> impl Strategy<Value = Wish> {
    let readers = prop::collection::btree_set(0..SUBJECTS, 0..3);
    (0..BUCKETS, prop::option::weighted(0.8, readers))
        .prop_map(|(bucket, readers)| Wish::SetLists { bucket, readers })
}

impl Model {
    pub(crate) fn has_lists(&self, bucket: usize) -> bool {
        self.buckets[&bucket].readers.is_some()
    }

    /// Whose an object is, where it is there and a subject's.
    fn owner(&self, bucket: usize, object: usize) -> Option<usize> {
        let bucket = &self.buckets[&bucket];
        bucket.objects.get(&object)?;
        bucket.owners.get(&object).copied().or(bucket.maker)
    }

    /// Whether a list gives a subject a right, in a bucket or of an object.
    pub(crate) fn lists_give(
        &self,
        subject: usize,
        bucket: usize,
        right: usize,
        object: Option<usize>,
    ) -> bool {
        let Some(readers) = &self.buckets[&bucket].readers else {
            return false;
        };
        match (right, object) {
            (LIST, _) => readers.contains(&subject) && !self.is_narrowed(subject, bucket),
            (READ, Some(object)) => {
                let owns = self.owner(bucket, object) == Some(subject);
                owns && (!self.has_grants(subject) || self.is_guest(subject, bucket))
            }
            _ => false,
        }
    }

    fn has_grants(&self, subject: usize) -> bool {
        self.subjects[subject].grants.is_some()
    }

    /// Whether it is the bucket's maker, to whom its grants leave some of it.
    fn is_narrowed(&self, subject: usize, bucket: usize) -> bool {
        self.has_grants(subject) && self.buckets[&bucket].maker == Some(subject)
    }

    /// Whether a subject may write in a bucket by leave of its policy alone.
    fn is_guest(&self, subject: usize, bucket: usize) -> bool {
        self.allows(subject, bucket, WRITE) && !self.is_granted(subject, bucket, WRITE)
    }

    /// Who would own what a subject writes in a bucket: none is the bucket's owner.
    pub(crate) fn owner_of_new(&self, subject: usize, bucket: usize) -> Option<usize> {
        let is_others = self.buckets[&bucket].maker != Some(subject);
        (self.has_lists(bucket) && is_others).then_some(subject)
    }

    /// Puts an object in its place, with its owner.
    pub(crate) fn place(
        &mut self,
        bucket: usize,
        object: usize,
        content: String,
        owner: Option<usize>,
    ) {
        let bucket = self.buckets.get_mut(&bucket).unwrap();
        bucket.objects.insert(object, content);
        bucket.owners.remove(&object);
        bucket.owners.extend(owner.map(|owner| (object, owner)));
    }

    /// Whether a data user has a right to an object; otherwise why not. Where lists count, that is
    /// known only once there was a look at the object.
    pub(crate) fn use_object(
        &mut self,
        subject: usize,
        bucket: usize,
        right: usize,
        object: usize,
    ) -> std::result::Result<(), Outcome> {
        let writes = self.writes(subject, bucket)?;
        if !self.has_lists(bucket) {
            return self.use_right(subject, bucket, right);
        }
        let changes = [WRITE, DELETE].contains(&right);
        if changes {
            if !writes {
                return Err(Outcome::Denied);
            }
            self.carries_nothing_down(subject, self.buckets[&bucket].level)?;
        } else {
            self.is_told(subject, bucket);
        }
        self.lets_at_object(subject, bucket, right, object)
    }

    fn lets_at_object(
        &mut self,
        subject: usize,
        bucket: usize,
        right: usize,
        object: usize,
    ) -> std::result::Result<(), Outcome> {
        if self.lets_on(subject, bucket, right, Some(object)) {
            return Ok(());
        }
        self.is_told(subject, bucket);
        let is_missing = !self.buckets[&bucket].objects.contains_key(&object);
        if right == READ && is_missing && self.lets(subject, bucket, LIST) {
            Err(Outcome::NoSuchObject)
        } else {
            Err(Outcome::Denied)
        }
    }

    pub(crate) fn copy(
        &mut self,
        subject: usize,
        (from, object): (usize, usize),
        (to, name): (usize, usize),
    ) -> std::result::Result<(), Outcome> {
        let writes = self.writes(subject, to)?;
        // All that is asked of one bucket is asked at once.
        let is_asked = self.is_shared(to) && !self.has_lists(to);
        if from == to && is_asked && writes && !self.lets(subject, to, READ) {
            return Err(self.refused(subject, to));
        }
        if self.has_lists(to) {
            if !writes {
                return Err(Outcome::Denied);
            }
            self.carries_nothing_down(subject, self.buckets[&to].level)?;
        } else {
            self.use_right(subject, to, WRITE)?;
        }
        self.writes(subject, from)?;
        if !self.has_lists(from) {
            self.use_right(subject, from, READ)?;
        }
        let [from_label, to_label] = [from, to].map(|bucket| self.label_of(&self.buckets[&bucket]));
        if !to_label.dominates(from_label) {
            return Err(Outcome::Denied);
        }
        self.is_told(subject, from);
        if self.has_lists(from) {
            if from == to {
                self.lets_at_object(subject, to, WRITE, name)?;
            }
            self.lets_at_object(subject, from, READ, object)?;
        }
        let content = self.told_content(subject, from, object)?;
        if self.has_lists(to) {
            self.lets_at_object(subject, to, WRITE, name)?;
        }
        let owner = self.owner_of_new(subject, to);
        self.place(to, name, content, owner);
        Ok(())
    }

    pub(crate) fn set_lists(
        &mut self,
        subject: usize,
        bucket: usize,
        readers: Option<&BTreeSet<usize>>,
    ) -> std::result::Result<Outcome, Outcome> {
        self.says_who_may(subject, bucket)?;
        self.is_told(subject, bucket);
        self.buckets.get_mut(&bucket).unwrap().readers = readers.cloned();
        Ok(Outcome::Done)
    }
}

impl World {
    pub(crate) async fn set_lists(
        &self,
        subject: &Arc<Subject>,
        wish: &Wish,
        (bucket, readers): (usize, Option<&BTreeSet<usize>>),
    ) -> Result<Outcome> {
        let (vault, name) = (&self.vault, bucket_name(bucket));
        // After the first step, something is to be asked, or nothing any more.
        let asking = || self.asking(subject.clone(), wish);
        let set = |ownership| {
            let asking = asking();
            let name = name.clone();
            async move {
                vault
                    .set_object_ownership(&asking, &name, Some(ownership))
                    .await
            }
        };
        if let Some(readers) = readers {
            set(ObjectOwnership::ObjectWriter).await?;
            let grant = |reader: &usize| AskedGrant {
                to: AskedGrantee::Id(self.subject_ids[*reader].clone()),
                permission: Permission::Read,
            };
            let list = AskedAcl::Grants(readers.iter().map(grant).collect());
            vault.set_bucket_acl(&asking(), &name, list).await?;
        } else {
            // Taken whether lists count or not, and nothing is given to others.
            let none = AskedAcl::Canned(CannedAcl::BucketOwnerFullControl);
            vault.set_bucket_acl(&asking(), &name, none).await?;
            set(ObjectOwnership::BucketOwnerEnforced).await?;
        }
        Ok(Outcome::Done)
    }
}
