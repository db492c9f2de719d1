//! A stream that counts its system calls, and what a thread cost.

use std::cell::Cell;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use crate::cost::thread_cpu_seconds;

/// How many system calls were made; shared by all that one thread uses.
pub type Calls = Rc<Cell<u64>>;

/// Anything that reads and writes by one system call each time.
#[derive(Debug)]
pub struct Counted<S> {
    /// What is read and written.
    pub inner: S,
    /// Counts.
    pub calls: Calls,
}

impl<S> Counted<S> {
    /// Counts what `inner` does.
    pub fn new(inner: S, calls: &Calls) -> Self {
        Self {
            inner,
            calls: calls.clone(),
        }
    }

    /// Counts a call that was made some other way.
    pub fn count(&self) {
        self.calls.set(self.calls.get() + 1);
    }
}

impl<S: Read> Read for Counted<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.count();
        self.inner.read(buffer)
    }
}

impl<S: Write> Write for Counted<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.count();
        self.inner.write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.count();
        self.inner.write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A connection within this machine.
pub fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((client, server))
}

/// What the calling thread has cost so far.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCost {
    /// User and system.
    pub cpu_seconds: f64,
    /// How often it left its core, of its own or not.
    pub context_switches: u64,
}

impl ThreadCost {
    /// Until now.
    pub fn so_far() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self {
            cpu_seconds: thread_cpu_seconds(),
            context_switches: context_switches(&status),
        }
    }
}

fn context_switches(status: &str) -> u64 {
    let fields = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    fields
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_switches_are_counted() {
        let calls = Calls::default();
        let mut stream = Counted::new(io::Cursor::new(vec![1, 2, 3]), &calls);
        stream.read_exact(&mut [0; 2]).unwrap();
        stream.write_all(&[4]).unwrap();
        assert_eq!(calls.get(), 2);
        let status = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(context_switches(status), 7);
        let before = ThreadCost::so_far();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(ThreadCost::so_far().context_switches > before.context_switches);
    }
}
