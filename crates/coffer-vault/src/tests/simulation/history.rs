//! What clients saw, and whether one order of their calls explains it.
//!
//! Each value is written once, a deletion leaves a mark with a value of its own, and each answer
//! that depends on what is stored tells it. So a write whose answer never came counts where it was
//! seen, before the first that saw it was answered, and nowhere else. The search is that of Wing
//! and Gong with Lowe's memory of what was tried, as in `tests/harness/linearizable.py`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::catalog::{KEYS, Values};

/// Values from here on are marks of deletions.
pub(super) const DELETED: u64 = 1 << 32;

/// What a client asks of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Get {
        key: usize,
    },
    List,
    /// Also a deletion, which puts a mark.
    Put {
        key: usize,
        value: u64,
    },
    /// If nothing is there, or a mark.
    PutNew {
        key: usize,
        value: u64,
    },
    /// If this very value is there.
    PutOver {
        key: usize,
        seen: u64,
        value: u64,
    },
}

/// What it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(u64),
    Values(Values),
    Done,
    /// It was, in the place of this.
    Replaced(u64),
    /// The condition did not hold: this is there.
    Else(u64),
    /// Nothing was done.
    Refused,
    /// It may have been done, or not.
    InDoubt,
}

/// One call. What happened before has lower numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) bucket: usize,
    pub(super) ask: Ask,
    pub(super) answer: Answer,
    pub(super) sent: u64,
    pub(super) answered: u64,
}

impl Ask {
    /// What it writes, if it does.
    fn written(self) -> Option<u64> {
        match self {
            Self::Get { .. } | Self::List => None,
            Self::Put { value, .. } | Self::PutNew { value, .. } | Self::PutOver { value, .. } => {
                Some(value)
            }
        }
    }

    /// What it makes of these values, and is answered.
    pub(super) fn apply(self, values: &mut Values) -> Answer {
        let is_free = |there: u64| there == 0 || there >= DELETED;
        let (key, value, holds) = match self {
            Self::Get { key } => return Answer::Value(values[key]),
            Self::List => return Answer::Values(*values),
            Self::Put { key, value } => (key, value, true),
            Self::PutNew { key, value } => (key, value, is_free(values[key])),
            Self::PutOver { key, seen, value } => (key, value, values[key] == seen),
        };
        if !holds {
            return Answer::Else(values[key]);
        }
        let before = std::mem::replace(&mut values[key], value);
        match self {
            Self::PutNew { .. } => Answer::Replaced(before),
            _ => Answer::Done,
        }
    }
}

impl Answer {
    /// What it tells of what is stored.
    fn seen(self) -> Vec<u64> {
        match self {
            Self::Value(value) | Self::Else(value) | Self::Replaced(value) => vec![value],
            Self::Values(values) => values.to_vec(),
            Self::Done | Self::Refused | Self::InDoubt => Vec::new(),
        }
    }
}

/// Whether one order explains all calls of each bucket; if not, what shows it.
pub(super) fn check(calls: &[Call]) -> Result<(), String> {
    let buckets: BTreeSet<usize> = calls.iter().map(|call| call.bucket).collect();
    for bucket in buckets {
        let of_bucket = calls.iter().filter(|call| call.bucket == bucket);
        let of_bucket: Vec<Call> = of_bucket.copied().collect();
        let told = |why| format!("bucket {bucket}: {why}");
        explain(&settled(&of_bucket).map_err(told)?).map_err(told)?;
    }
    Ok(())
}

/// The calls that count: what is in doubt and was seen was done by then.
fn settled(calls: &[Call]) -> Result<Vec<Call>, String> {
    let mut seen_first: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls {
        for value in call.answer.seen() {
            let first = seen_first.entry(value).or_insert(u64::MAX);
            *first = call.answered.min(*first);
        }
    }
    let mut settled = Vec::new();
    for call in calls {
        let seen = call.ask.written().and_then(|value| seen_first.get(&value));
        match (call.answer, seen) {
            (Answer::Refused, Some(_)) => {
                return Err(format!("what was refused was done: {call:?}"));
            }
            (Answer::InDoubt, Some(first)) => settled.push(Call {
                answered: *first,
                ..*call
            }),
            (Answer::Refused | Answer::InDoubt, _) => {}
            _ => settled.push(*call),
        }
    }
    settled.sort_by_key(|call| call.sent);
    Ok(settled)
}

