//! The model: what Bell and LaPadula's rules, roles, grants and policies come to, in as few words
//! as possible, with sets instead of bits and nothing of the vault's code.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::known_in;
use crate::operations::{BUCKETS, LEVELS, Operation, Outcome, Wish};
use crate::policies::Statement;
use crate::start::{Label, Start, Subject, first_content};

pub(crate) const DATA_USER: usize = 0;
pub(crate) const ADMINISTRATOR: usize = 1;
pub(crate) const CUSTODIAN: usize = 2;
pub(crate) const AUDITOR: usize = 3;

pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const LIST: usize = 2;
pub(crate) const DELETE: usize = 3;

/// A put whose bytes have not come.
#[derive(Clone, Debug)]
pub(crate) struct LongPut {
    pub(crate) subject: usize,
    pub(crate) cuts: usize,
    pub(crate) bucket: usize,
    pub(crate) object: usize,
    /// Whether the bucket has been deleted since.
    pub(crate) homeless: bool,
    /// Whether there was a policy when it began, or lists.
    pub(crate) asked: bool,
    /// Whose the object was to be when it began; none: the bucket's owner's.
    pub(crate) owner: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) level: usize,
    /// Contents by object.
    pub(crate) objects: BTreeMap<usize, String>,
    pub(crate) has_uploads: bool,
    /// The subject that made it as a data user.
    pub(crate) maker: Option<usize>,
    /// None: no policy.
    pub(crate) policy: Vec<Statement>,
    /// Who may list it by its list; none: lists don't count.
    pub(crate) readers: Option<BTreeSet<usize>>,
    /// Who owns objects; without one, who made the bucket.
    pub(crate) owners: BTreeMap<usize, usize>,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) levels: Vec<Label>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) buckets: BTreeMap<usize, Bucket>,
    pub(crate) long: Option<LongPut>,
}

impl Model {
    pub(crate) fn new(start: &Start) -> Self {
        let default = Label {
            rank: 0,
            categories: BTreeSet::new(),
        };
        let levels = [default].into_iter().chain(start.levels.clone()).collect();
        let bucket = |level| Bucket {
            level,
            objects: [(0, first_content(level))].into(),
            has_uploads: false,
            maker: None,
            policy: Vec::new(),
            readers: None,
            owners: BTreeMap::new(),
        };
        Self {
            levels,
            subjects: start.subjects.clone(),
            buckets: (0..LEVELS).map(|level| (level, bucket(level))).collect(),
            long: None,
        }
    }

    pub(crate) fn label_of(&self, bucket: &Bucket) -> &Label {
        &self.levels[bucket.level]
    }

    /// Whether the subject may know of a bucket by its grants.
    fn knows(&self, subject: usize, number: usize) -> bool {
        let grants = self.subjects[subject].grants.as_ref();
        let is_granted = grants.is_none_or(|grants| grants.contains_key(&number));
        self.buckets.contains_key(&number) && is_granted && self.reads(subject, number)
    }

    /// Whether the label lets a data user write in a bucket that it may know of.
    pub(crate) fn writes(&self, subject: usize, bucket: usize) -> Result<bool, Outcome> {
        if !self.subjects[subject].roles.contains(&DATA_USER) {
            return Err(Outcome::Denied);
        }
        self.is_known(subject, bucket)?;
        let (subject, label) = (
            &self.subjects[subject],
            self.label_of(&self.buckets[&bucket]),
        );
        Ok(label.dominates(&subject.low))
    }

    fn reads(&self, subject: usize, bucket: usize) -> bool {
        let label = self.label_of(&self.buckets[&bucket]);
        self.subjects[subject].high.dominates(label)
    }

    /// A bucket that the subject may know of: by its grants, or because its policy shares it.
    fn is_known(&self, subject: usize, bucket: usize) -> Result<(), Outcome> {
        self.buckets.get(&bucket).ok_or(Outcome::NoSuchBucket)?;
        let is_shared = self.reads(subject, bucket) && self.is_shared_with(subject, bucket);
        if is_shared || self.knows(subject, bucket) {
            Ok(())
        } else {
            Err(Outcome::NoSuchBucket)
        }
    }

    /// Whether a data user has a right in a bucket; otherwise why not.
    pub(crate) fn use_right(
        &mut self,
        subject: usize,
        bucket: usize,
        right: usize,
    ) -> Result<(), Outcome> {
        let writes = self.writes(subject, bucket)?;
        let changes = [WRITE, DELETE].contains(&right);
        if changes && !writes {
            return Err(Outcome::Denied);
        }
        if !self.lets(subject, bucket, right) {
            return Err(self.refused(subject, bucket));
        }
        if changes {
            self.carries_nothing_down(subject, self.buckets[&bucket].level)
        } else {
            Ok(())
        }
    }

