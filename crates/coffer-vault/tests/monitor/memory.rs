//! What subjects of the model know, and what they write of it.

use std::collections::BTreeSet;

use crate::model::{LongPut, Model, WRITE};
use crate::operations::{Operation, Outcome, Wish};

/// The levels that a sentence tells of.
pub(crate) fn known_in(sentence: &str) -> impl Iterator<Item = usize> {
    let (_, known) = sentence.split_once("knowing ").unwrap();
    let numbers = known.trim_matches(['[', ']']).split(", ");
    numbers.filter_map(|number| number.parse().ok())
}

impl Model {
    /// Whether what the subject has read lets it write at a level.
    pub(crate) fn carries_nothing_down(&self, subject: usize, level: usize) -> Result<(), Outcome> {
        let (subject, label) = (&self.subjects[subject], &self.levels[level]);
        if subject.trusted || subject.read.iter().all(|read| label.dominates(read)) {
            Ok(())
        } else {
            Err(Outcome::ReadAbove)
        }
    }

    /// The subject is told something of a bucket.
    pub(crate) fn is_told(&mut self, subject: usize, bucket: usize) {
        let level = self.buckets[&bucket].level;
        let label = self.levels[level].clone();
        let subject = &mut self.subjects[subject];
        subject.memory.insert(level);
        if !subject.trusted && subject.low != subject.high && !subject.low.dominates(&label) {
            subject.read.push(label);
        }
    }

    /// What is refused by labels alone tells of nothing; by a policy or a list, that there is one.
    pub(crate) fn refused(&mut self, subject: usize, bucket: usize) -> Outcome {
        if self.is_shared(bucket) {
            self.is_told(subject, bucket);
        }
        Outcome::Denied
    }

    /// What a subject writes: all that it knows, unless it is trusted not to.
    pub(crate) fn sentence(&self, subject: usize, bucket: usize, object: usize) -> String {
        let nothing = BTreeSet::new();
        let memory = if self.subjects[subject].trusted {
            &nothing
        } else {
            &self.subjects[subject].memory
        };
        let known: Vec<usize> = memory.iter().copied().collect();
        format!("{bucket}/{object} by {subject} knowing {known:?}")
    }

    /// What an operation writes, if it writes.
    pub(crate) fn next_sentence(&self, operation: &Operation) -> String {
        match operation.wish {
            Wish::Put { bucket, object } => self.sentence(operation.subject, bucket, object),
            _ => self.long_sentence().unwrap_or_default(),
        }
    }

    /// The sentence of the put that is under way.
    fn long_sentence(&self) -> Option<String> {
        let LongPut {
            subject,
            bucket,
            object,
            ..
        } = self.long.as_ref()?;
        Some(self.sentence(*subject, *bucket, *object))
    }

    /// The first object that tells of a level which its own label doesn't dominate.
    pub(crate) fn carried_down(&self) -> Option<&String> {
        self.buckets.values().find_map(|bucket| {
            let label = self.label_of(bucket);
            let is_above = |level: usize| !label.dominates(&self.levels[level]);
            let mut contents = bucket.objects.values();
            contents.find(|text| known_in(text).any(is_above))
        })
    }

    pub(crate) fn begin_put(&mut self, subject: usize, bucket: usize, object: usize) {
        self.long = Some(LongPut {
            subject,
            cuts: self.subjects[subject].cuts,
            bucket,
            object,
            homeless: false,
            asked: self.is_shared(bucket),
            owner: self.owner_of_new(subject, bucket),
        });
    }

    pub(crate) fn end_put(&mut self) -> Result<Outcome, Outcome> {
        let content = self.long_sentence();
        let Some(long) = self.long.take() else {
            return Ok(Outcome::Done);
        };
        if long.cuts != self.subjects[long.subject].cuts {
            return Err(Outcome::Denied);
        }
        if long.homeless {
            return Err(Outcome::NoSuchBucket);
        }
        self.carries_nothing_down(long.subject, self.buckets[&long.bucket].level)?;
        let now_shared = self.is_shared(long.bucket);
        if now_shared && !long.asked {
            return Err(Outcome::Changed);
        }
        if (now_shared || long.asked) && !self.lets(long.subject, long.bucket, WRITE) {
            return Err(self.refused(long.subject, long.bucket));
        }
        if long.owner.is_some() && !self.has_lists(long.bucket) {
            return Err(Outcome::Changed);
        }
        if let Some(content) = content {
            self.place(long.bucket, long.object, content, long.owner);
        }
        Ok(Outcome::Done)
    }
}