/// Looks for an order of the calls, which are sorted by when they were sent.
fn explain(calls: &[Call]) -> Result<(), String> {
    let mut tried = HashSet::new();
    let mut furthest = (0, [0; KEYS], Vec::new());
    let mut stack = vec![(vec![false; calls.len()], 0, [0; KEYS])];
    while let Some((placed, count, values)) = stack.pop() {
        if count == calls.len() {
            return Ok(());
        }
        if !tried.insert((placed.clone(), values)) {
            continue;
        }
        let left = || (0..calls.len()).filter(|at| !placed[*at]);
        let until = left().map(|at| calls[at].answered).min();
        let next = left().take_while(|at| Some(calls[*at].sent) <= until);
        let next: Vec<usize> = next.collect();
        if count >= furthest.0 {
            furthest = (count, values, next.clone());
        }
        for at in next.into_iter().rev() {
            let mut after = values;
            let answer = calls[at].ask.apply(&mut after);
            let is_done = matches!(answer, Answer::Done | Answer::Replaced(_));
            // What is in doubt and was seen was done, whatever it would have been answered.
            if answer == calls[at].answer || is_done && calls[at].answer == Answer::InDoubt {
                let mut placed = placed.clone();
                placed[at] = true;
                stack.push((placed, count + 1, after));
            }
        }
    }
    let (count, values, next) = furthest;
    let next: Vec<Call> = next.into_iter().map(|at| calls[at]).collect();
    Err(format!(
        "no order explains {} calls: after {count} of them there is {values:?}, and none of these \
         can be next: {next:#?}",
        calls.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(ask: Ask, answer: Answer, sent: u64, answered: u64) -> Call {
        Call {
            bucket: 0,
            ask,
            answer,
            sent,
            answered,
        }
    }

    #[test]
    fn histories_are_told_apart() {
        let put = |value| Ask::Put { key: 0, value };
        let get = Ask::Get { key: 0 };
        let two = call(put(2), Answer::InDoubt, 3, 4);
        let stale = call(get, Answer::Value(1), 7, 8);
        let good = [
            call(put(1), Answer::Done, 1, 2),
            two,
            call(get, Answer::Value(1), 5, 6),
            call(get, Answer::Value(2), 9, 10),
        ];
        check(&good).unwrap();
        // Once it was seen, it is there.
        let bad = [good[0], two, call(get, Answer::Value(2), 5, 6), stale];
        let told = check(&bad).unwrap_err();
        assert!(told.contains("no order explains"), "{told}");
        // What was acknowledged is lost.
        let lost = [good[0], call(put(2), Answer::Done, 3, 4), stale];
        check(&lost).unwrap_err();
        // What was refused was done.
        let refused = call(put(2), Answer::Refused, 3, 4);
        let done = [good[0], refused, call(get, Answer::Value(2), 5, 6)];
        assert!(check(&done).unwrap_err().contains("refused"));
        // Two took the same place.
        let new = |value| Ask::PutNew { key: 0, value };
        let twice = [
            call(new(3), Answer::Replaced(0), 1, 2),
            call(new(4), Answer::Replaced(0), 3, 4),
        ];
        check(&twice).unwrap_err();
        // A list is of one moment.
        let list = |values| call(Ask::List, Answer::Values(values), 5, 6);
        let other = Ask::Put { key: 1, value: 7 };
        let puts = [good[0], call(other, Answer::Done, 3, 4)];
        check(&[puts[0], puts[1], list([1, 7, 0])]).unwrap();
        check(&[puts[0], puts[1], list([0, 7, 0])]).unwrap_err();
    }
}
