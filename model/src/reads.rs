//! How gateways that follow answer reads, and how that is taken back
//! (`docs/decisions/0064-reads-by-gateways-that-follow.md`).
//!
//! One gateway serves at a time: it is the log's, and so is who takes over, which the other model
//! shows. Versions count what was committed. The clocks of followers and of who serves are taken to
//! differ by less than the margin: who serves counts a permission as over only when the follower
//! does. Anyone may pause at any point, and any message may be late.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// No read lacks what anyone was told before it came.
pub const FRESH_READS: &str = "no read of a follower is stale";
/// What was taken away is answered by none once that was acknowledged, nor had by any who may.
pub const TAKEN: &str = "what was taken away is answered no more";
/// That followers answer at all, after an act and after a takeover.
pub const ANSWERED: &str = "a follower answers after an act and a takeover";

/// Which rules gateways keep.
#[derive(Clone, Copy, Debug)]
pub struct ReadRules {
    /// A read waits for a question that is begun after it came.
    pub asks_anew: bool,
    /// A follower that hears of a recall ends what it is answering.
    pub ends_answers: bool,
    /// It says that it has settled a recall only with a state that has what was done.
    pub settles_with_state: bool,
    /// An act is acknowledged when all have settled it who may answer.
    pub waits_for_followers: bool,
    /// Who takes over waits for what its predecessor permitted.
    pub waits_for_terms: bool,
    /// A permission counts from when it was asked for, not from when the answer came.
    pub counts_from_asking: bool,
}

impl ReadRules {
    /// As decided.
    pub const ALL: Self = Self {
        asks_anew: true,
        ends_answers: true,
        settles_with_state: true,
        waits_for_followers: true,
        waits_for_terms: true,
        counts_from_asking: true,
    };
}

/// How far the search goes, with one act that takes something away, and one takeover.
#[derive(Clone, Debug)]
pub struct Readers {
    /// Which rules they keep.
    pub rules: ReadRules,
    /// How many gateways follow.
    pub followers: u8,
    /// How many writes there are beside the act.
    pub writes: u8,
    /// How many reads each follower is asked for.
    pub reads: u8,
}

/// Of which time of serving, and how many acts were recalled in it.
type Recall = (u8, u8);

/// A question on its way, and then its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    settled: Option<Recall>,
    /// Whether the read that is under way came before it was begun.
    is_of_read: bool,
    /// Whether what it asks for is over by now.
    is_late: bool,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Answer {
    recall: Recall,
    version: u8,
    permits: bool,
}

/// A gateway that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Follower {
    /// The version of what it serves.
    state: u8,
    settled: Option<Recall>,
    may_answer: bool,
    question: Option<Question>,
    /// A read that waits: what anyone had been told when it came.
    waits: Option<u8>,
    /// What that is told.
    told: Option<u8>,
    /// The version by which something is being answered.
    answering: Option<u8>,
    reads: u8,
    was_stale: bool,
}

/// What there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadState {
    visible: u8,
    log: u8,
    told: u8,
    /// The version of the act, and whether it is acknowledged.
    act: Option<u8>,
    is_taken: bool,
    recall: Recall,
    /// Whether what the predecessor permitted is over.
    is_free: bool,
    /// Of each follower that may answer, as who serves knows it: what it has settled.
    known: Vec<Option<u8>>,
    followers: Vec<Follower>,
    has_answered: bool,
}

/// One thing that happens; the number is a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum ReadStep {
    Commit,
    Act,
    Enter,
    Acknowledge,
    Recall,
    AcknowledgeAct,
    TakeOver,
    BecomeFree,
    Forget(u8),
    Follow(u8),
    Read(u8),
    Ask(u8),
    Answer(u8),
    Age(u8),
    Lose(u8),
    Hear(u8),
    Serve(u8),
    EndAnswer(u8),
    EndPermission(u8),
}

impl ReadState {
    fn of(&mut self, f: u8) -> &mut Follower {
        &mut self.followers[usize::from(f)]
    }

    /// Whether a follower may answer, or will when it hears what is on its way.
    fn may(&self, rules: ReadRules, f: u8) -> bool {
        let follower = &self.followers[usize::from(f)];
        let permits = |question: &Question| question.answer.is_some_and(|it| it.permits);
        let is_counted = |question: &Question| rules.counts_from_asking && !question.is_late;
        let mut coming = follower.question.iter();
        follower.may_answer || coming.any(|it| permits(it) && is_counted(it))
    }

