//! What must be undone, whatever happens: at the end, on an error, on a panic, on Ctrl-C.
//!
//! Each mount, namespace, loop device, folder and process that the lab makes is registered before
//! it is used. Those that are left are undone newest first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Doing, Result};

type Action = Box<dyn FnOnce() + Send>;

static LEFT: Mutex<Vec<(u64, Action)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Set while holding `LEFT`, once the program is being interrupted.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// The exit status of a program that Ctrl-C ended (128 + SIGINT).
const INTERRUPTED: i32 = 130;

/// Undoes something when it is dropped, or when the program is interrupted.
#[must_use = "what it guards is undone when it is dropped"]
#[derive(Debug)]
pub struct Undo(u64);

impl Undo {
    /// Registers `action`. It runs once, and must not fail loudly: there is nobody left to ask.
    pub fn by(action: impl FnOnce() + Send + 'static) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if STOPPING.load(Ordering::Relaxed) {
            // Made in the very moment of the interruption: undone at once, and no more is made.
            drop(left);
            action();
            wait_for_the_end();
        }
        left.push((number, Box::new(action)));
        Self(number)
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        let found = left.iter().position(|(number, _)| *number == self.0);
        let action = found.map(|index| left.remove(index).1);
        // Outside of the lock: undoing may register or drop others.
        drop(left);
        if let Some(action) = action {
            action();
        }
    }
}

/// Undoes all that is left, newest first.
pub fn undo_all() {
    loop {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, action)) = left.pop() else {
            return;
        };
        drop(left);
        action();
    }
}

/// Lets Ctrl-C, and a request to terminate, undo all and end the program.
pub fn on_interrupt() -> Result<()> {
    let handler = || {
        let left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        STOPPING.store(true, Ordering::Relaxed);
        drop(left);
        eprintln!("\ncoffer-lab: interrupted; cleaning up");
        undo_all();
        std::process::exit(INTERRUPTED);
    };
    ctrlc::set_handler(handler)
        .map_err(std::io::Error::other)
        .doing(|| "listening for Ctrl-C".into())
}

/// To be called before the program ends by itself: what was pulled away under its feet by an
/// interruption may look like an error, but only the one who cleans up may end the program.
pub fn before_the_end() {
    if STOPPING.load(Ordering::Relaxed) {
        wait_for_the_end();
    }
    undo_all();
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

    // One test: the registry is the process's.
    #[test]
    fn each_is_undone_once_and_newest_first() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            Undo::by(move || log.lock().unwrap().push(what))
        };
        let mount = note("mount");
        let process = note("process");
        drop(note("folder"));
        undo_all();
        drop((mount, process));
        assert_eq!(*log.lock().unwrap(), ["folder", "process", "mount"]);

        let panicking = {
            let log = log.clone();
            std::thread::spawn(move || {
                let _guard = Undo::by(move || log.lock().unwrap().push("after a panic"));
                panic!("on purpose");
            })
        };
        assert!(panicking.join().is_err());
        assert_eq!(log.lock().unwrap().last(), Some(&"after a panic"));
    }
}
