//! The house rules, as checks that `cargo test -p xtask` runs: the floors and the order of modules
//! in `tests/house.rs`, tidiness in `tests/tidy.rs`.
//!
//! Every check is a plain function from text to [`Finding`]s, so that its own tests can show it a
//! made-up snippet and see it fail.

#![forbid(unsafe_code)]

mod finding;
mod tokens;
mod tree;

pub mod floors;
mod module_tree;
pub mod modules;
pub mod rooms;
pub mod style;
pub mod words;

mod functions;

pub use finding::{Finding, assert_clean};
pub use functions::long_functions;
pub use tree::{Source, read, rust_crates, workspace_files, workspace_root};
