//! How something is measured: in rounds, with what it moves, and what is observed from outside.
//! What is measured stands in the folders of the experiments.

pub(crate) mod content;

pub mod observe;

pub mod progress;

pub mod calibration;

pub mod rounds;
