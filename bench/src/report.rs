//! What was measured, and how it is shown.

pub mod figures;

pub mod table;
