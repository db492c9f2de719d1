//! Machines: tasks that pause together and die together, and clocks that go as they like.
//!
//! A machine runs its tasks by itself: which of those that can go on is next follows from the seed,
//! and not from the order in which tokio wakes them, which is another each time.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::chance::Chance;
use crate::fence::BOOT_TIME;

/// A machine.
pub(super) struct Host {
    pub(super) number: usize,
    began: Instant,
    /// By how many millionths its clock runs faster than others, or slower.
    drift_ppm: i64,
    state: Mutex<State>,
    chance: Chance,
}

#[derive(Default)]
struct State {
    next: u64,
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    /// Those that can go on.
    ready: BTreeSet<u64>,
    /// What wakes the machine.
    waker: Option<Waker>,
    is_paused: bool,
    /// By how much the time of day is set wrong.
    wrong_by_ms: i64,
    /// Something that it did has panicked.
    has_panicked: bool,
}

/// What runs the tasks of a machine, one at a time.
struct Running(Arc<Host>);

/// What wakes a task.
struct TaskWaker {
    host: Weak<Host>,
    task: u64,
}

/// What ends a task when it is waited for no more by who may end it.
struct Ends {
    host: Weak<Host>,
    task: u64,
}

/// As long as something of a machine runs.
struct Polling<'a>(&'a Host);

/// The most by which a clock runs fast or slow: five of a hundred.
const DRIFT_PPM_MAX: i64 = 50_000;

/// What the time of day is when a run begins, in milliseconds since 1970.
const FIRST_MS: i64 = 1_764_000_000_000;

impl Host {
    pub(super) fn new(number: usize, chance: &Chance) -> Arc<Self> {
        let drift = chance.below(2 * DRIFT_PPM_MAX as u64 + 1) as i64;
        let host = Arc::new(Self {
            number,
            began: Instant::now(),
            drift_ppm: drift - DRIFT_PPM_MAX,
            state: Mutex::default(),
            chance: chance.clone(),
        });
        tokio::spawn(Running(host.clone()));
        host
    }

    /// Has it do this. The handle ends it when it is told to, and fails when the machine dies.
    pub(super) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        work: BoxFuture<'static, T>,
    ) -> JoinHandle<T> {
        let (tells, told) = oneshot::channel();
        let work = work.map(|done| drop(tells.send(done))).boxed();
        let task = {
            let mut state = self.state.lock();
            state.next += 1;
            let task = state.next;
            state.tasks.insert(task, work);
            task
        };
        self.wake(task);
        let host = Arc::downgrade(self);
        let ends = Ends { host, task };
        tokio::spawn(async move {
            let done = told.await;
            drop(ends);
            // Told by no hook: it is no panic of the program.
            done.unwrap_or_else(|_| std::panic::resume_unwind(Box::new("the machine died")))
        })
    }

    fn wake(&self, task: u64) {
        let mut state = self.state.lock();
        state.ready.insert(task);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Nothing of it runs from now on, while time goes on.
    pub(super) fn pause(&self) {
        self.state.lock().is_paused = true;
    }

    /// It goes on, with what was to be done in any order.
    pub(super) fn go_on(&self) {
        let mut state = self.state.lock();
        state.is_paused = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// All that it did is gone.
    pub(super) fn die(&self) {
        let tasks = {
            let mut state = self.state.lock();
            state.is_paused = false;
            state.ready.clear();
            std::mem::take(&mut state.tasks)
        };
        drop(tasks);
    }

    /// Whether anything that it did has panicked.
    pub(super) fn has_panicked(&self) -> bool {
        self.state.lock().has_panicked
    }

    /// Its clock of the time of day is set to another time.
    pub(super) fn set_clock(&self, by_ms: i64) {
        self.state.lock().wrong_by_ms += by_ms;
    }

    /// The time of day by its clock, in milliseconds since 1970.
    pub(super) fn wall_ms(&self) -> i64 {
        FIRST_MS + self.began.elapsed().as_millis() as i64 + self.state.lock().wrong_by_ms
    }

    /// Since it was started, by the clock that runs on while it is paused.
    fn boot_time(&self) -> Duration {
        let passed_us = self.began.elapsed().as_micros() as i64;
        let drifted_us = passed_us + passed_us * self.drift_ppm / 1_000_000;
        Duration::from_secs(1_000) + Duration::from_micros(drifted_us.unsigned_abs())
    }

    /// One of the tasks that can go on; none, while it is paused.
    fn next(&self, waker: &Waker) -> Option<(u64, BoxFuture<'static, ()>)> {
        let mut state = self.state.lock();
        state.waker = Some(waker.clone());
        if state.is_paused || state.ready.is_empty() {
            return None;
        }
        let any = self.chance.below(state.ready.len() as u64) as usize;
        let task = state.ready.iter().nth(any).copied()?;
        state.ready.remove(&task);
        // What has ended may have been woken.
        let ended = || (task, futures::future::ready(()).boxed());
        Some(
            state
                .tasks
                .remove(&task)
                .map_or_else(ended, |work| (task, work)),
        )
    }
}

impl Future for Running {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let host = &self.0;
        let Some((task, mut work)) = host.next(context.waker()) else {
            return Poll::Pending;
        };
        let wakes = TaskWaker {
            host: Arc::downgrade(host),
            task,
        };
        let waker = Waker::from(Arc::new(wakes));
        let polled = {
            let _polling = Polling::begin(host);
            work.poll_unpin(&mut Context::from_waker(&waker))
        };
        if polled.is_pending() {
            host.state.lock().tasks.insert(task, work);
        }
        // One at a time, so that each has its share of what tokio lets one task do.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(host) = self.host.upgrade() {
            host.wake(self.task);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let host = self.host.upgrade();
        let ended = host.and_then(|host| host.state.lock().tasks.remove(&self.task));
        drop(ended);
    }
}

impl<'a> Polling<'a> {
    fn begin(host: &'a Host) -> Self {
        BOOT_TIME.set(Some(host.boot_time()));
        Self(host)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        BOOT_TIME.set(None);
        if std::thread::panicking() {
            self.0.state.lock().has_panicked = true;
        }
    }
}