    fn answer(&mut self, f: u8) {
        let (recall, version) = (self.recall, self.visible);
        let Some(question) = &mut self.followers[usize::from(f)].question else {
            return;
        };
        let is_of_term = question.settled.filter(|settled| settled.0 == recall.0);
        let permits = question.settled == Some(recall);
        question.answer = Some(Answer {
            recall,
            version,
            permits,
        });
        let known = &mut self.known[usize::from(f)];
        match (permits, is_of_term, *known) {
            (true, Some((_, settled)), _) => *known = Some(settled),
            (false, Some((_, settled)), Some(before)) => *known = Some(settled.max(before)),
            _ => {}
        }
    }

    fn hear(&mut self, rules: ReadRules, f: u8) {
        let follower = self.of(f);
        let Some(question) = follower.question.take() else {
            return;
        };
        let Some(answer) = question.answer else {
            return;
        };
        if question.is_of_read || !rules.asks_anew {
            follower.told = follower.waits.map(|_| answer.version);
        }
        if follower.settled == Some(answer.recall) {
            let is_over = question.is_late && rules.counts_from_asking;
            follower.may_answer |= answer.permits && !is_over;
            return;
        }
        if rules.ends_answers {
            follower.answering = None;
        }
        follower.may_answer = false;
        let has_state = follower.state >= answer.version || !rules.settles_with_state;
        follower.settled = has_state.then_some(answer.recall);
    }

    /// Answers the read that waits, if the state is as far as was told; else it is forwarded.
    fn serve(&mut self, f: u8) {
        let has_taken_over = self.recall.0 > 0;
        let is_taken = self.is_taken;
        let follower = self.of(f);
        let (Some(least), Some(told)) = (follower.waits.take(), follower.told.take()) else {
            return;
        };
        if follower.may_answer && follower.settled.is_some() && follower.state >= told {
            follower.answering = Some(follower.state);
            follower.was_stale |= follower.state < least;
            self.has_answered |= has_taken_over && is_taken;
        }
    }

    fn apply(&mut self, rules: ReadRules, step: ReadStep) {
        match step {
            ReadStep::Commit => self.visible += 1,
            ReadStep::Act => {
                self.visible += 1;
                self.act = Some(self.visible);
            }
            ReadStep::Enter => self.log = self.visible,
            ReadStep::Acknowledge => self.told = self.log,
            ReadStep::Recall => self.recall.1 += 1,
            ReadStep::AcknowledgeAct => self.is_taken = true,
            ReadStep::TakeOver => {
                // What no entry has was told to none.
                self.visible = self.log;
                self.act = self.act.filter(|act| *act <= self.log);
                self.recall = (self.recall.0 + 1, 0);
                self.known.fill(None);
                self.is_free = !rules.waits_for_terms;
            }
            ReadStep::BecomeFree => self.is_free = true,
            ReadStep::Forget(f) => self.known[usize::from(f)] = None,
            ReadStep::Follow(f) => self.of(f).state = self.log,
            ReadStep::Read(f) => {
                let told = self.told;
                let follower = self.of(f);
                follower.reads += 1;
                (follower.waits, follower.told) = (Some(told), None);
                if let Some(question) = &mut follower.question {
                    // What is under way was begun before.
                    question.is_of_read = !rules.asks_anew;
                }
            }
            ReadStep::Ask(f) => {
                let follower = self.of(f);
                follower.question = Some(Question {
                    settled: follower.settled,
                    is_of_read: follower.waits.is_some(),
                    is_late: false,
                    answer: None,
                });
            }
            ReadStep::Answer(f) => self.answer(f),
            ReadStep::Age(f) => {
                if let Some(question) = &mut self.of(f).question {
                    question.is_late = true;
                }
            }
            ReadStep::Lose(f) => self.of(f).question = None,
            ReadStep::Hear(f) => self.hear(rules, f),
            ReadStep::Serve(f) => self.serve(f),
            ReadStep::EndAnswer(f) => self.of(f).answering = None,
            ReadStep::EndPermission(f) => {
                let follower = self.of(f);
                (follower.may_answer, follower.answering) = (false, None);
            }
        }
    }
}

