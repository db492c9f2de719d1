//! Interleaved rounds: A B C, C B A, … so that what the machine goes through falls on all alike,
//! and so does what each leaves behind for the next.

/// How many rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// At the beginning, and not counted.
    pub warm_up: usize,
    /// Those that count.
    pub counted: usize,
}

impl Rounds {
    /// Measures so many contenders in turn, in each round, in every second one the last first:
    /// `measure` is told the round, from 0, and the contender. Gives the samples of each contender
    /// that count.
    ///
    /// # Errors
    /// The first error ends it.
    pub fn interleave<S, E>(
        self,
        contenders: usize,
        mut measure: impl FnMut(usize, usize) -> Result<S, E>,
    ) -> Result<Vec<Vec<S>>, E> {
        let mut samples: Vec<Vec<S>> = (0..contenders).map(|_| Vec::new()).collect();
        for round in 0..self.warm_up + self.counted {
            for turn in 0..contenders {
                let contender = [turn, contenders - 1 - turn][round % 2];
                let sample = measure(round, contender)?;
                if round >= self.warm_up {
                    samples[contender].push(sample);
                }
            }
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_take_turns_and_the_warm_up_does_not_count() {
        let rounds = Rounds {
            warm_up: 1,
            counted: 2,
        };
        let mut order = Vec::new();
        let samples = rounds.interleave(2, |round, contender| {
            order.push((round, contender));
            Ok::<_, ()>(10 * round + contender)
        });
        assert_eq!(samples.unwrap(), [[10, 20], [11, 21]]);
        assert_eq!(order, [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(rounds.interleave(1, |_, _| Err::<(), _>("no")), Err("no"));
    }
}
