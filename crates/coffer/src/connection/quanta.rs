//! How much a connection reads or writes before it lets others go first, as in deficit round robin.
//!
//! hyper hands on what it has read, 64 KiB at a time, and gives up its thread each time. On a
//! hundred uploads that take 64 KiB in turn, what each of them needs has left the processor's cache
//! when its turn comes again, and moving and sealing bytes costs a quarter more. So a connection is
//! asked to go on until it has read a quantum, or has no more to read.
//!
//! A download to a client that takes all at once never finds its socket full. It would go on until
//! the runtime stops it, 128 writes or 32 MiB later, with all others behind it: so it rests after a
//! quantum.
//!
//! Small answers are written one behind the other, when the other requests that are ready have
//! theirs as well. One that goes out by itself wakes a client that sleeps, which can cost more than
//! sending it, and what the next request needs has left the processor's cache by then. The first
//! one after a thread woke goes out at once: a client is to be woken in any case, and a request
//! that comes alone waits for no other. Beside large transfers none waits: their turns are long.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;

use crate::limits::{
    QUANTUM_BYTES, QUANTUM_STEP_BYTES, SMALL_ANSWER_BYTES, SMALL_ANSWERS_IN_A_ROW,
};

thread_local! {
    /// Whether a small answer went out since this thread woke.
    static HAS_ANSWERED: Cell<bool> = const { Cell::new(false) };
    /// How many small answers this thread had since it last moved more for one connection.
    static SMALL_IN_A_ROW: Cell<usize> = const { Cell::new(0) };
}

/// The runtime tells that this thread slept, for it had nothing to do, and woke.
pub fn thread_woke() {
    HAS_ANSWERED.set(false);
}

/// Whether a small answer, which is now at hand, is to wait for the others.
fn waits_for_others() -> bool {
    let has_answered = HAS_ANSWERED.replace(true);
    let in_a_row = SMALL_IN_A_ROW.get().saturating_add(1);
    SMALL_IN_A_ROW.set(in_a_row);
    has_answered && in_a_row > SMALL_ANSWERS_IN_A_ROW
}

/// This thread moves much for one connection: behind such turns a small answer doesn't wait.
fn moves_much() {
    SMALL_IN_A_ROW.set(0);
}

/// Counts what one connection reads.
#[derive(Debug, Clone, Default)]
pub struct ReadCount(Arc<AtomicUsize>);

