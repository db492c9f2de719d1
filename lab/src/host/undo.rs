//! What must be undone, whatever happens: at the end, on an error, on a panic, on Ctrl-C.
//!
//! Each mount, namespace, loop device, folder and process is registered before it is made, so that
//! there is no moment in which it is there and would not be undone. To undo what was never made
//! does nothing, and says nothing. Those that are left are undone newest first, each when what came
//! after it is gone: from an interruption on one thread undoes all, and the others nothing.

use std::any::Any;
use std::io::{Write, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{Doing, Result};

type Action = Box<dyn FnOnce() + Send>;

struct Registry(Mutex<State>);

struct State {
    /// What is left to undo, oldest first.
    left: Vec<(u64, Action)>,
    /// The number of the next.
    next: u64,
    /// Those that are being undone right now.
    under_way: Vec<u64>,
    /// Set once the program is being interrupted.
    stopping: bool,
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
        Self(Mutex::new(State {
            left: Vec::new(),
            next: 0,
            under_way: Vec::new(),
            stopping: false,
        }))
    }

    /// Registers what undoes that which `make` makes, while nothing is undone.
    fn register<T>(&'static self, action: Action, make: impl FnOnce() -> T) -> (Undo, T) {
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        if state.stopping {
            // Nothing more is made. What was made before it was registered is undone at once.
            state.under_way.push(number);
            drop(state);
            self.act(number, action);
            wait_for_the_end();
        }
        state.left.push((number, action));
        let made = make();
        let registry = self;
        (Undo { number, registry }, made)
    }

    /// Undoes one, unless it is undone already, or will be by an interruption.
    fn undo(&self, number: u64) {
        let mut state = self.0.lock();
        let index = state.left.iter().position(|(own, _)| *own == number);
        let Some(index) = index.filter(|_| !state.stopping) else {
            return;
        };
        let (_, action) = state.left.remove(index);
        state.under_way.push(number);
        // The lock is not held while undoing, which may drop others.
        drop(state);
        self.act(number, action);
    }

    /// Undoes all. What another thread is undoing may lie in what is next: that waits.
    fn undo_all(&self) {
        let start = Instant::now();
        loop {
            let mut state = self.0.lock();
            let next = state.left.last().map(|(number, _)| *number);
            let waits = state.under_way.iter().any(|one| Some(*one) > next);
            if waits && start.elapsed() < PATIENCE {
                drop(state);
                thread::sleep(Duration::from_millis(5));
                continue;
            }
            let Some((number, action)) = state.left.pop() else {
                return;
            };
            state.under_way.push(number);
            drop(state);
            self.act(number, action);
        }
    }

    /// One that fails loudly must not keep the others from being undone.
    fn act(&self, number: u64, action: Action) {
        let _ = catch_unwind(AssertUnwindSafe(action));
        self.0.lock().under_way.retain(|own| *own != number);
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
        REGISTRY.register(Box::new(action), || ()).0
    }

    /// The same, and makes what `action` undoes, which an interruption waits for: it must be quick.
    pub fn making<T>(
        action: impl FnOnce() + Send + 'static,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<(Self, T)> {
        let (undo, made) = REGISTRY.register(Box::new(action), make);
        Ok((undo, made?))
    }

    /// Leaves it as it is.
    pub fn forget(self) {
        let mut state = self.registry.0.lock();
        state.left.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.registry.undo(self.number);
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
        REGISTRY.0.lock().stopping = true;
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
    if REGISTRY.0.lock().stopping {
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
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn each_is_undone_once_and_newest_first() {
        /// Not the process's own, which other tests use.
        static OWN: Registry = Registry::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            OWN.register(Box::new(move || log.lock().push(what)), || ())
                .0
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
                let _guard = OWN.register(Box::new(push), || ());
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
        let older = OWN.register(Box::new(move || note.lock().push("folder")), || ());
        let fails = || drop(std::fs::read("/no/such/file").unwrap());
        let newer = OWN.register(Box::new(fails), || ());
        OWN.undo_all();
        assert_eq!(*log.lock(), ["folder"]);
        assert!(OWN.0.lock().under_way.is_empty());
        drop((older, newer));
    }

    /// A folder that lies in another goes first, whichever thread removes it.
    #[test]
    fn what_others_are_undoing_is_gone_before_what_it_lies_in() {
        static OWN: Registry = Registry::new();
        let (begun, waits) = std::sync::mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (outer, inner) = (log.clone(), log.clone());
        let oldest = OWN.register(Box::new(move || outer.lock().push("outer")), || ());
        let slow = OWN.register(
            Box::new(move || {
                begun.send(()).unwrap();
                thread::sleep(Duration::from_millis(50));
                inner.lock().push("inner");
            }),
            || (),
        );
        let other = thread::spawn(move || drop(slow));
        waits.recv().unwrap();
        OWN.undo_all();
        assert_eq!(*log.lock(), ["inner", "outer"]);
        other.join().unwrap();
        drop(oldest);
    }

    /// Else a thread that unwinds would remove a folder while what lies in it is being removed.
    #[test]
    fn an_interruption_leaves_nothing_to_other_threads() {
        static OWN: Registry = Registry::new();
        let done = Arc::new(AtomicBool::new(false));
        let told = done.clone();
        let undo = move || told.store(true, Ordering::Relaxed);
        let (undo, made) = OWN.register(Box::new(undo), || OWN.0.try_lock().is_none());
        assert!(made, "nothing is undone while it is made");
        OWN.0.lock().stopping = true;
        drop(undo);
        assert!(!done.load(Ordering::Relaxed));
        OWN.undo_all();
        assert!(done.load(Ordering::Relaxed));
    }
}
