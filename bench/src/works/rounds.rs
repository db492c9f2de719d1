//! Interleaving: A B A B, so that what the machine goes through falls on all alike.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};

/// A contender of a work: its name, and what measures it in a round.
pub struct Entrant<'a> {
    /// As it stands in the table.
    pub name: &'a str,
    /// Measures once. The number of the round makes names that were never used.
    pub measure: Box<dyn FnMut(usize) -> Result<Sample> + 'a>,
}

/// Measures all entrants, round by round; tells on standard error how it goes.
pub fn interleave(
    title: &str,
    key: Quantity,
    target: Option<Target>,
    rounds: usize,
    mut entrants: Vec<Entrant<'_>>,
) -> Result<Work> {
    let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    for round in 0..rounds {
        for (index, entrant) in entrants.iter_mut().enumerate() {
            let sample = (entrant.measure)(round)?;
            if let Some(&value) = sample.get(&key) {
                let (value, unit) = (key.format(value), key.unit());
                eprintln!(
                    "{title} · {}/{rounds} · {}: {value} {unit}",
                    round + 1,
                    entrant.name
                );
            }
            samples.entry(index).or_default().push(sample);
        }
    }
    let series = entrants.iter().enumerate().map(|(index, entrant)| Series {
        contender: entrant.name.to_owned(),
        samples: samples.remove(&index).unwrap_or_default(),
    });
    let series = series.collect();
    Ok(Work {
        title: title.to_owned(),
        key,
        series,
        target,
    })
}