impl ReadCount {
    /// Notes that so many bytes were read.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many bytes it was since this was last asked.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Drives `connection` to its end, a quantum at a time. Whatever reads for it tells `read`.
pub async fn by_quanta<C: Future>(mut connection: Pin<&mut C>, read: &ReadCount) -> C::Output {
    std::future::poll_fn(|cx| {
        let mut quantum_bytes = 0;
        read.take();
        loop {
            if let ended @ Poll::Ready(_) = connection.as_mut().poll(cx) {
                return ended;
            }
            // One that read this much has more to read, or will find that there is none. If it goes
            // on because it has asked to be woken, it is woken once more; that costs little.
            let step_bytes = read.take();
            quantum_bytes += step_bytes;
            if step_bytes >= QUANTUM_STEP_BYTES {
                moves_much();
            }
            if step_bytes < QUANTUM_STEP_BYTES || quantum_bytes >= QUANTUM_BYTES {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// A stream whose writes let others go first after each quantum, and before a small answer.
#[derive(Debug)]
pub struct WriteByQuanta<S> {
    inner: S,
    /// Since it last let others go first.
    written_bytes: usize,
    /// Whether the answer that is being written has let others go first, or needn't.
    has_waited: bool,
}

impl<S> WriteByQuanta<S> {
    /// Writes to `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            written_bytes: 0,
            has_waited: false,
        }
    }
}

impl<S: Unpin> WriteByQuanta<S> {
    fn write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        length: usize,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.written_bytes >= QUANTUM_BYTES {
            this.written_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if length > SMALL_ANSWER_BYTES {
            moves_much();
        } else if !this.has_waited {
            this.has_waited = true;
            if waits_for_others() {
                // Its first turn ends here, and it is woken when there is nothing else to do.
                ready!(pin!(yield_now()).poll(cx));
            }
        }
        let written = ready!(write(Pin::new(&mut this.inner), cx));
        this.written_bytes += *written.as_ref().unwrap_or(&0);
        Poll::Ready(written)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteByQuanta<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, bytes.len(), |inner, cx| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.write(cx, length, |inner, cx| {
            inner.poll_write_vectored(cx, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        this.has_waited = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteByQuanta<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::sink;

    /// Reads a step whenever it is polled, and ends after the last one.
    struct Reader {
        steps: Vec<usize>,
        read: ReadCount,
    }

    impl Future for Reader {
        type Output = &'static str;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'static str> {
            let Some(step_bytes) = self.steps.pop() else {
                return Poll::Ready("ended");
            };
            self.read.add(step_bytes);
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }

    /// How many steps are left after each time that it gives up its thread.
    fn rests(steps: Vec<usize>) -> Vec<usize> {
        let read = ReadCount::default();
        let mut reader = Reader {
            steps,
            read: read.clone(),
        };
        let mut rests = Vec::new();
        loop {
            let polled = {
                let mut run = std::pin::pin!(by_quanta(Pin::new(&mut reader), &read));
                run.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            };
            match polled {
                Poll::Pending => rests.push(reader.steps.len()),
                Poll::Ready(_) => return rests,
            }
        }
    }

    #[test]
    fn a_busy_connection_gives_way_after_each_quantum() {
        let steps = QUANTUM_BYTES / QUANTUM_STEP_BYTES;
        assert_eq!(
            rests(vec![QUANTUM_STEP_BYTES; 3 * steps]),
            [2 * steps, steps, 0]
        );
        assert_eq!(rests(vec![QUANTUM_BYTES + 1; 3]), [2, 1, 0]);
    }

    #[test]
    fn a_connection_that_reads_little_gives_way_at_once() {
        assert_eq!(rests(vec![QUANTUM_STEP_BYTES - 1, 0, 1]), [2, 1, 0]);
        // A large upload's end, then a small request.
        assert_eq!(rests(vec![10, 0, QUANTUM_STEP_BYTES]), [1, 0]);
    }

    #[test]
    fn a_download_to_a_client_that_takes_all_rests_after_each_quantum() {
        let cx = &mut Context::from_waker(Waker::noop());
        let mut stream = WriteByQuanta::new(sink());
        let piece = [0; QUANTUM_BYTES / 4];
        let writes = (0..15).map(|_| Pin::new(&mut stream).poll_write(cx, &piece).is_ready());
        let rests: Vec<_> = writes.enumerate().filter(|(_, wrote)| !wrote).collect();
        assert_eq!(rests, [(4, false), (9, false), (14, false)]);
    }

    /// Which of so many small answers, each by another connection, are written at once.
    fn at_once(count: usize, bytes: usize) -> Vec<bool> {
        let cx = &mut Context::from_waker(Waker::noop());
        let answer = vec![0; bytes];
        let mut streams: Vec<_> = (0..count).map(|_| WriteByQuanta::new(sink())).collect();
        let mut write = |stream: &mut WriteByQuanta<_>| {
            let written = Pin::new(&mut *stream).poll_write(cx, &answer).is_ready();
            if written {
                assert!(Pin::new(stream).poll_flush(cx).is_ready());
            }
            written
        };
        let first: Vec<_> = streams.iter_mut().map(&mut write).collect();
        // When its turn comes again, each goes out.
        let turns = streams.iter_mut().zip(&first);
        let mut waiting = turns.filter(|(_, written)| !**written);
        assert!(waiting.all(|(stream, _)| write(stream)));
        first
    }

    #[test]
    fn small_answers_wait_for_each_other_but_for_the_first_since_the_thread_woke() {
        at_once(SMALL_ANSWERS_IN_A_ROW, 1);
        thread_woke();
        assert_eq!(at_once(3, SMALL_ANSWER_BYTES), [true, false, false]);
        assert_eq!(at_once(2, 1), [false, false]);
        thread_woke();
        assert_eq!(at_once(2, 1), [true, false]);
    }

    #[test]
    fn beside_large_transfers_no_answer_waits() {
        at_once(SMALL_ANSWERS_IN_A_ROW, 1);
        assert_eq!(at_once(3, SMALL_ANSWER_BYTES + 1), [true; 3]);
        assert_eq!(
            at_once(SMALL_ANSWERS_IN_A_ROW, 1),
            [true; SMALL_ANSWERS_IN_A_ROW]
        );
        assert_eq!(at_once(1, 1), [false]);
        rests(vec![QUANTUM_STEP_BYTES]);
        assert_eq!(at_once(1, 1), [true]);
    }
}
