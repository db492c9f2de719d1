//! The vault as a front door sees it, on a real folder.

#![allow(clippy::unwrap_used)] // a failed expectation of a test is its failure

mod door;

mod asked;
mod care;
mod catalogs;
mod denials;
mod erase;
mod erase_time;
mod exports;
mod floating;
mod objects;
mod old_exports;
mod sign_ins;
mod subject_limits;
mod transfers;
mod watched;
