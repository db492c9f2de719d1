//! What waits to be written.

use std::collections::VecDeque;
use std::time::Instant;

use crate::error::AuditError;
use crate::event::{DROPPED, Event};
use crate::format::record::Recorded;
use crate::limits::{GROUP_COUNT_MAX, GROUP_EVENT_BYTES, NOTE_LINGER, NOTES_MAX, WAITING_MAX};
use crate::write::prune::Order;
use coffer_durable::now_ms;

/// Told what became of an event, on the writing thread: so it must not block.
pub(crate) type Answer = Box<dyn FnOnce(Result<Recorded, AuditError>) + Send>;

/// Events in the order in which they came, and notes.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<(Vec<u8>, Answer)>,
    notes: VecDeque<Vec<u8>>,
    /// Notes for which there was no room, since that was recorded last.
    dropped_count: u64,
    /// When notes are to be written, with whatever is there by then.
    notes_due: Option<Instant>,
    /// What is to be pruned.
    order: Option<Order>,
    /// Nothing is taken any more; what is there is written.
    pub(crate) is_closed: bool,
}

/// What is written together.
pub(crate) struct Batch {
    pub(crate) events: Vec<Vec<u8>>,
    /// Done after they are written.
    pub(crate) order: Option<Order>,
    /// Of the first events.
    pub(crate) answers: Vec<Answer>,
    /// How many notes follow these.
    note_count: usize,
    /// What the event behind the notes says, if it is not 0.
    dropped_count: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, event: Vec<u8>, answer: Answer) -> Result<(), AuditError> {
        if self.is_closed {
            return Err(AuditError::Closed);
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(AuditError::Busy);
        }
        self.waiting.push_back((event, answer));
        Ok(())
    }

    pub(crate) fn push_note(&mut self, event: Vec<u8>) {
        if self.is_closed || self.notes.len() >= NOTES_MAX {
            self.dropped_count += 1;
        } else {
            self.notes.push_back(event);
        }
        self.notes_due
            .get_or_insert_with(|| Instant::now() + NOTE_LINGER);
    }

    pub(crate) fn push_order(&mut self, order: Order) -> Result<(), AuditError> {
        if self.is_closed {
            return Err(AuditError::Closed);
        }
        self.order = Some(order);
        Ok(())
    }

    /// Whether there is something to be written now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.waiting.is_empty()
            || self.order.is_some()
            || self.has_notes() && (self.is_closed || self.notes_due <= Some(now))
    }

    /// When there will be, if nothing else comes.
    pub(crate) fn notes_due(&self) -> Option<Instant> {
        self.notes_due.filter(|_| self.has_notes())
    }

    fn has_notes(&self) -> bool {
        !self.notes.is_empty() || self.dropped_count > 0
    }

    /// As much as may be written together: first what is waited for.
    pub(crate) fn take(&mut self) -> Batch {
        let mut batch = Batch {
            events: Vec::new(),
            order: self.order.take(),
            answers: Vec::new(),
            note_count: 0,
            dropped_count: 0,
        };
        let mut length_bytes = 0;
        let mut fits = |event: &Vec<u8>, count: usize| {
            length_bytes += event.len();
            // One is left for the notes that were dropped.
            count + 1 < GROUP_COUNT_MAX && length_bytes <= GROUP_EVENT_BYTES
        };
        while let Some((event, _)) = self.waiting.front() {
            if !fits(event, batch.events.len()) {
                return batch;
            }
            let (event, answer) = self.waiting.pop_front().expect("it is there");
            batch.events.push(event);
            batch.answers.push(answer);
        }
        while let Some(event) = self.notes.front() {
            if !fits(event, batch.events.len()) {
                return batch;
            }
            batch.events.extend(self.notes.pop_front());
            batch.note_count += 1;
        }
        batch.dropped_count = std::mem::take(&mut self.dropped_count);
        if batch.dropped_count > 0 {
            let event = Event::of_log(DROPPED).with("count", batch.dropped_count);
            batch.events.extend(event.encode_own(now_ms()).ok());
        }
        self.notes_due = None;
        batch
    }

    /// Takes notes back that were not written, to be tried again.
    pub(crate) fn take_back(&mut self, batch: &mut Batch) {
        let notes = batch.answers.len()..batch.answers.len() + batch.note_count;
        self.dropped_count += batch.dropped_count;
        for event in batch.events.drain(notes).rev() {
            if self.notes.len() < NOTES_MAX {
                self.notes.push_front(event);
            } else {
                self.dropped_count += 1;
            }
        }
        self.notes_due = Some(Instant::now() + NOTE_LINGER);
    }
}
