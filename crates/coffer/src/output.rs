//! What people and programs read of an answer: text that is safe for a terminal, tables, JSON.

pub mod printable;

pub mod moments;

pub mod table;

pub mod asking;

pub(crate) mod streams;
