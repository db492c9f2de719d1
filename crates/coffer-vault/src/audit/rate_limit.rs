//! What happens again and again: the first time is told at once, the rest as a count a minute.

use std::collections::HashMap;
use std::time::Instant;

use coffer_audit::Event;
use parking_lot::Mutex;

use crate::access::Act;
use crate::limits::{ACT_FAILURES_MAX, PLACES_TOLD, REPEATS_KEPT, REPEATS_WINDOW};

/// Details that tell one kind of events from another, beside act, outcome, actor and access key.
const TELLING: [&str; 2] = ["reason", "claimed"];

/// Details that tell where it happened, or from where.
const PLACES: [&str; 4] = ["from", "bucket", "level", "subject"];

/// Events of late, by what is the same about them.
pub(crate) struct RateLimit {
    /// How many are kept at once.
    kept: usize,
    /// In how many places of its own each kind is counted; in all others together. So neither
    /// a caller with many addresses nor one that tries many names fills the log.
    places: usize,
    kinds: Mutex<Kinds>,
}

/// Acts that began and failed of late, by actor and act: each of them was recorded.
#[derive(Default)]
pub(crate) struct FailureLimit(Mutex<HashMap<ActorAndAct, (Instant, u32)>>);

type ActorAndAct = (String, Act);

impl FailureLimit {
    /// Counts one.
    pub(crate) fn add(&self, actor: String, act: Act, now: Instant) {
        let mut failed = self.0.lock();
        if failed.len() >= REPEATS_KEPT {
            failed.retain(|_, (since, _)| now.duration_since(*since) < REPEATS_WINDOW);
        }
        let (since, count) = failed.entry((actor, act)).or_insert((now, 0));
        if now.duration_since(*since) >= REPEATS_WINDOW {
            (*since, *count) = (now, 0);
        }
        *count += 1;
    }

    /// Whether so many failed within a minute that no more are begun.
    pub(crate) fn are_too_many(&self, actor: &str, act: Act, now: Instant) -> bool {
        let failed = self.0.lock();
        let found = failed.get(&(actor.to_owned(), act));
        found.is_some_and(|(since, count)| {
            *count >= ACT_FAILURES_MAX && now.duration_since(*since) < REPEATS_WINDOW
        })
    }
}

#[derive(Default)]
struct Kinds {
    /// The places of each kind.
    of: HashMap<String, Vec<Repeated>>,
    /// Of all kinds together.
    count: usize,
}

struct Repeated {
    /// None: all places that are not told apart.
    place: Option<String>,
    since: Instant,
    /// How often it happened after the first time.
    count: u64,
    event: Event,
}

impl RateLimit {
    /// Keeps so many kinds, wherever they happen.
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            kept,
            places: 0,
            kinds: Mutex::default(),
        }
    }

    /// Keeps so many kinds and their first few places.
    pub(crate) fn by_place(kept: usize) -> Self {
        Self {
            places: PLACES_TOLD,
            ..Self::new(kept)
        }
    }

    /// Takes an event that has happened. Gives it back when it is to be told at once: the first of
    /// its kind and place within a minute. Otherwise it is counted; what is then told of all has no
    /// details but those that tell kinds and places apart.
    pub(crate) fn take(&self, event: Event, now: Instant) -> Option<Event> {
        let mut kinds = self.kinds.lock();
        let (kind, mut place) = (kind(&event), place(&event));
        let known = kinds.of.get(&kind).map_or(&[][..], Vec::as_slice);
        let is_new = !known.iter().any(|repeated| repeated.place == place);
        // Half of the room is left to those who come later, with one place for each kind.
        let is_half_full = kinds.count >= self.kept / 2;
        if is_new && (is_half_full || told_apart(known) >= self.places) {
            place = None;
        }
        let mut known = kinds.of.get_mut(&kind).into_iter().flatten();
        if let Some(repeated) = known.find(|repeated| repeated.place == place) {
            repeated.count += 1;
            return None;
        }
        // With more than are kept, each is told as if it were the first: then the log's queue is
        // what limits them.
        if kinds.count < self.kept {
            let mut again = event.clone();
            again.details.retain(|name, _| {
                TELLING.contains(&&**name) || place.is_some() && PLACES.contains(&&**name)
            });
            kinds.count += 1;
            kinds.of.entry(kind).or_default().push(Repeated {
                place,
                since: now,
                count: 0,
                event: again,
            });
        }
        Some(event)
    }

    /// Whether an event can be counted: its kind is known, or there is room for one more.
    pub(crate) fn has_room_for(&self, event: &Event) -> bool {
        let kinds = self.kinds.lock();
        kinds.count < self.kept || kinds.of.contains_key(&kind(event))
    }

    /// What is to be told of those whose minute is over, or of all.
    pub(crate) fn due(&self, now: Instant, all: bool) -> Vec<Event> {
        let over =
            |repeated: &mut Repeated| all || now.duration_since(repeated.since) >= REPEATS_WINDOW;
        let mut kinds = self.kinds.lock();
        let of_all = kinds.of.values_mut();
        let ended: Vec<_> = of_all
            .flat_map(|places| places.extract_if(.., over))
            .collect();
        kinds.count -= ended.len();
        kinds.of.retain(|_, places| !places.is_empty());
        drop(kinds);
        let repeated = ended.into_iter().filter(|repeated| repeated.count > 0);
        repeated
            .map(|repeated| repeated.event.with("repeated", repeated.count))
            .collect()
    }
}

