//! What the process gives up before it touches a key.

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use rustix::process::{set_dumpable_behavior, umask};

/// No core dumps and no debugger of the same user, so that keys in memory stay there; files that
/// only their owner can read; as many connections as the system lets us have.
///
/// Every step that the system refuses is left out: a server without it is still better than none.
pub fn harden() {
    umask(Mode::RWXG | Mode::RWXO);
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
        harden();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let files = getrlimit(Resource::Nofile);
        assert_eq!(files.current, files.maximum);
        assert_eq!(open_files_max(), files.maximum.unwrap_or(u64::MAX));
    }
}
