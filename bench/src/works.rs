//! The works that are measured, a file each, and how rounds are interleaved.

pub mod rounds;

pub mod commits;

pub mod sealing;

pub mod transfers;

pub mod small;

pub mod handshakes;

pub mod memory;

pub mod rotation;

pub mod both_ways;

pub mod builds;

pub mod buckets;

pub mod sealed;

pub mod mover;

pub mod fairness;

pub mod copy;

pub mod engine;
