//! What the process gives up before it touches a key.

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use rustix::process::{set_dumpable_behavior, umask};

use coffer_vault::{KeyMemory, locked_memory};

/// No core dumps and no debugger of the same user, so that keys in memory stay there; files that
/// only their owner can read; as many connections as the system lets us have.
///
/// Every step that the system refuses is left out: a server without it is still better than none.
/// Returns how the user wants new files to be, for commands that make files for the user.
pub fn harden() -> UserMask {
    let users = UserMask(umask(Mode::RWXG | Mode::RWXO));
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: files.maximum,
            ..files
        },
    );
    users
}

/// What the user's shell takes away from the rights of new files.
#[derive(Debug, Clone, Copy)]
pub struct UserMask(Mode);

impl UserMask {
    /// Makes files as the user wants them from now on. Only for commands that write no secrets but
    /// under modes of their own.
    pub fn restore(self) {
        umask(self.0);
    }
}

/// Tells once what the system refused of what protects keys in memory. To be called when there are
/// keys, for only then there is memory for them.
pub fn warn_of_exposed_keys() {
    let KeyMemory {
        unlocked_bytes,
        dumped_bytes,
        ..
    } = locked_memory();
    if unlocked_bytes > 0 {
        tracing::warn!(
            limit_bytes = getrlimit(Resource::Memlock).current,
            "the system refused to lock the memory of keys, so they can be swapped out: raise the \
             limit (LimitMEMLOCK=8M in the systemd unit, or `ulimit -l 8192`), or turn swap off"
        );
    }
    if dumped_bytes > 0 {
        tracing::warn!(
            "the system refused to leave the memory of keys out of core dumps: keep core dumps off"
        );
    }
}

/// How many files the process may have open.
pub fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;

    #[test]
    fn no_core_dumps() {
        let _ = harden();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let files = getrlimit(Resource::Nofile);
        assert_eq!(files.current, files.maximum);
        assert_eq!(open_files_max(), files.maximum.unwrap_or(u64::MAX));
    }
}