    /// What should come of an operation; what it changes is changed here.
    pub(crate) fn outcome(&mut self, operation: &Operation) -> Outcome {
        let Operation { subject, wish } = operation;
        if matches!(wish, Wish::EndPut) {
            return self.end_put().unwrap_or_else(|refusal| refusal);
        }
        if self.subjects[*subject].disabled {
            return Outcome::NoSuchAccessKey;
        }
        let outcome = match wish {
            Wish::Grant { .. }
            | Wish::Revoke { .. }
            | Wish::AllBuckets { .. }
            | Wish::Roles { .. }
            | Wish::Clearance { .. }
            | Wish::Trust { .. }
            | Wish::Settle { .. }
            | Wish::Switch { .. } => self.on_subject(*subject, wish),
            Wish::SetPolicy { bucket, statements } => {
                self.set_policy(*subject, *bucket, statements)
            }
            Wish::SetLists { bucket, readers } => {
                self.set_lists(*subject, *bucket, readers.as_ref())
            }
            Wish::CreateBucket { .. }
            | Wish::DeleteBucket { .. }
            | Wish::HeadBucket { .. }
            | Wish::ListBuckets
            | Wish::ProvideBucket { .. }
            | Wish::WithdrawBucket { .. }
            | Wish::CreateLevel => self.on_bucket(*subject, wish),
            _ => self.on_data(*subject, wish),
        };
        outcome.unwrap_or_else(|refusal| refusal)
    }

    fn on_data(&mut self, subject: usize, wish: &Wish) -> Result<Outcome, Outcome> {
        match *wish {
            Wish::Put { bucket, object } => {
                self.use_object(subject, bucket, WRITE, object)?;
                let content = self.sentence(subject, bucket, object);
                let owner = self.owner_of_new(subject, bucket);
                self.place(bucket, object, content, owner);
            }
            Wish::Get { bucket, object } => {
                self.use_object(subject, bucket, READ, object)?;
                self.is_told(subject, bucket);
                let content = self.told_content(subject, bucket, object)?;
                self.subjects[subject].memory.extend(known_in(&content));
                return Ok(Outcome::Content(content));
            }
            Wish::Head { bucket, object } => {
                self.use_object(subject, bucket, READ, object)?;
                self.is_told(subject, bucket);
                self.told_content(subject, bucket, object)?;
            }
            Wish::Delete { bucket, object } => {
                self.use_object(subject, bucket, DELETE, object)?;
                self.objects(bucket).remove(&object);
            }
            Wish::List { bucket } => {
                self.use_right(subject, bucket, LIST)?;
                self.is_told(subject, bucket);
                let names = self.objects(bucket).keys().copied().collect();
                return Ok(Outcome::Objects(names));
            }
            Wish::Copy {
                from,
                object,
                to,
                name,
            } => {
                self.copy(subject, (from, object), (to, name))?;
            }
            Wish::SetTags { bucket, object } => {
                self.use_object(subject, bucket, WRITE, object)?;
                self.is_told(subject, bucket);
                self.told_content(subject, bucket, object)?;
            }
            Wish::Upload { bucket } => {
                self.use_object(subject, bucket, WRITE, 0)?;
                self.buckets.get_mut(&bucket).unwrap().has_uploads = true;
            }
            Wish::ListUploads { bucket } => {
                self.use_right(subject, bucket, LIST)?;
                self.is_told(subject, bucket);
            }
            Wish::BeginPut { bucket, object } => {
                if self.long.is_none() {
                    self.use_object(subject, bucket, WRITE, object)?;
                    self.begin_put(subject, bucket, object);
                }
            }
            _ => unreachable!("not on data"),
        }
        Ok(Outcome::Done)
    }

    /// A look at a bucket, which is one at its listing where a policy is asked: that tells of the
    /// policy, whatever it says.
    fn look(&mut self, subject: usize, bucket: usize) -> Result<Outcome, Outcome> {
        self.is_known(subject, bucket)?;
        if self.is_shared(bucket) {
            if !self.lets(subject, bucket, LIST) {
                return Err(self.refused(subject, bucket));
            }
            self.is_told(subject, bucket);
        }
        Ok(Outcome::Done)
    }

