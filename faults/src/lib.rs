//! What a server does to its files, written down call by call, and refused where a test wants it.
//!
//! A library to be named in `LD_PRELOAD`: the server itself is the one that is delivered. Its
//! system calls are caught by a filter of the kernel's (seccomp), wherever they are made: the C
//! library, SQLite, or code that goes past the C library. `tests/harness/power` starts servers
//! with it; `docs/decisions/0018-simulated-power-cuts.md` says why it is so.
//!
//! The environment says what to do; without `COFFER_FAULTS_ROOT` nothing is done:
//!
//! - `COFFER_FAULTS_ROOT`: the folder whose files count, an absolute path;
//! - `COFFER_FAULTS_TAPE`: a file to which all changes are appended, see [`tape`];
//! - `COFFER_FAULTS_CONTROL`: a file of one page that says which calls fail, see [`control`].
//!
//! Unsafe throughout, for a handler of signals is given registers and makes calls in their place.
//! It knows Linux on x86-64; elsewhere it is empty.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod system;

mod control;

mod tape;

mod calls;

mod filter;

/// Called when the library is loaded, before `main` and before there are threads.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    let Some(root) = std::env::var_os("COFFER_FAULTS_ROOT") else {
        return;
    };
    let named = |name: &str| std::env::var_os(name).unwrap_or_default();
    tape::open(&root, &named("COFFER_FAULTS_TAPE"));
    control::open(&named("COFFER_FAULTS_CONTROL"));
    filter::install(&calls::CAUGHT, calls::run);
}
