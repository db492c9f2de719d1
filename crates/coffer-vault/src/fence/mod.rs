//! What keeps a server from changing anything: that it is a standby, is fenced off, or is a gateway
//! of an engine whose lease has ended.
//!
//! A standby serves states of a sealed copy, and what it would write would be lost with the next.
//! A server that is fenced by a copy changes nothing from when a standby of that copy was promoted,
//! and for as long as it can't tell: `docs/decisions/0056-a-standby.md`. Both are asked before a
//! change begins, and where it is committed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{CopyError, Result};

mod right;

mod standby_link;

#[cfg(test)]
pub(crate) use self::right::BOOT_TIME;
pub use self::right::ServingRight;
pub(crate) use self::standby_link::Asked;
pub use self::standby_link::{
    PromotedStandby, StandbyLink, StandbyProblem, StandbyState, StandbyStatus,
};

/// By which copy a server is fenced, and how soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedBy {
    /// The name of the copy.
    pub copy: String,
    /// For so long it may go on without reaching the copy.
    pub after: Duration,
}

/// How a server stands that is fenced by a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceStatus {
    /// The name of the copy.
    pub copy: String,
    /// What is known by it.
    pub state: FenceState,
    /// Whether later starts know it as well, of one in whose place another serves.
    pub is_noted: bool,
}

/// Who serves, as far as the copy by which a server is fenced told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceState {
    /// This server, and none in its place: changes are made.
    Alone,
    /// The copy was not asked in time, or not yet: nothing is changed until it is.
    NotReached,
    /// Another serves in its place: nothing is changed here any more.
    Ended,
}

/// Whether anything may be changed here.
#[derive(Default)]
pub(crate) struct ChangeGate {
    is_standby: bool,
    /// Whether that is of the log of an engine.
    follows_engine: bool,
    /// What knows which gateway serves in that case.
    link: Option<StandbyLink>,
    fence: Option<Fence>,
    right: Option<ServingRight>,
}

struct Fence {
    by: FencedBy,
    known: Mutex<Known>,
}

/// What is known of who else may serve.
#[derive(Default)]
struct Known {
    /// When the copy was asked last that said that none does.
    alone_at: Option<Instant>,
    /// Why this server changes nothing until it is started again.
    ended: Option<String>,
    /// Whether that is noted for later starts.
    is_noted: bool,
    /// Why the copy could not be asked.
    problem: Option<String>,
    /// How it stood when that was told last.
    told: Option<FenceState>,
}

impl Known {
    /// How it stands, where the copy is to be asked so often.
    fn state(&self, after: Duration) -> FenceState {
        let is_in_time = |at: Instant| at.elapsed() <= after;
        match self.alone_at {
            _ if self.ended.is_some() => FenceState::Ended,
            Some(at) if is_in_time(at) => FenceState::Alone,
            _ => FenceState::NotReached,
        }
    }
}

impl ChangeGate {
    pub(crate) fn new(standby: Option<&StandbyLink>, by: Option<FencedBy>) -> Self {
        let fence = by.map(|by| Fence {
            by,
            known: Mutex::default(),
        });
        Self {
            is_standby: standby.is_some(),
            follows_engine: standby.is_some_and(StandbyLink::is_of_engine),
            link: standby.cloned(),
            fence,
            right: None,
        }
    }

    /// Of a gateway of an engine, which serves for as long as this right holds.
    pub(crate) fn by_right(self, right: Option<ServingRight>) -> Self {
        Self { right, ..self }
    }

    /// Refuses what may be another gateway's to answer, reads as well.
    ///
    /// # Errors
    /// [`CopyError::LeaseEnded`].
    pub(crate) fn check_right(&self) -> Result<()> {
        self.right.as_ref().map_or(Ok(()), ServingRight::check)
    }

    /// The right of a gateway of an engine.
    pub(crate) fn right(&self) -> Option<ServingRight> {
        self.right.clone()
    }

    /// Whether this server is a gateway of an engine, be it that it serves or that it follows.
    pub(crate) fn is_gateway(&self) -> bool {
        self.is_of_engine() || self.follows_engine
    }

