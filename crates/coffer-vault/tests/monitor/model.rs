//! The model: what Bell and LaPadula's rules, roles and grants come to, in as few words as
//! possible, with sets instead of bits and nothing of the vault's code.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::known_in;
use crate::operations::{BUCKETS, LEVELS, Operation, Outcome, Wish};
use crate::start::{Label, Start, Subject, first_content};

pub(crate) const DATA_USER: usize = 0;
pub(crate) const ADMINISTRATOR: usize = 1;
pub(crate) const CUSTODIAN: usize = 2;
pub(crate) const AUDITOR: usize = 3;

const READ: usize = 0;
const WRITE: usize = 1;
const LIST: usize = 2;
const DELETE: usize = 3;

/// A put whose bytes have not come.
#[derive(Clone, Debug)]
pub(crate) struct LongPut {
    pub(crate) subject: usize,
    pub(crate) cuts: usize,
    pub(crate) bucket: usize,
    pub(crate) object: usize,
    /// Whether the bucket has been deleted since.
    pub(crate) homeless: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) level: usize,
    /// Contents by object.
    pub(crate) objects: BTreeMap<usize, String>,
    pub(crate) has_uploads: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) levels: Vec<Label>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) buckets: BTreeMap<usize, Bucket>,
    pub(crate) long: Option<LongPut>,
}

/// The rights, unless the subject may not know of the bucket.
struct Knows {
    rights: BTreeSet<usize>,
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

    /// What the subject may do in a bucket, if it may know of it.
    fn knows(&self, subject: usize, number: usize) -> Option<Knows> {
        let (subject, bucket) = (&self.subjects[subject], self.buckets.get(&number)?);
        let label = self.label_of(bucket);
        let all: BTreeSet<usize> = [READ, WRITE, LIST, DELETE].into();
        let granted = match &subject.grants {
            None => all,
            Some(grants) => grants.get(&number)?.clone(),
        };
        let reads = subject.high.dominates(label);
        let writes = reads && label.dominates(&subject.low);
        let by_label = |right: &usize| match *right {
            WRITE | DELETE => writes,
            _ => reads,
        };
        let rights = granted.into_iter().filter(by_label).collect();
        reads.then_some(Knows { rights })
    }

    /// Whether a data user has a right in a bucket; otherwise why not.
    fn use_right(&self, subject: usize, bucket: usize, right: usize) -> Result<(), Outcome> {
        if !self.subjects[subject].roles.contains(&DATA_USER) {
            return Err(Outcome::Denied);
        }
        let knows = self.knows(subject, bucket).ok_or(Outcome::NoSuchBucket)?;
        if !knows.rights.contains(&right) {
            return Err(Outcome::Denied);
        }
        if [WRITE, DELETE].contains(&right) {
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
                self.use_right(subject, bucket, WRITE)?;
                let content = self.sentence(subject, bucket, object);
                self.objects(bucket).insert(object, content);
            }
            Wish::Get { bucket, object } => {
                self.use_right(subject, bucket, READ)?;
                self.is_told(subject, bucket);
                let content = self.content(bucket, object)?;
                self.subjects[subject].memory.extend(known_in(&content));
                return Ok(Outcome::Content(content));
            }
            Wish::Head { bucket, object } => {
                self.use_right(subject, bucket, READ)?;
                self.is_told(subject, bucket);
                self.content(bucket, object)?;
            }
            Wish::Delete { bucket, object } => {
                self.use_right(subject, bucket, DELETE)?;
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
                self.use_right(subject, to, WRITE)?;
                self.use_right(subject, from, READ)?;
                let [from_label, to_label] =
                    [from, to].map(|bucket| self.label_of(&self.buckets[&bucket]));
                if !to_label.dominates(from_label) {
                    return Err(Outcome::Denied);
                }
                self.is_told(subject, from);
                let content = self.content(from, object)?;
                self.objects(to).insert(name, content);
            }
            Wish::SetTags { bucket, object } => {
                self.use_right(subject, bucket, WRITE)?;
                self.is_told(subject, bucket);
                self.content(bucket, object)?;
            }
            Wish::Upload { bucket } => {
                self.use_right(subject, bucket, WRITE)?;
                self.buckets.get_mut(&bucket).unwrap().has_uploads = true;
            }
            Wish::ListUploads { bucket } => {
                self.use_right(subject, bucket, LIST)?;
                self.is_told(subject, bucket);
            }
            Wish::BeginPut { bucket, object } => {
                if self.long.is_none() {
                    self.use_right(subject, bucket, WRITE)?;
                    self.begin_put(subject, bucket, object);
                }
            }
            _ => unreachable!("not on data"),
        }
        Ok(Outcome::Done)
    }

    pub(crate) fn objects(&mut self, bucket: usize) -> &mut BTreeMap<usize, String> {
        &mut self.buckets.get_mut(&bucket).unwrap().objects
    }

    pub(crate) fn content(&self, bucket: usize, object: usize) -> Result<String, Outcome> {
        let found = self.buckets[&bucket].objects.get(&object);
        found.cloned().ok_or(Outcome::NoSuchObject)
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
                let known = self.knows(number, bucket).is_some();
                self.make(
                    bucket,
                    level,
                    if known {
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
                self.make(bucket, level, Outcome::OwnedByYou)
            }
            Wish::DeleteBucket { bucket } => {
                self.use_right(number, bucket, DELETE)?;
                self.is_told(number, bucket);
                self.remove(bucket)
            }
            Wish::WithdrawBucket { bucket } => {
                let knows = looks_after
                    || subject.roles.contains(&DATA_USER) && self.knows(number, bucket).is_some();
                if !knows || !self.buckets.contains_key(&bucket) {
                    return Err(Outcome::NoSuchBucket);
                }
                has(ADMINISTRATOR)?;
                self.carries_nothing_down(number, self.buckets[&bucket].level)?;
                self.remove(bucket)
            }
            Wish::HeadBucket { bucket } => {
                has(DATA_USER)?;
                let knows = self.knows(number, bucket);
                knows.map(|_| Outcome::Done).ok_or(Outcome::NoSuchBucket)
            }
            Wish::ListBuckets => {
                has(DATA_USER)?;
                let known = (0..BUCKETS).filter(|bucket| self.knows(number, *bucket).is_some());
                Ok(Outcome::Buckets(known.collect()))
            }
            Wish::CreateLevel => has(CUSTODIAN).map(|()| Outcome::Done),
            _ => unreachable!("not on buckets"),
        }
    }

    fn make(&mut self, bucket: usize, level: usize, taken: Outcome) -> Result<Outcome, Outcome> {
        if self.buckets.contains_key(&bucket) {
            return Err(taken);
        }
        let made = Bucket {
            level,
            objects: BTreeMap::new(),
            has_uploads: false,
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
