//! What happens again and again: the first time is told at once, the rest as a count a minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use coffer_audit::Event;

use crate::limits::REPEATS_WINDOW;

/// Details that tell one kind of events from another, beside act, outcome and actor.
const TELLING: [&str; 2] = ["reason", "claimed"];

/// Events of late, by what is the same about them.
pub(crate) struct Repeats {
    /// How many kinds are kept at once.
    kept: usize,
    kinds: Mutex<HashMap<String, Repeated>>,
}

struct Repeated {
    since: Instant,
    /// How often it happened after the first time.
    count: u64,
    event: Event,
}

impl Repeats {
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            kept,
            kinds: Mutex::default(),
        }
    }

    /// Takes an event that has happened. Gives it back when it is to be told at once: the first of
    /// its kind within a minute. Otherwise it is counted; what is then told of all has no details
    /// but those that tell kinds apart.
    pub(crate) fn take(&self, event: Event, now: Instant) -> Option<Event> {
        let mut kinds = self.kinds();
        let kind = kind(&event);
        if let Some(repeated) = kinds.get_mut(&kind) {
            repeated.count += 1;
            return None;
        }
        // With more kinds than are kept, each is told as if it were the first: then the log's queue
        // is what limits them.
        if kinds.len() < self.kept {
            let mut again = event.clone();
            again.details.retain(|name, _| TELLING.contains(&&**name));
            let repeated = Repeated {
                since: now,
                count: 0,
                event: again,
            };
            kinds.insert(kind, repeated);
        }
        Some(event)
    }

    /// Whether an event can be counted: its kind is known, or there is room for one more.
    pub(crate) fn has_room_for(&self, event: &Event) -> bool {
        let kinds = self.kinds();
        kinds.len() < self.kept || kinds.contains_key(&kind(event))
    }

    /// What is to be told of those whose minute is over, or of all.
    pub(crate) fn due(&self, now: Instant, all: bool) -> Vec<Event> {
        let over = |_: &String, repeated: &mut Repeated| {
            all || now.duration_since(repeated.since) >= REPEATS_WINDOW
        };
        self.kinds()
            .extract_if(over)
            .filter(|(_, repeated)| repeated.count > 0)
            .map(|(_, repeated)| repeated.event.with("repeated", repeated.count))
            .collect()
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<String, Repeated>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind(event: &Event) -> String {
    let mut kind = format!("{} {:?} {}", event.act, event.outcome, event.actor);
    for detail in TELLING {
        if let Some(value) = event.details.get(detail) {
            kind.push(' ');
            kind.push_str(value);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use coffer_audit::Outcome;

    use super::*;

    fn denied(who: &str) -> Event {
        Event::new("object.read", who, Outcome::Denied)
    }

    #[test]
    fn the_first_is_told_and_the_rest_counted() {
        let repeats = Repeats::new(10);
        let now = Instant::now();
        let take = |who: &str, at| repeats.take(denied(who).with("from", 1), at);
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

    #[test]
    fn kinds_are_told_apart_by_reason_and_claim_and_bounded() {
        let repeats = Repeats::new(2);
        let now = Instant::now();
        let of = |claimed: &str| denied("unknown").with("claimed", claimed);
        for claimed in ["A", "B", "A", "A"] {
            assert!(repeats.has_room_for(&of(claimed)));
            repeats.take(of(claimed).with("from", 1), now);
        }
        assert!(!repeats.has_room_for(&of("C")));
        assert_eq!(repeats.due(now, true), [of("A").with("repeated", 2)]);
        assert!(repeats.has_room_for(&of("C")));
    }
}
