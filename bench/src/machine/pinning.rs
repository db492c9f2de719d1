//! Which core does what.
//!
//! The server has core 0 for itself and the load client core 1, so that neither can take time
//! from the other and figures of different machines' runs compare. On a machine with one core
//! nothing is pinned.

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::{Doing, Result};

/// The core of whatever is measured.
pub const SERVER_CORE: usize = 0;

/// The core of the load client.
pub const CLIENT_CORE: usize = 1;

/// Whether there are cores enough to keep server and client apart.
pub fn possible() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > CLIENT_CORE)
}

/// Confines the calling thread, and every thread and process it starts from now on.
fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).doing(|| format!("pinning to core {core}"))
}

/// Confines the calling thread to the load client's core.
pub fn pin_client(pinned: bool) -> Result<()> {
    if pinned { pin(CLIENT_CORE) } else { Ok(()) }
}

/// Runs `work` on a thread of its own, confined to the server's core. A process that `work`
/// starts inherits the confinement: it takes effect before the process counts its cores.
pub fn on_server_core<T: Send>(pinned: bool, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            if pinned {
                pin(SERVER_CORE)?;
            }
            work()
        });
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
