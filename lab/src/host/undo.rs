//! What must be undone, whatever happens: at the end, on an error, on a panic, on Ctrl-C.
//!
//! Each mount, namespace, loop device, folder and process is registered before it is made, so that
//! there is no moment in which it is there and would not be undone. To undo what was never made
//! does nothing, and says nothing. Those that are left are undone newest first.

use std::any::Any;
use std::io::{Write, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{Doing, Result};

type Action = Box<dyn FnOnce() + Send>;

/// What is left to undo, oldest first.
type Left = Vec<(u64, Action)>;

struct Registry {
    left: Mutex<Left>,
    next: AtomicU64,
    /// How many are being undone right now; grows only while holding `left`.
    under_way: AtomicUsize,
    /// Set while holding `left`, once the program is being interrupted.
    stopping: AtomicBool,
}

static REGISTRY: Registry = Registry::new();

/// The exit status of a program that Ctrl-C ended (128 + SIGINT).
const INTERRUPTED: i32 = 130;

/// How long the end waits for what other threads are undoing.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the end waits for its message to be taken.
const SAYING: Duration = Duration::from_millis(500);

impl Registry {
    const fn new() -> Self {
        Self {
            left: Mutex::new(Vec::new()),
            next: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    fn register(&'static self, action: Action) -> Undo {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut left = self.left.lock();
        if self.stopping.load(Ordering::Relaxed) {
            // Nothing more is made. What was made before it was registered is undone at once.
            let under_way = UnderWay::begin(&self.under_way);
            drop(left);
            act(action);
            drop(under_way);
            wait_for_the_end();
        }
        left.push((number, action));
        Undo {
            number,
            registry: self,
        }
    }

    /// Undoes the one that `pick` takes out; false when it takes none.
    fn undo(&self, pick: impl FnOnce(&mut Left) -> Option<(u64, Action)>) -> bool {
        let mut left = self.left.lock();
        let Some((_, action)) = pick(&mut left) else {
            return false;
        };
        let under_way = UnderWay::begin(&self.under_way);
        // The lock is not held while undoing, which may drop others.
        drop(left);
        act(action);
        drop(under_way);
        true
    }

    fn undo_all(&self) {
        while self.undo(Vec::pop) {}
        let start = Instant::now();
        while self.under_way.load(Ordering::Acquire) > 0 && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// One that fails loudly all the same must not keep the others from being undone.
fn act(action: Action) {
    let _ = catch_unwind(AssertUnwindSafe(action));
}

/// Counts one that is being undone.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Undoes something when it is dropped, or when the program is interrupted.
#[must_use = "what it guards is undone when it is dropped"]
pub struct Undo {
    number: u64,
    registry: &'static Registry,
}

impl Undo {
    /// Registers `action`. It runs once, and must not fail loudly: there is nothing left to ask. It
    /// starts programs, if any, with [`crate::host::programs::clean_up`]; others start no more.
    pub fn by(action: impl FnOnce() + Send + 'static) -> Self {
        REGISTRY.register(Box::new(action))
    }
}

impl Undo {
    /// Leaves it as it is.
    pub fn forget(self) {
        let mut left = self.registry.left.lock();
        left.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.registry.undo(|left| {
            let index = left.iter().position(|(number, _)| *number == self.number)?;
            Some(left.remove(index))
        });
    }
}

/// Devices, mounts, namespaces, programs, each of which needs those before it. Taken down from the
/// newest to the oldest.
#[derive(Default)]
pub struct Foundation(Vec<Box<dyn Any + Send + Sync>>);

impl Foundation {
    /// Adds what goes before all that is there already.
    pub fn add(&mut self, part: impl Any + Send + Sync) {
        self.0.push(Box::new(part));
    }
}

impl Drop for Foundation {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// Says it on standard error, where that takes anything: a terminal may be gone, a disk full, and
/// who read it ended. `eprintln!` would panic there, before what is left is undone.
pub fn say(line: &str) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// Lets Ctrl-C, a request to terminate, and a terminal that goes away (SIGINT, SIGTERM, SIGHUP)
/// undo all and end the program.
pub fn on_interrupt() -> Result<()> {
    let handler = || {
        let left = REGISTRY.left.lock();
        REGISTRY.stopping.store(true, Ordering::Relaxed);
        drop(left);
        // By a thread of its own: a full pipe that is not read would hold it up for ever.
        let saying = thread::Builder::new();
        let saying = saying.spawn(|| say("\ncoffer-lab: interrupted; cleaning up"));
        REGISTRY.undo_all();
        let start = Instant::now();
        while saying.as_ref().is_ok_and(|one| !one.is_finished()) && start.elapsed() < SAYING {
            thread::sleep(Duration::from_millis(5));
        }
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

    #[test]
    fn each_is_undone_once_and_newest_first() {
        /// Not the process's own, which other tests use.
        static OWN: Registry = Registry::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            OWN.register(Box::new(move || log.lock().push(what)))
        };
        let mount = note("mount");
        let process = note("process");
        drop(note("folder"));
        OWN.undo_all();
        drop((mount, process));
        let mut foundation = Foundation::default();
        foundation.add(note("device"));
        foundation.add(note("file system"));
        drop(foundation);
        let all = ["folder", "process", "mount", "file system", "device"];
        assert_eq!(*log.lock(), all);

        let panicking = {
            let log = log.clone();
            std::thread::spawn(move || {
                let push = move || log.lock().push("after a panic");
                let _guard = OWN.register(Box::new(push));
                panic!("on purpose");
            })
        };
        assert!(panicking.join().is_err());
        assert_eq!(log.lock().last(), Some(&"after a panic"));
    }

    #[test]
    fn one_that_panics_keeps_no_other_from_being_undone() {
        static OWN: Registry = Registry::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = log.clone();
        let older = OWN.register(Box::new(move || note.lock().push("folder")));
        let fails = || drop(std::fs::read("/no/such/file").unwrap());
        let newer = OWN.register(Box::new(fails));
        OWN.undo_all();
        assert_eq!(*log.lock(), ["folder"]);
        assert_eq!(OWN.under_way.load(Ordering::Relaxed), 0);
        drop((older, newer));
    }

    #[test]
    fn the_end_waits_for_what_others_are_undoing() {
        static OWN: Registry = Registry::new();
        let (begun, waits) = std::sync::mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        let told = done.clone();
        let slow = OWN.register(Box::new(move || {
            begun.send(()).unwrap();
            thread::sleep(Duration::from_millis(50));
            told.store(true, Ordering::Relaxed);
        }));
        let other = thread::spawn(move || drop(slow));
        waits.recv().unwrap();
        OWN.undo_all();
        assert!(done.load(Ordering::Relaxed));
        other.join().unwrap();
    }
}
