//! What leaves the keystore, and is counted for it: a level's keys, the root key, and keystores
//! that go along with sealed copies.

pub(crate) mod level;

pub(crate) mod root_backup;

pub(crate) mod carried;
