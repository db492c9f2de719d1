//! What is to run in a virtual machine.

use std::path::PathBuf;

use crate::kernel::accelerator::Accelerator;

/// What to run, and in which machine.
#[derive(Debug, Clone)]
pub struct Request {
    /// `6.1`, `backports`, or the path of a kernel.
    pub kernel: String,
    /// None: the best that works.
    pub accelerator: Option<Accelerator>,
    /// What is done inside.
    pub work: Work,
    /// See [`Effort`](crate::measuring::rounds::Effort).
    pub quick: bool,
    /// Rounds; None for as many as the unit needs.
    pub rounds: Option<u16>,
    /// Where packages are kept.
    pub cache: PathBuf,
    /// Whether the folder of the run is kept.
    pub keep: bool,
    /// The lab's program, to run inside.
    pub lab: PathBuf,
    /// Other programs that come along, under their files' names.
    pub programs: Vec<PathBuf>,
}

/// What the lab does inside.
#[derive(Debug, Clone)]
pub enum Work {
    /// Its experiments, by their words: `raw`, `net`, …
    Experiments(Vec<&'static str>),
    /// The loop of A alone.
    LoopOfA,
}

impl Work {
    /// For the progress bar.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Experiments(wanted) if !wanted.is_empty() => {
                format!("In the virtual machine: {}", wanted.join(", "))
            }
            _ => "In the virtual machine".to_owned(),
        }
    }
}
