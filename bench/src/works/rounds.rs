//! Interleaving: A B A B, so that what the machine goes through falls on all alike.

use coffer_measure::rounds::Rounds;

use crate::error::{BenchError, Result};
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
    let turns = Rounds {
        warm_up: 0,
        counted: rounds,
    };
    let samples = turns.interleave(entrants.len(), |round, turn| {
        let entrant = &mut entrants[turn];
        let sample = (entrant.measure)(round)?;
        if let Some(&value) = sample.get(&key) {
            let (value, unit) = (key.format(value), key.unit());
            eprintln!(
                "{title} · {}/{rounds} · {}: {value} {unit}",
                round + 1,
                entrant.name
            );
        }
        Ok::<_, BenchError>(sample)
    })?;
    let series = entrants
        .iter()
        .zip(samples)
        .map(|(entrant, samples)| Series {
            contender: entrant.name.to_owned(),
            samples,
        });
    let series = series.collect();
    Ok(Work {
        title: title.to_owned(),
        key,
        series,
        target,
    })
}
