//! What is stored: opening all of it, and copying it.

pub mod backup;
pub mod replica;
pub mod restore;
pub mod standby;
pub mod verify;
