//! Answers that stand: what gateways that follow were told, and answer reads by for a moment
//! without asking again (`docs/decisions/0068-answers-that-stand.md`).
//!
//! One bucket, whose versions count what was committed. Who serves counts what it told as over only
//! when the follower does: clocks differ by less than the margin. That what was just changed does
//! not stand for some seconds is left out: it saves changes from waiting, and is no part of why no
//! read is stale.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// No read lacks what anyone was told before it came.
pub const STANDS_FRESH: &str = "no read by an answer that stands is stale";
/// That reads are answered so, after a change and a takeover.
pub const STANDS_AGAIN: &str = "an answer stands again after a change and a takeover";

/// Which rules gateways keep.
#[derive(Clone, Copy, Debug)]
pub struct StandingRules {
    /// What is changed is told to none before what followers were told of before is over.
    pub waits: bool,
    /// Nor to a follower that asks.
    pub bridles: bool,
    /// Nothing stands of what is being changed, or is in doubt.
    pub ends_at_changes: bool,
    /// What stands is over when another state is served.
    pub ends_with_state: bool,
    /// An answer counts for nothing that was asked for when another state was served.
    pub ignores_older: bool,
    /// It counts from when it was asked for, not from when it came.
    pub counts_from_asking: bool,
    /// Who takes over waits for what its predecessor told.
    pub waits_for_predecessor: bool,
}

impl StandingRules {
    /// As decided.
    pub const ALL: Self = Self {
        waits: true,
        bridles: true,
        ends_at_changes: true,
        ends_with_state: true,
        ignores_older: true,
        counts_from_asking: true,
        waits_for_predecessor: true,
    };
}

/// How far the search goes, with one takeover.
#[derive(Clone, Debug)]
pub struct Standers {
    /// Which rules they keep.
    pub rules: StandingRules,
    /// How many gateways follow.
    pub followers: u8,
    /// How many changes there are.
    pub changes: u8,
    /// How many reads each follower is asked for.
    pub reads: u8,
}

/// A change that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    Begun,
    Shown,
}

/// A question on its way, and then its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Question {
    /// Whether the read that waits came before it.
    is_of_read: bool,
    is_late: bool,
    /// Whether another state is served by now.
    is_older: bool,
    /// None of what is not to be told yet.
    version: Option<Option<u8>>,
    stands: Option<bool>,
}

/// A gateway that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Follower {
    state: u8,
    question: Option<Question>,
    standing: Option<u8>,
    /// A read that waits: what anyone had been told when it came.
    waits: Option<u8>,
    reads: u8,
    was_stale: bool,
}

/// What there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StandingState {
    visible: u8,
    log: u8,
    told: u8,
    begun: u8,
    change: Option<Change>,
    is_in_doubt: bool,
    /// Whether what each follower was told may stand, as who serves knows it.
    granted: Vec<bool>,
    has_taken_over: bool,
    /// Whether what the predecessor told is over.
    is_free: bool,
    followers: Vec<Follower>,
    has_stood_again: bool,
}

/// One thing that happens; the number is a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum StandingStep {
    Begin,
    Show,
    Enter,
    Acknowledge,
    Doubt,
    ReadHere,
    TakeOver,
    BecomeFree,
    Over(u8),
    Follow(u8),
    Read(u8),
    Ask(u8),
    Look(u8),
    Stand(u8),
    Age(u8),
    Lose(u8),
    Hear(u8),
    Serve(u8),
    End(u8),
}

impl StandingState {
    fn is_changing(&self) -> bool {
        self.change.is_some() || self.is_in_doubt
    }

    /// Whether what was told before may still be answered by.
    fn may_stand(&self) -> bool {
        !self.is_free || self.granted.contains(&true)
    }

    /// Whether a follower answers by what it was told, or will when it hears what is on its way.
    fn stands(&self, rules: StandingRules, f: u8) -> bool {
        let follower = &self.followers[usize::from(f)];
        // An answer that is as old as it may stand is over when it comes.
        let is_counted = |it: &Question| rules.counts_from_asking && !it.is_late;
        let comes = |it: &Question| it.stands == Some(true) && is_counted(it);
        follower.standing.is_some() || follower.question.as_ref().is_some_and(comes)
    }

