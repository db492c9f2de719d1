//! The lab in a virtual machine with Debian's own kernels: what this machine's kernel lacks runs
//! there, and so does the lab's own kernel module.

pub mod accelerator;
mod packages;
mod payload;
mod request;

mod release;

mod machine;
mod modules;
mod own_module;
mod side_by_side;
mod tree;

mod stage;

mod run;

pub mod configs;

pub use request::{Request, Work};
pub use run::{default_cache, measure, run_script};
