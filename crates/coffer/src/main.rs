//! The program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use coffer_seal::ZeroizingHeap;

/// What requests leave on the heap is plaintext for a good part.
#[global_allocator]
static HEAP: ZeroizingHeap = ZeroizingHeap;

fn main() -> ExitCode {
    coffer::program::run()
}
