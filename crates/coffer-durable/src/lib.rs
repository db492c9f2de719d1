//! What is durable, and when: the disk as a seam, and what is built on it.
//!
//! A [`Disk`] is one folder: names, and the [`DiskFile`]s behind them. [`Folder`] is the real one;
//! [`simulated`] has a twin that loses power and refuses, tears and garbles what is written. What
//! must survive a crash is written against the two traits and tested on the twin.
//!
//! | to do | how | after a crash |
//! |---|---|---|
//! | make or replace a file | [`write_atomically`], [`NewFile`] | the old one or the new one |
//! | change a file in place | [`TwoSlots`] | the slot that was not being written is whole |
//! | anything else | [`DiskFile::write`], then a sync | what was synced is there |
//!
//! A write is durable when a sync after it succeeded, a name when the folder was synced. A sync
//! that fails has lost what it was to write, and is not repeated: Linux takes the pages for
//! written. The content is written again, or left for another file.
//!
//! ```
//! use coffer_durable::{Access, Disk, Folder, write_atomically};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let disk = Folder::new(folder.path());
//! write_atomically(&disk, "note", b"as it was")?;
//! write_atomically(&disk, "note", b"as it is")?;
//! assert_eq!(disk.open("note", Access::Read)?.read(0, 100)?, b"as it is");
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod clock;

mod error;

mod disk;

mod own_folder;

mod folder;

mod new_file;

mod two_slots;

pub mod simulated;

pub use clock::{from_rfc3339, now_ms, rfc3339, stretch_exactly, stretch_roughly};
pub use disk::{Access, Disk, DiskFile};
pub use error::DurableError;
pub use folder::{Folder, sync_folder, try_write};
pub use new_file::{NewFile, clear_away, remove_durably, write_atomically, write_file_atomically};
pub use own_folder::{OwnFolder, check_own_folder};
pub use two_slots::{Slot, TwoSlots};
