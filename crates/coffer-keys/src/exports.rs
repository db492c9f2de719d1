//! What leaves the keystore, and is counted for it: a level's keys, the root key, and keystores
//! that go along with sealed copies; and what opens those of an engine.

pub(crate) mod level;

pub(crate) mod root_backup;

pub(crate) mod carried;

pub(crate) mod shared;