    /// Whether this server is the gateway of an engine that serves.
    pub(crate) fn is_of_engine(&self) -> bool {
        self.right.is_some()
    }

    /// Whether what is served is a state of a copy.
    pub(crate) fn is_standby(&self) -> bool {
        self.is_standby
    }

    /// Refuses what a standby can't do without leaving something behind.
    pub(crate) fn refuse_on_standby(&self, what: &'static str) -> Result<()> {
        match (self.is_standby, self.follows_engine) {
            (false, _) => Ok(()),
            (true, false) => Err(CopyError::Standby { what }.into()),
            (true, true) => {
                let link = self.link.as_ref();
                let serves = link.and_then(|link| link.status().gateway);
                Err(CopyError::Follows { what, serves }.into())
            }
        }
    }

    /// Refuses what the gateway that serves an engine has to know of, where another one does.
    pub(crate) fn refuse_on_follower(&self, what: &'static str) -> Result<()> {
        if self.follows_engine {
            self.refuse_on_standby(what)
        } else {
            Ok(())
        }
    }

    /// Refuses changes, where none may be made.
    ///
    /// # Errors
    /// [`CopyError::Standby`], [`CopyError::FencedOff`].
    pub(crate) fn check(&self) -> Result<()> {
        self.refuse_on_standby("it changes nothing")?;
        self.check_right()?;
        let Some(fence) = &self.fence else {
            return Ok(());
        };
        let known = fence.known.lock();
        let off = |why: String, is_for_good| {
            let copy = fence.by.copy.clone();
            Err(CopyError::FencedOff {
                copy,
                why,
                is_for_good,
            }
            .into())
        };
        match (known.state(fence.by.after), &known.ended) {
            (FenceState::Alone, _) => return Ok(()),
            (_, Some(ended)) => return off(ended.clone(), true),
            (_, None) => {}
        }
        let when = match known.alone_at {
            Some(at) => format!("for {} seconds", at.elapsed().as_secs()),
            None => "since the start".to_owned(),
        };
        let problem = known.problem.as_deref().unwrap_or("it was not asked yet");
        let why = format!("the copy was not reached {when}: {problem}");
        off(why, false)
    }

    /// How it stands, of a server that is fenced by a copy.
    pub(crate) fn fence(&self) -> Option<FenceStatus> {
        let fence = self.fence.as_ref()?;
        let known = fence.known.lock();
        Some(FenceStatus {
            copy: fence.by.copy.clone(),
            state: known.state(fence.by.after),
            is_noted: known.is_noted,
        })
    }

    /// How it stands, where this copy fences the server and that is another than when this was
    /// asked last. That changes are made is no news of a start.
    pub(crate) fn news(&self, copy: &str) -> Option<FenceState> {
        let fence = self.fence.as_ref().filter(|fence| fence.by.copy == copy)?;
        let mut known = fence.known.lock();
        let state = known.state(fence.by.after);
        let before = known.told.replace(state).unwrap_or(FenceState::Alone);
        (before != state).then_some(state)
    }

    /// Whether this copy fences the server off, so that it is to be asked all the time.
    pub(crate) fn is_fenced_by(&self, copy: &str) -> bool {
        self.fence
            .as_ref()
            .is_some_and(|fence| fence.by.copy == copy)
    }

    /// The copy, asked at that time, said that none serves in this one's place.
    pub(crate) fn alone(&self, copy: &str, at: Instant) {
        self.note(copy, |known| {
            known.alone_at = Some(at);
            known.problem = None;
        });
    }

    /// The copy could not be asked.
    pub(crate) fn not_reached(&self, copy: &str, problem: String) {
        self.note(copy, |known| known.problem = Some(problem));
    }

    /// What showed that another serves, where this copy fences the server.
    pub(crate) fn ended_by(&self, copy: &str) -> Option<String> {
        let fence = self.fence.as_ref().filter(|fence| fence.by.copy == copy)?;
        fence.known.lock().ended.clone()
    }

