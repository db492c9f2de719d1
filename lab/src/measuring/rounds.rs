//! Interleaved rounds: A B C, C B A, … so that what the machine goes through falls on all alike.

use std::time::Duration;

use crate::contender::Contender;
use crate::error::{LabError, Result};
use crate::host::machine::core_count;
use crate::measuring::progress::Progress;
use crate::record::{Axis, Experiment, Noise, Point, Sample, Series, Unit, versions};
use coffer_measure::cpu_time::{Watch, process_cpu_seconds};
use coffer_measure::rounds::Rounds;

/// A pause in which others are looked at.
const PAUSE: Duration = Duration::from_millis(300);

/// How much effort is made.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How many rounds; None for as many as the experiment usually has.
    pub rounds: Option<usize>,
    /// Fewer places and shorter runs.
    pub quick: bool,
    /// The machine is simulated, and its clock counts instructions.
    pub counts_instructions: bool,
}

/// Rounds of an experiment whose samples are short.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 5;

/// How much shorter a run is where instructions are counted: the processor that counts them is a
/// program, some ten times as slow as a real one, and its figures don't vary.
const COUNTED_SHARE: u32 = 8;

/// How much of something is measured, by the effort.
#[derive(Debug, Clone, Copy)]
pub struct Amounts<T> {
    /// Time, to publish.
    pub full: T,
    /// Time, for a look.
    pub quick: T,
    /// Instructions: the processor that counts them is slow, and figures don't vary.
    pub counted: T,
    /// Instructions, for a look.
    pub quick_counted: T,
}

impl Effort {
    /// As many rounds as were asked for; if none were, `full` or `quick` ones. For experiments
    /// whose samples are long.
    #[must_use]
    pub fn with_usual_rounds(self, full: usize, quick: usize) -> Self {
        let usual = if self.quick { quick } else { full };
        Self {
            rounds: self.rounds.or(Some(usual)),
            ..self
        }
    }

    fn round_count(&self) -> usize {
        let usual = self.with_usual_rounds(ROUNDS, QUICK_ROUNDS);
        usual.rounds.unwrap_or(ROUNDS)
    }

    /// The amount that fits.
    pub fn choose<T: Copy>(&self, amounts: Amounts<T>) -> T {
        match (self.counts_instructions(), self.quick) {
            (false, false) => amounts.full,
            (false, true) => amounts.quick,
            (true, false) => amounts.counted,
            (true, true) => amounts.quick_counted,
        }
    }

    /// Whether figures are instructions, and not time.
    pub fn counts_instructions(&self) -> bool {
        self.counts_instructions
    }

    /// How long a measurement takes, by the machine's clock.
    pub fn last(&self, milliseconds: u64) -> Duration {
        let duration = Duration::from_millis(milliseconds);
        if self.counts_instructions() {
            duration / COUNTED_SHARE
        } else {
            duration
        }
    }
}

/// Measures once.
pub type Measure<'a> = Box<dyn FnMut() -> Result<Sample> + 'a>;

/// A contender at one place of the axis.
pub struct Entrant<'a> {
    /// Which of the contenders of its experiment.
    pub contender: usize,
    /// Where on the axis.
    pub x: u64,
    /// Measures once.
    pub measure: Measure<'a>,
}

/// What the figures of an experiment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Bytes in wall time.
    Speed,
    /// Bytes in CPU time: for one thread that never waits, what a quiet machine's wall time says.
    CpuSpeed,
    /// Wall time of a request.
    Request,
    /// Handshakes in CPU time of the server.
    Handshakes,
}

impl Figure {
    fn unit(self, effort: &Effort) -> Unit {
        match (self, effort.counts_instructions) {
            (Self::Speed, false) => Unit::MegabytesPerSecond,
            (Self::CpuSpeed, false) => Unit::MegabytesPerCpuSecond,
            (Self::Request, false) => Unit::MicrosecondsPerRequest,
            (Self::Speed | Self::CpuSpeed, true) => Unit::BytesPerThousandInstructions,
            (Self::Handshakes, false) => Unit::HandshakesPerCpuSecond,
            (Self::Request | Self::Handshakes, true) => Unit::InstructionsPerRequest,
        }
    }
}

/// An experiment before it has run.
pub struct Plan<'a> {
    /// See [`Experiment`].
    pub id: String,
    /// See [`Experiment`].
    pub title: String,
    /// See [`Experiment`].
    pub axis: Axis,
    /// See [`Experiment`].
    pub how: String,
    /// All contenders, also those that can't run.
    pub contenders: Vec<Contender>,
    /// What its figures are.
    pub figure: Figure,
    /// What is measured, in this order, in each round.
    pub entrants: Vec<Entrant<'a>>,
    /// Samples count the CPU time of the whole machine: what others do can't be told from it, and
    /// is looked at in a pause before and after.
    pub whole_machine: bool,
}

