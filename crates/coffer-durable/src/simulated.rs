//! A disk that is not there: for tests of what must survive a crash, in whatever crate.
//!
//! [`DiskState`] is the model: what is durable, what is not yet, and what a power cut leaves of
//! that. [`SimulatedDisk`] is a [`Disk`](crate::Disk) on such a state that fails where a test wants
//! it to. No product code uses either; `xtask` sees to that.
//!
//! | fault | what becomes of it |
//! |---|---|
//! | power cut | each sector not synced is written, lost or garbled; names are kept or lost |
//! | refused write (no space) | half of it is written |
//! | refused sync (I/O error) | as after a power cut, or all was written; it passes for written |
//! | refused change of a name | nothing is changed |
//! | a write that lies | zeros reach the disk, and the cache shows what was written |

mod content;

mod state;

mod disk;
mod placed;

pub use disk::{Fault, Image, SimulatedDisk};
pub use state::{DiskState, NameChange, NameOrder, Random, Step};
