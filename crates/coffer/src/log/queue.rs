//! Lines of the log on their way to standard error.
//!
//! Standard error may be a file on a full disk, a pipe without a reader, or closed. None of that
//! may keep an answer waiting: lines go through a bounded queue to a thread of their own, and what
//! finds no room there, or can't be written, is lost and counted. How many were lost is told as
//! soon as lines can be written again, and in a metric.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use coffer_admin::count_lost_log_lines;
use tracing_subscriber::fmt::MakeWriter;

use crate::limits::{LOG_FLUSH_WAIT, LOG_LINES_WAITING};

enum Item {
    Line(Vec<u8>),
    /// To be answered when all before it has been written, or lost.
    Flush(SyncSender<()>),
}

/// Takes lines, and never waits. Clones are the same.
#[derive(Clone)]
pub struct LogQueue {
    items: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

static QUEUE: OnceLock<LogQueue> = OnceLock::new();

impl LogQueue {
    /// A queue whose lines go to `out`, from a thread of its own. `tell_lost` is to make a line of
    /// the log that says how many were lost.
    pub fn start<W, F>(out: W, tell_lost: F) -> io::Result<Self>
    where
        W: Write + Send + 'static,
        F: Fn(u64) + Send + 'static,
    {
        let (items, waiting) = sync_channel(LOG_LINES_WAITING);
        let lost = Arc::<AtomicU64>::default();
        let queue = Self {
            items,
            lost: lost.clone(),
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&waiting, out, &lost, &tell_lost))?;
        Ok(queue)
    }

    /// The process's own, on standard error.
    pub fn to_stderr() -> Option<Self> {
        if let Some(queue) = QUEUE.get() {
            return Some(queue.clone());
        }
        let tell_lost = |lines| tracing::warn!(lines, "lines of this log were lost");
        // Not by way of the standard library's, whose lock a write that hangs would hold.
        let stderr = io::stderr().as_fd().try_clone_to_owned().ok()?;
        let queue = Self::start(File::from(stderr), tell_lost).ok()?;
        Some(QUEUE.get_or_init(|| queue).clone())
    }

    fn take(&self, line: &[u8]) {
        if self.items.try_send(Item::Line(line.to_owned())).is_err() {
            lose(&self.lost);
        }
    }

    fn flush(&self, wait: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.items.try_send(Item::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(wait);
        }
    }
}

/// Waits until the lines so far are written, but not for long.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LOG_FLUSH_WAIT);
    }
}

fn lose(lost: &AtomicU64) {
    lost.fetch_add(1, Ordering::Relaxed);
    count_lost_log_lines(1);
}

fn write_all<W: Write>(
    waiting: &Receiver<Item>,
    mut out: W,
    lost: &AtomicU64,
    tell_lost: &impl Fn(u64),
) {
    while let Ok(item) = waiting.recv() {
        let line = match item {
            Item::Line(line) => line,
            Item::Flush(done) => {
                let _ = done.try_send(());
                continue;
            }
        };
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            lose(lost);
            continue;
        }
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            tell_lost(count);
        }
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            queue: self,
            text: Vec::new(),
        }
    }
}

/// A line that is being put together.
pub struct Line<'a> {
    queue: &'a LogQueue,
    text: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.queue.take(&self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::time::Instant;

    use super::*;

    /// Fails as long as it is told to; or hangs as long as its gate is held.
    #[derive(Clone, Default)]
    struct Out {
        fails: Arc<AtomicU64>,
        gate: Arc<Mutex<()>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _gate = self.gate.lock();
            if self.fails.load(Ordering::SeqCst) > 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.text.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn queue(out: &Out) -> (LogQueue, Arc<AtomicU64>) {
        let told = Arc::<AtomicU64>::default();
        let tell = told.clone();
        let queue = LogQueue::start(out.clone(), move |lines| {
            tell.fetch_add(lines, Ordering::SeqCst);
        });
        (queue.unwrap(), told)
    }

    fn say(queue: &LogQueue, line: &str) {
        writeln!(queue.make_writer(), "{line}").unwrap();
    }

    #[test]
    fn what_can_not_be_written_is_lost_and_told_afterwards() {
        let out = Out::default();
        let (queue, told) = queue(&out);
        say(&queue, "one");
        queue.flush(Duration::from_secs(5));
        out.fails.store(1, Ordering::SeqCst);
        for _ in 0..3 {
            say(&queue, "lost");
        }
        queue.flush(Duration::from_secs(5));
        assert_eq!(told.load(Ordering::SeqCst), 0);
        out.fails.store(0, Ordering::SeqCst);
        say(&queue, "two");
        queue.flush(Duration::from_secs(5));
        assert_eq!(told.load(Ordering::SeqCst), 3);
        assert_eq!(out.text.lock().as_slice(), b"one\ntwo\n");
    }

    #[test]
    fn a_reader_that_hangs_keeps_nobody_waiting() {
        let out = Out::default();
        let (queue, told) = queue(&out);
        let held = out.gate.lock();
        let begun = Instant::now();
        let surplus = 50;
        for _ in 0..LOG_LINES_WAITING + surplus {
            say(&queue, "line");
        }
        queue.flush(Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_secs(5));
        drop(held);
        // In turn behind what waits.
        while told.load(Ordering::SeqCst) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        let lost = told.load(Ordering::SeqCst) as usize;
        assert!((surplus - 1..=surplus).contains(&lost), "{lost}");
    }
}
