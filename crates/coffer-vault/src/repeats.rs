//! What happens again and again: the first time is told at once, the rest as a count a minute.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use coffer_audit::Event;

use crate::limits::{REPEATS_KEPT, REPEATS_WINDOW};

/// Events of late, by what is the same about them.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<HashMap<String, Repeated>>);

struct Repeated {
    since: Instant,
    /// How often it happened after the first time.
    count: u64,
    event: Event,
}

impl Repeats {
    /// Takes an event that has happened. Gives it back when it is to be told at once: the first of
    /// its kind within a minute. Otherwise it is counted; what is then told of all has no details.
    pub(crate) fn take(&self, kind: String, event: Event, now: Instant) -> Option<Event> {
        let mut repeats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(repeated) = repeats.get_mut(&kind) {
            repeated.count += 1;
            return None;
        }
        // With more kinds than are kept, each is told as if it were the first: then the log's queue
        // is what limits them.
        if repeats.len() < REPEATS_KEPT {
            let repeated = Repeated {
                since: now,
                count: 0,
                event: Event {
                    details: BTreeMap::new(),
                    ..event.clone()
                },
            };
            repeats.insert(kind, repeated);
        }
        Some(event)
    }

    /// What is to be told of those whose minute is over, or of all.
    pub(crate) fn due(&self, now: Instant, all: bool) -> Vec<Event> {
        let mut repeats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |_: &String, repeated: &mut Repeated| {
            all || now.duration_since(repeated.since) >= REPEATS_WINDOW
        };
        repeats
            .extract_if(over)
            .filter(|(_, repeated)| repeated.count > 0)
            .map(|(_, repeated)| repeated.event.with("repeated", repeated.count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use coffer_audit::Outcome;

    use super::*;

    #[test]
    fn the_first_is_told_and_the_rest_counted() {
        let repeats = Repeats::default();
        let denied = |who: &str| Event::new("object.read", who, Outcome::Denied);
        let now = Instant::now();
        let take = |who: &str, at| repeats.take(who.to_owned(), denied(who).with("from", 1), at);
        assert_eq!(take("a", now), Some(denied("a").with("from", 1)));
        assert!(take("b", now).is_some());
        for _ in 0..5 {
            assert!(take("a", now).is_none());
        }
        assert!(repeats.due(now, false).is_empty());
        let later = now + REPEATS_WINDOW;
        let told = repeats.due(later, false);
        assert_eq!(told, [denied("a").with("repeated", 5)]);
        assert!(take("a", later).is_some());
        assert!(repeats.due(later, true).is_empty());
    }
}