    fn of(&mut self, f: u8) -> &mut Follower {
        &mut self.followers[usize::from(f)]
    }

    fn edit(&mut self, f: u8, change: impl FnOnce(&mut Question)) {
        if let Some(question) = &mut self.of(f).question {
            change(question);
        }
    }

    /// A reader of a follower sees its state.
    fn show(&mut self, f: u8) {
        let follower = &mut self.followers[usize::from(f)];
        if let Some(least) = follower.waits.take() {
            follower.was_stale |= follower.state < least;
            self.told = self.told.max(follower.state);
        }
    }

    fn hear(&mut self, rules: StandingRules, f: u8) {
        let follower = &mut self.followers[usize::from(f)];
        let Some(question) = follower.question.take() else {
            return;
        };
        let version = question.version.flatten();
        let is_over = question.is_late && rules.counts_from_asking;
        let is_older = question.is_older && rules.ignores_older;
        if question.stands == Some(true) && !is_over && !is_older {
            follower.standing = version;
        }
        let has_it = version.is_some_and(|version| follower.state >= version);
        if question.is_of_read && has_it && !is_older {
            self.show(f);
        } else if question.is_of_read {
            // It is forwarded, and is one that who serves answers.
            follower.waits = None;
        }
    }

    fn apply(&mut self, rules: StandingRules, step: StandingStep) {
        match step {
            StandingStep::Begin => {
                self.begun += 1;
                self.change = Some(Change::Begun);
            }
            StandingStep::Show => {
                self.visible += 1;
                self.change = Some(Change::Shown);
            }
            StandingStep::Enter => self.log = self.visible,
            StandingStep::Acknowledge => {
                self.told = self.visible;
                self.change = None;
            }
            StandingStep::Doubt => {
                self.change = None;
                self.is_in_doubt = true;
            }
            StandingStep::ReadHere => {
                self.told = self.visible;
                self.is_in_doubt = false;
            }
            StandingStep::TakeOver => {
                // What no entry has was told to none.
                self.visible = self.log;
                self.change = None;
                self.is_in_doubt = false;
                self.granted.fill(false);
                self.has_taken_over = true;
                self.is_free = !rules.waits_for_predecessor;
            }
            StandingStep::BecomeFree => self.is_free = true,
            StandingStep::Over(f) => self.granted[usize::from(f)] = false,
            StandingStep::Hear(f) => self.hear(rules, f),
            StandingStep::Stand(f) => {
                let question = self.followers[usize::from(f)].question.as_ref();
                let looked = question.and_then(|it| it.version.flatten());
                // Nor was it changed since it was looked at.
                let is_same = looked == Some(self.visible);
                let is_quiet = self.is_free && !self.is_changing() && is_same;
                let stands = is_quiet || !rules.ends_at_changes;
                self.granted[usize::from(f)] |= stands;
                self.edit(f, |question| question.stands = Some(stands));
            }
            StandingStep::Serve(f) => {
                self.show(f);
                self.has_stood_again |= self.has_taken_over && self.told > 0;
            }
            _ => self.follow(rules, step),
        }
    }

    /// What changes one follower alone.
    fn follow(&mut self, rules: StandingRules, step: StandingStep) {
        let (log, told) = (self.log, self.told);
        let is_told = !(rules.bridles && self.may_stand() && (self.is_changing() || !self.is_free));
        let looked = is_told.then_some(self.visible);
        match step {
            StandingStep::Follow(f) => {
                let follower = self.of(f);
                follower.state = log;
                if rules.ends_with_state {
                    follower.standing = None;
                }
                self.edit(f, |question| question.is_older = true);
            }
            StandingStep::Read(f) => {
                self.of(f).reads += 1;
                self.of(f).waits = Some(told);
                // What is under way was begun before.
                self.edit(f, |question| question.is_of_read = false);
            }
            StandingStep::Ask(f) => {
                let is_of_read = self.of(f).waits.is_some();
                self.of(f).question = Some(Question::default());
                self.edit(f, |question| question.is_of_read = is_of_read);
            }
            StandingStep::Look(f) => self.edit(f, |question| question.version = Some(looked)),
            StandingStep::Age(f) => self.edit(f, |question| question.is_late = true),
            StandingStep::Lose(f) => self.of(f).question = None,
            StandingStep::End(f) => self.of(f).standing = None,
            _ => {}
        }
    }
}