impl Readers {
    /// Searches all states.
    pub fn search(self) -> impl Checker<Self> {
        let checker = self.checker();
        let checker = checker.finish_when(HasDiscoveries::AnyFailures);
        checker.spawn_dfs().join()
    }

    fn steps_of_server(&self, state: &ReadState, steps: &mut Vec<ReadStep>) {
        let acts = u8::from(state.act.is_some());
        if state.visible - acts.min(state.visible) < self.writes {
            steps.push(ReadStep::Commit);
        }
        if state.act.is_none() {
            steps.push(ReadStep::Act);
        }
        if state.log < state.visible {
            steps.push(ReadStep::Enter);
        }
        if state.told < state.log {
            steps.push(ReadStep::Acknowledge);
        }
        // Once the log has it; who takes over finishes what it finds.
        let is_in_log = state.act.is_some_and(|act| act <= state.told);
        if is_in_log && !state.is_taken && state.recall.1 == 0 {
            steps.push(ReadStep::Recall);
        }
        let has_settled = |known: &Option<u8>| known.is_none_or(|settled| settled >= 1);
        let is_settled = !self.rules.waits_for_followers || state.known.iter().all(has_settled);
        if state.recall.1 > 0 && !state.is_taken && state.is_free && is_settled {
            steps.push(ReadStep::AcknowledgeAct);
        }
        if state.recall.0 == 0 {
            steps.push(ReadStep::TakeOver);
        }
        if !state.is_free && (0..self.followers).all(|f| !state.may(self.rules, f)) {
            steps.push(ReadStep::BecomeFree);
        }
    }

    fn steps_of(&self, state: &ReadState, f: u8, steps: &mut Vec<ReadStep>) {
        let follower = &state.followers[usize::from(f)];
        if state.known[usize::from(f)].is_some() && !state.may(self.rules, f) {
            steps.push(ReadStep::Forget(f));
        }
        if follower.state < state.log {
            steps.push(ReadStep::Follow(f));
        }
        if follower.waits.is_none() && follower.reads < self.reads {
            steps.push(ReadStep::Read(f));
        }
        match &follower.question {
            None => steps.push(ReadStep::Ask(f)),
            Some(question) => {
                if question.answer.is_none() {
                    steps.push(ReadStep::Answer(f));
                } else {
                    steps.push(ReadStep::Hear(f));
                }
                if !question.is_late {
                    steps.push(ReadStep::Age(f));
                }
                steps.push(ReadStep::Lose(f));
            }
        }
        if follower.told.is_some() {
            steps.push(ReadStep::Serve(f));
        }
        if follower.answering.is_some() {
            steps.push(ReadStep::EndAnswer(f));
        }
        if follower.may_answer {
            steps.push(ReadStep::EndPermission(f));
        }
    }
}

impl Model for Readers {
    type State = ReadState;
    type Action = ReadStep;

    fn init_states(&self) -> Vec<ReadState> {
        vec![ReadState {
            visible: 0,
            log: 0,
            told: 0,
            act: None,
            is_taken: false,
            recall: (0, 0),
            is_free: true,
            known: vec![None; usize::from(self.followers)],
            followers: vec![Follower::default(); usize::from(self.followers)],
            has_answered: false,
        }]
    }

    fn actions(&self, state: &ReadState, steps: &mut Vec<ReadStep>) {
        self.steps_of_server(state, steps);
        for f in 0..self.followers {
            self.steps_of(state, f, steps);
        }
    }

    fn next_state(&self, state: &ReadState, step: ReadStep) -> Option<ReadState> {
        let mut next = state.clone();
        next.apply(self.rules, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FRESH_READS, |_, state: &ReadState| {
                !state.followers.iter().any(|follower| follower.was_stale)
            }),
            Property::always(TAKEN, |_, state: &ReadState| {
                let act = state.act.filter(|_| state.is_taken).unwrap_or(0);
                let has_it = |follower: &Follower| {
                    let may_answer = follower.may_answer && follower.state < act;
                    may_answer || follower.answering.is_some_and(|it| it < act)
                };
                !state.followers.iter().any(has_it)
            }),
            Property::sometimes(ANSWERED, |_, state: &ReadState| state.has_answered),
        ]
    }
}