    /// Whether a data user may delete a bucket: statements are of objects and of listing, so its
    /// grants alone say so.
    fn may_delete(&mut self, subject: usize, bucket: usize) -> Result<(), Outcome> {
        if !self.writes(subject, bucket)? {
            return Err(Outcome::Denied);
        }
        if !self.is_granted(subject, bucket, DELETE) {
            return Err(self.refused(subject, bucket));
        }
        self.carries_nothing_down(subject, self.buckets[&bucket].level)
    }

    pub(crate) fn objects(&mut self, bucket: usize) -> &mut BTreeMap<usize, String> {
        &mut self.buckets.get_mut(&bucket).unwrap().objects
    }

    pub(crate) fn told_content(
        &self,
        subject: usize,
        bucket: usize,
        object: usize,
    ) -> Result<String, Outcome> {
        let found = self.buckets[&bucket].objects.get(&object);
        found.cloned().ok_or_else(|| self.missing(subject, bucket))
    }

    fn on_bucket(&mut self, number: usize, wish: &Wish) -> Result<Outcome, Outcome> {
        let subject = self.subjects[number].clone();
        let has = |role| {
            if subject.roles.contains(&role) {
                Ok(())
            } else {
                Err(Outcome::Denied)
            }
        };
        let looks_after = [ADMINISTRATOR, CUSTODIAN, AUDITOR];
        let looks_after = looks_after.iter().any(|role| subject.roles.contains(role));
        match *wish {
            Wish::CreateBucket { bucket, level } => {
                let label = &self.levels[level];
                if !subject.high.dominates(label) || !label.dominates(&subject.low) {
                    return Err(Outcome::NoSuchLevel);
                }
                self.carries_nothing_down(number, level)?;
                if subject.grants.is_some() {
                    return Err(Outcome::Denied);
                }
                has(DATA_USER)?;
                let is_own = self.is_known(number, bucket).is_ok() && self.owns(number, bucket);
                self.make(
                    bucket,
                    level,
                    Some(number),
                    if is_own {
                        Outcome::OwnedByYou
                    } else {
                        Outcome::Exists
                    },
                )
            }
            Wish::ProvideBucket { bucket, level } => {
                if !looks_after && !subject.high.dominates(&self.levels[level]) {
                    return Err(Outcome::NoSuchLevel);
                }
                has(ADMINISTRATOR)?;
                self.carries_nothing_down(number, level)?;
                self.make(bucket, level, None, Outcome::OwnedByYou)
            }
            Wish::DeleteBucket { bucket } => {
                self.may_delete(number, bucket)?;
                self.is_told(number, bucket);
                self.remove(bucket)
            }
            Wish::WithdrawBucket { bucket } => {
                let knows =
                    looks_after || subject.roles.contains(&DATA_USER) && self.knows(number, bucket);
                if !knows || !self.buckets.contains_key(&bucket) {
                    return Err(Outcome::NoSuchBucket);
                }
                has(ADMINISTRATOR)?;
                self.carries_nothing_down(number, self.buckets[&bucket].level)?;
                self.remove(bucket)
            }
            Wish::HeadBucket { bucket } => {
                has(DATA_USER)?;
                self.look(number, bucket)
            }
            Wish::ListBuckets => {
                has(DATA_USER)?;
                let known = (0..BUCKETS).filter(|bucket| self.knows(number, *bucket));
                Ok(Outcome::Buckets(known.collect()))
            }
            Wish::CreateLevel => has(CUSTODIAN).map(|()| Outcome::Done),
            _ => unreachable!("not on buckets"),
        }
    }

    fn make(
        &mut self,
        bucket: usize,
        level: usize,
        maker: Option<usize>,
        taken: Outcome,
    ) -> Result<Outcome, Outcome> {
        if self.buckets.contains_key(&bucket) {
            return Err(taken);
        }
        let made = Bucket {
            level,
            objects: BTreeMap::new(),
            has_uploads: false,
            maker,
            policy: Vec::new(),
            readers: None,
            owners: BTreeMap::new(),
        };
        self.buckets.insert(bucket, made);
        Ok(Outcome::Done)
    }

    fn remove(&mut self, bucket: usize) -> Result<Outcome, Outcome> {
        let found = &self.buckets[&bucket];
        if found.has_uploads || !found.objects.is_empty() {
            return Err(Outcome::NotEmpty);
        }
        self.buckets.remove(&bucket);
        if let Some(long) = self.long.as_mut().filter(|long| long.bucket == bucket) {
            long.homeless = true;
        }
        for subject in &mut self.subjects {
            subject.grants.as_mut().map(|grants| grants.remove(&bucket));
        }
        Ok(Outcome::Done)
    }
}
