//! Changes of the model's subjects.

use crate::model::{ADMINISTRATOR, CUSTODIAN, Model};
use crate::operations::{Outcome, Wish};

impl Model {
    pub(crate) fn on_subject(&mut self, number: usize, wish: &Wish) -> Result<Outcome, Outcome> {
        if let Wish::Settle { whom } = wish {
            return self.settle(number, *whom);
        }
        let before = self.subjects.clone();
        let outcome = self.change(number, wish)?;
        for (before, after) in before.iter().zip(&mut self.subjects) {
            let same_range = (&before.low, &before.high, before.trusted)
                == (&after.low, &after.high, after.trusted);
            if !same_range {
                // What who does not float has read is not known.
                let floated = !before.trusted && before.low != before.high;
                let unknown = if floated { &before.low } else { &before.high };
                after.read.push(unknown.clone());
            }
            let keeps_access = same_range
                && !after.disabled
                && after.roles.is_superset(&before.roles)
                && after.grants == before.grants;
            after.cuts += usize::from(!keeps_access);
        }
        Ok(outcome)
    }

    fn settle(&mut self, number: usize, whom: usize) -> Result<Outcome, Outcome> {
        if !self.subjects[number].roles.contains(&CUSTODIAN) {
            return Err(Outcome::Denied);
        }
        if number == whom {
            return Err(Outcome::Itself);
        }
        let settled = &mut self.subjects[whom];
        settled.read.clear();
        settled.memory.clear();
        settled.cuts += 1;
        Ok(Outcome::Done)
    }

    fn change(&mut self, number: usize, wish: &Wish) -> Result<Outcome, Outcome> {
        if !self.subjects[number].roles.contains(&ADMINISTRATOR) {
            return Err(Outcome::Denied);
        }
        match wish {
            Wish::Grant {
                whom,
                bucket,
                rights,
            } => {
                if !self.buckets.contains_key(bucket) {
                    return Err(Outcome::NoSuchBucket);
                }
                if rights.is_empty() {
                    return Err(Outcome::Invalid);
                }
                let grants = &mut self.subjects[*whom].grants;
                grants
                    .get_or_insert_default()
                    .insert(*bucket, rights.clone());
            }
            Wish::Revoke { whom, bucket } => {
                let grants = self.subjects[*whom].grants.as_mut();
                let grants = grants.ok_or(Outcome::Invalid)?;
                if !self.buckets.contains_key(bucket) {
                    return Err(Outcome::NoSuchBucket);
                }
                grants.remove(bucket);
            }
            Wish::AllBuckets { whom } => self.subjects[*whom].grants = None,
            Wish::Roles { whom, roles } => self.subjects[*whom].roles = roles.clone(),
            Wish::Clearance { whom, low, high } => {
                let (low, high) = (self.levels[*low].clone(), self.levels[*high].clone());
                if !high.dominates(&low) {
                    return Err(Outcome::Invalid);
                }
                let subject = &mut self.subjects[*whom];
                (subject.low, subject.high, subject.trusted) = (low, high, false);
            }
            Wish::Trust { whom, trusted } => {
                let subject = &mut self.subjects[*whom];
                if *trusted && subject.low == subject.high {
                    return Err(Outcome::Invalid);
                }
                subject.trusted = *trusted;
            }
            Wish::Switch { whom, disabled } => self.subjects[*whom].disabled = *disabled,
            _ => unreachable!("not on subjects"),
        }
        Ok(Outcome::Done)
    }
}