    /// The copy said that another serves.
    pub(crate) fn ended(&self, copy: &str, why: String) {
        self.note(copy, |known| known.ended = Some(why));
    }

    /// Later starts know that another serves.
    pub(crate) fn is_noted(&self, copy: &str) {
        self.note(copy, |known| known.is_noted = true);
    }

    fn note(&self, copy: &str, note: impl FnOnce(&mut Known)) {
        if let Some(fence) = self.fence.as_ref().filter(|fence| fence.by.copy == copy) {
            note(&mut fence.known.lock());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fenced(after: Duration) -> ChangeGate {
        let copy = "far".to_owned();
        ChangeGate::new(None, Some(FencedBy { copy, after }))
    }

    #[test]
    fn without_a_fence_changes_are_made() {
        assert!(ChangeGate::default().check().is_ok());
        for (is_of_engine, told) in [(false, "standby"), (true, "the gateway of this engine")] {
            let (link, _) = StandbyLink::new("file:///copy".to_owned(), is_of_engine);
            let gate = ChangeGate::new(Some(&link), None);
            let refused = gate.check().unwrap_err();
            assert!(refused.to_string().contains(told), "{refused}");
            assert_eq!(gate.is_gateway(), is_of_engine);
            let told_of = gate.refuse_on_follower("it reads");
            assert_eq!(told_of.is_err(), is_of_engine);
        }
    }

    #[test]
    fn what_fails_is_not_looked_at_without_pause() {
        let (link, mut asked) = StandbyLink::new("s3://engine".to_owned(), true);
        let mut is_asked = || asked.try_recv().is_ok();
        link.look();
        assert!(is_asked() && !is_asked());
        link.change(|told| told.state = StandbyState::Failing);
        link.look();
        assert!(!is_asked());
        link.change(|told| told.state = StandbyState::Following);
        link.look();
        assert!(is_asked());
    }

    #[test]
    fn a_copy_that_was_not_asked_in_time_lets_nothing_be_changed() {
        let gate = fenced(Duration::from_secs(60));
        assert!(gate.check().is_err(), "not asked yet");
        gate.alone("another", Instant::now());
        assert!(gate.check().is_err(), "of another copy");
        gate.alone("far", Instant::now());
        assert!(gate.check().is_ok());
        gate.not_reached("far", "away".to_owned());
        assert!(gate.check().is_ok(), "not for long enough");
        let gate = fenced(Duration::ZERO);
        gate.alone("far", Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        gate.not_reached("far", "away".to_owned());
        let why = gate.check().unwrap_err().to_string();
        assert!(why.contains("away"), "{why}");
    }

    #[test]
    fn how_a_fence_stands_is_told_once() {
        let gate = fenced(Duration::from_secs(60));
        let state = || gate.fence().map(|fence| fence.state);
        assert_eq!(state(), Some(FenceState::NotReached));
        assert_eq!(gate.news("another"), None);
        gate.not_reached("far", "away".to_owned());
        assert_eq!(gate.news("far"), Some(FenceState::NotReached));
        assert_eq!(gate.news("far"), None);
        gate.alone("far", Instant::now());
        assert_eq!(state(), Some(FenceState::Alone));
        assert_eq!(gate.news("far"), Some(FenceState::Alone));
        gate.ended("far", "promoted".to_owned());
        assert_eq!(state(), Some(FenceState::Ended));
        assert_eq!(gate.news("far"), Some(FenceState::Ended));
        assert_eq!(gate.news("far"), None);
        let gate = fenced(Duration::from_secs(60));
        gate.alone("far", Instant::now());
        assert_eq!(
            gate.news("far"),
            None,
            "that a start takes writes is no news"
        );
        assert_eq!(ChangeGate::default().fence(), None);
    }

    #[test]
    fn what_was_promoted_is_not_forgotten() {
        let gate = fenced(Duration::from_secs(60));
        gate.alone("far", Instant::now());
        gate.ended("far", "promoted".to_owned());
        gate.alone("far", Instant::now());
        let why = gate.check().unwrap_err().to_string();
        assert!(why.contains("promoted"), "{why}");
    }
}
