//! What was measured, and how it is shown.

pub mod stats;

pub mod figures;

pub mod table;