/// How many places of a kind are counted on their own.
fn told_apart(known: &[Repeated]) -> usize {
    let places = known.iter().filter(|repeated| repeated.place.is_some());
    places.count()
}

fn kind(event: &Event) -> String {
    let key = event.access_key_id.as_deref().unwrap_or_default();
    let head = format!("{} {:?} {} {key}", event.act, event.outcome, event.actor);
    described(head, event, &TELLING)
}

fn place(event: &Event) -> Option<String> {
    let place = described(String::new(), event, &PLACES);
    (!place.is_empty()).then_some(place)
}

fn described(mut text: String, event: &Event, details: &[&str]) -> String {
    for detail in details {
        if let Some(value) = event.details.get(*detail) {
            text.push(' ');
            text.push_str(value);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use coffer_audit::Outcome;

    use super::*;

    fn denied(who: &str) -> Event {
        Event::new("object.read", who, Outcome::Denied)
    }

    #[test]
    fn acts_that_fail_too_often_are_refused_for_a_minute() {
        let failures = FailureLimit::default();
        let now = Instant::now();
        for _ in 0..ACT_FAILURES_MAX {
            assert!(!failures.are_too_many("a", Act::ImportKey, now));
            failures.add("a".to_owned(), Act::ImportKey, now);
        }
        assert!(failures.are_too_many("a", Act::ImportKey, now));
        assert!(!failures.are_too_many("a", Act::CreateLevel, now));
        assert!(!failures.are_too_many("b", Act::ImportKey, now));
        let later = now + REPEATS_WINDOW;
        assert!(!failures.are_too_many("a", Act::ImportKey, later));
        failures.add("a".to_owned(), Act::ImportKey, later);
        assert!(!failures.are_too_many("a", Act::ImportKey, later));
    }

    #[test]
    fn the_first_is_told_and_the_rest_counted() {
        let repeats = RateLimit::new(10);
        let now = Instant::now();
        let take = |who: &str, at| repeats.take(denied(who).with("status", 1), at);
        assert_eq!(take("a", now), Some(denied("a").with("status", 1)));
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
    fn the_first_few_places_are_told_apart_and_all_others_counted_together() {
        let repeats = RateLimit::by_place(1_000);
        let now = Instant::now();
        let at = |place: usize| denied("a").with("bucket", format!("bucket-{place}"));
        let count = 3 * PLACES_TOLD;
        let told: Vec<_> = (0..2 * count)
            .filter_map(|number| repeats.take(at(number % count), now))
            .collect();
        let first: Vec<_> = (0..=PLACES_TOLD).map(at).collect();
        assert_eq!(told, first);
        assert!(
            repeats
                .take(denied("b").with("bucket", "bucket-0"), now)
                .is_some()
        );

        let mut counted = repeats.due(now, true);
        counted.sort_by_key(|event| event.details.get("bucket").cloned());
        let others = 2 * (count - PLACES_TOLD) - 1;
        let each = (0..PLACES_TOLD).map(|place| at(place).with("repeated", 1));
        let expected: Vec<_> = [denied("a").with("repeated", others)]
            .into_iter()
            .chain(each)
            .collect();
        assert_eq!(counted, expected);
    }

    #[test]
    fn places_leave_room_for_kinds() {
        let repeats = RateLimit::by_place(8);
        let now = Instant::now();
        for place in 0..PLACES_TOLD {
            repeats.take(denied("a").with("bucket", place), now);
        }
        for who in ["b", "c"] {
            assert!(repeats.take(denied(who), now).is_some());
            assert!(repeats.take(denied(who), now).is_none(), "it is counted");
        }
    }

    #[test]
    fn kinds_are_told_apart_by_reason_and_claim_and_bounded() {
        let repeats = RateLimit::new(2);
        let now = Instant::now();
        let of = |claimed: &str| denied("unknown").with("claimed", claimed);
        for (from, claimed) in ["A", "B", "A", "A"].into_iter().enumerate() {
            assert!(repeats.has_room_for(&of(claimed)));
            repeats.take(of(claimed).with("from", from), now);
        }
        assert!(!repeats.has_room_for(&of("C")));
        assert_eq!(repeats.due(now, true), [of("A").with("repeated", 2)]);
        assert!(repeats.has_room_for(&of("C")));
    }
}
