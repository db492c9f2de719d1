//! Cobblestone-256 sealing: whole, streamed and random access.