/// Runs an experiment: a round that is not counted, to warm up, then the others.
pub fn run(mut plan: Plan<'_>, effort: Effort) -> Result<Experiment> {
    let rounds = effort.round_count();
    let progress = Progress::new(&plan.title, plan.entrants.len() * (rounds + 1));
    let mut others = Others::default();
    if plan.whole_machine {
        others.add_pause();
    }
    let rounds = Rounds {
        warm_up: 1,
        counted: rounds,
    };
    let samples = rounds.interleave(plan.entrants.len(), |_, turn| {
        let entrant = &mut plan.entrants[turn];
        progress.say(&plan.contenders[entrant.contender].name);
        let (watch, own) = (Watch::new(), process_cpu_seconds());
        let sample = (entrant.measure)()?;
        let own = process_cpu_seconds() - own;
        if plan.whole_machine {
            others.add_stolen(&watch);
        } else {
            others.add(&watch, own.max(sample.cpu_seconds));
        }
        progress.step();
        Ok::<_, LabError>(sample)
    })?;
    if plan.whole_machine {
        others.add_pause();
    }
    let noise = if effort.counts_instructions {
        // The machine is simulated, and holds nothing else.
        Noise::default()
    } else {
        others.noise()
    };
    let mut series: Vec<Series> = plan.contenders.into_iter().map(without_points).collect();
    for (entrant, samples) in plan.entrants.iter().zip(samples) {
        let point = Point {
            x: entrant.x,
            samples,
            observed: None,
        };
        series[entrant.contender].points.push(point);
    }
    Ok(Experiment {
        version: versions::version(&plan.id),
        id: plan.id,
        title: plan.title,
        axis: plan.axis,
        unit: plan.figure.unit(&effort),
        how: plan.how,
        series,
        noise,
    })
}

fn without_points(contender: Contender) -> Series {
    Series {
        contender,
        points: Vec::new(),
    }
}

/// What others did on this machine meanwhile.
#[derive(Default)]
struct Others {
    wall_seconds: f64,
    own_seconds: f64,
    busy_seconds: f64,
    /// Also that in which others could not be told apart.
    wall_seconds_whole: f64,
    stolen_seconds: f64,
}

impl Others {
    fn add(&mut self, watch: &Watch, own_seconds: f64) {
        let machine = watch.machine();
        self.wall_seconds += watch.wall_seconds();
        self.own_seconds += own_seconds;
        self.busy_seconds += machine.busy_seconds;
        self.add_stolen(watch);
    }

    /// Where contenders work in other programs and in the kernel too, only what the host took away
    /// can be told from what they do.
    fn add_stolen(&mut self, watch: &Watch) {
        self.wall_seconds_whole += watch.wall_seconds();
        self.stolen_seconds += watch.machine().stolen_seconds;
    }

    fn add_pause(&mut self) {
        let (watch, own) = (Watch::new(), process_cpu_seconds());
        std::thread::sleep(PAUSE);
        self.add(&watch, process_cpu_seconds() - own);
    }

    fn noise(&self) -> Noise {
        let share = |seconds: f64, wall_seconds: f64| {
            let capacity = wall_seconds * core_count() as f64;
            // Ticks of 10 ms may make a difference negative in short runs, and more than the whole.
            if capacity > 0.0 {
                (seconds / capacity).clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        Noise {
            others_share: share(self.busy_seconds - self.own_seconds, self.wall_seconds),
            stolen_share: share(self.stolen_seconds, self.wall_seconds_whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Availability, Placement};
    use std::cell::RefCell;

    #[test]
    fn others_are_the_rest_of_what_was_busy_and_stolen_time_is_that_of_all() {
        let cores = core_count() as f64;
        let others = Others {
            wall_seconds: 10.0,
            own_seconds: 2.0,
            busy_seconds: 2.0 + cores,
            wall_seconds_whole: 20.0,
            stolen_seconds: cores,
        };
        let noise = others.noise();
        assert!((noise.others_share - 0.1).abs() < 1e-9, "{noise:?}");
        assert!((noise.stolen_share - 0.05).abs() < 1e-9, "{noise:?}");
        assert_eq!(Others::default().noise(), Noise::default());
        let ticks = Others {
            wall_seconds: 0.9,
            ..others
        };
        assert!((ticks.noise().others_share - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rounds_that_were_asked_for_are_made() {
        let effort = |rounds, quick| Effort {
            rounds,
            quick,
            counts_instructions: false,
        };
        let count = |effort: Effort| effort.with_usual_rounds(6, 3).round_count();
        assert_eq!(count(effort(Some(20), true)), 20);
        assert_eq!(
            (count(effort(None, false)), count(effort(None, true))),
            (6, 3)
        );
        assert_eq!(effort(None, false).round_count(), ROUNDS);
        assert_eq!(effort(None, true).round_count(), QUICK_ROUNDS);
    }

    #[test]
    fn rounds_are_interleaved_after_a_warm_up_and_nobody_disappears() {
        let order = RefCell::new(Vec::new());
        let log = &order;
        let entrant = |contender: usize| Entrant {
            contender,
            x: 0,
            measure: Box::new(move || {
                log.borrow_mut().push(contender);
                Ok(Sample {
                    bytes: 1,
                    wall_seconds: 1.0,
                    cpu_seconds: 0.0,
                    counts: None,
                    latency: None,
                })
            }),
        };
        let contender = |name: &str| Contender::new(name, Placement::User, "");
        let cannot = contender("c").available(Availability::cannot("why", "what"));
        let plan = Plan {
            id: "t".into(),
            title: "t".into(),
            axis: Axis::Single,
            how: String::new(),
            figure: Figure::Speed,
            contenders: vec![contender("a"), contender("b"), cannot],
            entrants: vec![entrant(0), entrant(1)],
            whole_machine: false,
        };
        let effort = Effort {
            rounds: Some(2),
            quick: true,
            counts_instructions: false,
        };
        let experiment = run(plan, effort).unwrap();
        assert_eq!(*order.borrow(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(experiment.series[0].points[0].samples.len(), 2);
        assert_eq!(experiment.series.len(), 3);
        assert!(experiment.series[2].points.is_empty());
    }
}
