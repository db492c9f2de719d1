//! What must be undone, whatever happens: at the end, on an error, on a panic, on Ctrl-C.
//!
//! Each mount, namespace, loop device, folder and process that the lab makes is registered before
//! it is used. Those that are left are undone newest first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Doing, Result};

type Action = Box<dyn FnOnce() + Send>;

/// What is left to undo.
struct Registry {
    left: Mutex<Vec<(u64, Action)>>,
    next: AtomicU64,
    /// Set while holding `left`, once the program is being interrupted.
    stopping: AtomicBool,
}

static REGISTRY: Registry = Registry::new();

/// The exit status of a program that Ctrl-C ended (128 + SIGINT).
const INTERRUPTED: i32 = 130;

impl Registry {
    const fn new() -> Self {
        Self {
            left: Mutex::new(Vec::new()),
            next: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<(u64, Action)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&'static self, action: Action) -> Undo {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut left = self.left();
        if self.stopping.load(Ordering::Relaxed) {
            // Made in the very moment of the interruption: undone at once, and no more is made.
            drop(left);
            action();
            wait_for_the_end();
        }
        left.push((number, action));
        Undo {
            number,
            registry: self,
        }
    }

    fn undo_all(&self) {
        loop {
            // The lock is not held while undoing, which may register or drop others.
            let Some((_, action)) = self.left().pop() else {
                return;
            };
            action();
        }
    }
}

/// Undoes something when it is dropped, or when the program is interrupted.
#[must_use = "what it guards is undone when it is dropped"]
pub struct Undo {
    number: u64,
    registry: &'static Registry,
}

impl Undo {
    /// Registers `action`. It runs once, and must not fail loudly: there is nobody left to ask.
    pub fn by(action: impl FnOnce() + Send + 'static) -> Self {
        REGISTRY.register(Box::new(action))
    }
}

impl Undo {
    /// Leaves it as it is.
    pub fn forget(self) {
        let mut left = self.registry.left();
        left.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let mut left = self.registry.left();
        let found = left.iter().position(|(number, _)| *number == self.number);
        let action = found.map(|index| left.remove(index).1);
        drop(left);
        if let Some(action) = action {
            action();
        }
    }
}

/// Lets Ctrl-C, and a request to terminate, undo all and end the program.
pub fn on_interrupt() -> Result<()> {
    let handler = || {
        let left = REGISTRY.left();
        REGISTRY.stopping.store(true, Ordering::Relaxed);
        drop(left);
        eprintln!("\ncoffer-lab: interrupted; cleaning up");
        REGISTRY.undo_all();
        std::process::exit(INTERRUPTED);
    };
    ctrlc::set_handler(handler)
        .map_err(std::io::Error::other)
        .doing(|| "listening for Ctrl-C".into())
}

/// To be called before the program ends by itself: what was pulled away under its feet by an
/// interruption may look like an error, but only the one who cleans up may end the program.
pub fn before_the_end() {
    if REGISTRY.stopping.load(Ordering::Relaxed) {
        wait_for_the_end();
    }
    REGISTRY.undo_all();
}

fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Not the process's own, which other tests use.
    static OWN: Registry = Registry::new();

    #[test]
    fn each_is_undone_once_and_newest_first() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            OWN.register(Box::new(move || log.lock().unwrap().push(what)))
        };
        let mount = note("mount");
        let process = note("process");
        drop(note("folder"));
        OWN.undo_all();
        drop((mount, process));
        assert_eq!(*log.lock().unwrap(), ["folder", "process", "mount"]);

        let panicking = {
            let log = log.clone();
            std::thread::spawn(move || {
                let push = move || log.lock().unwrap().push("after a panic");
                let _guard = OWN.register(Box::new(push));
                panic!("on purpose");
            })
        };
        assert!(panicking.join().is_err());
        assert_eq!(log.lock().unwrap().last(), Some(&"after a panic"));
    }
}