impl Standers {
    /// Searches all states.
    pub fn search(self) -> impl Checker<Self> {
        let checker = self.checker();
        let checker = checker.finish_when(HasDiscoveries::AnyFailures);
        checker.spawn_dfs().join()
    }

    fn steps_of_server(&self, state: &StandingState, steps: &mut Vec<StandingStep>) {
        let is_over = !(self.rules.waits && state.may_stand());
        let is_in_log = state.log == state.visible;
        match state.change {
            None if state.begun < self.changes => steps.push(StandingStep::Begin),
            None => {}
            Some(Change::Begun) => steps.push(StandingStep::Show),
            Some(Change::Shown) => {
                steps.push(StandingStep::Doubt);
                if is_in_log && is_over {
                    steps.push(StandingStep::Acknowledge);
                }
            }
        }
        if !is_in_log {
            steps.push(StandingStep::Enter);
        }
        let is_settled = !state.is_changing() || (is_in_log && is_over);
        if is_settled
            && (state.is_free || !self.rules.waits_for_predecessor)
            && (state.told < state.visible || state.is_in_doubt)
        {
            steps.push(StandingStep::ReadHere);
        }
        if !state.has_taken_over {
            steps.push(StandingStep::TakeOver);
        }
        let stands = |f| state.stands(self.rules, f);
        if !state.is_free && !(0..self.followers).any(stands) {
            steps.push(StandingStep::BecomeFree);
        }
    }

    fn steps_of(&self, state: &StandingState, f: u8, steps: &mut Vec<StandingStep>) {
        let follower = &state.followers[usize::from(f)];
        if state.granted[usize::from(f)] && !state.stands(self.rules, f) {
            steps.push(StandingStep::Over(f));
        }
        if follower.state < state.log {
            steps.push(StandingStep::Follow(f));
        }
        if follower.waits.is_none() && follower.reads < self.reads {
            steps.push(StandingStep::Read(f));
        }
        if let Some(question) = &follower.question {
            match (question.version, question.stands) {
                (None, _) => steps.push(StandingStep::Look(f)),
                (_, None) => steps.push(StandingStep::Stand(f)),
                _ => steps.push(StandingStep::Hear(f)),
            }
            if !question.is_late {
                steps.push(StandingStep::Age(f));
            }
            steps.push(StandingStep::Lose(f));
        } else {
            steps.push(StandingStep::Ask(f));
        }
        if let Some(standing) = follower.standing {
            steps.push(StandingStep::End(f));
            if follower.waits.is_some() && follower.state >= standing {
                steps.push(StandingStep::Serve(f));
            }
        }
    }
}

impl Model for Standers {
    type State = StandingState;
    type Action = StandingStep;

    fn init_states(&self) -> Vec<StandingState> {
        let followers = usize::from(self.followers);
        vec![StandingState {
            visible: 0,
            log: 0,
            told: 0,
            begun: 0,
            change: None,
            is_in_doubt: false,
            granted: vec![false; followers],
            has_taken_over: false,
            is_free: true,
            followers: vec![Follower::default(); followers],
            has_stood_again: false,
        }]
    }

    fn actions(&self, state: &StandingState, steps: &mut Vec<StandingStep>) {
        self.steps_of_server(state, steps);
        for f in 0..self.followers {
            self.steps_of(state, f, steps);
        }
    }

    fn next_state(&self, state: &StandingState, step: StandingStep) -> Option<StandingState> {
        let mut next = state.clone();
        next.apply(self.rules, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(STANDS_FRESH, |_, state: &StandingState| {
                !state.followers.iter().any(|follower| follower.was_stale)
            }),
            Property::sometimes(STANDS_AGAIN, |_, state: &StandingState| {
                state.has_stood_again
            }),
        ]
    }
}
