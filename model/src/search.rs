//! What may happen in each state, within bounds, and what is asked of all of them.

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::protocol::Step;
use crate::state::{Bucket, Gateway, Rules, Session, State};

/// What was acknowledged is where it was acknowledged.
pub const DURABLE: &str = "what was acknowledged is in the log";
/// No read lacks what was acknowledged before.
pub const FRESH: &str = "no read is stale";
/// That the search gets anywhere: each bucket acknowledges all its writes.
pub const PROGRESS: &str = "all writes are acknowledged";
/// That the search gets to takeovers: writes of two epochs are acknowledged in one bucket.
pub const TAKEN_OVER: &str = "two owners acknowledge writes";

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many gateways there are.
    pub gateways: u8,
    /// How many buckets.
    pub buckets: u8,
    /// How often a bucket is taken that was owned before, of all buckets together.
    pub takeovers: u8,
    /// How often a gateway whose lease has ended takes a new one, of all together.
    pub returns: u8,
    /// How many writes clients ask for in each.
    pub writes: u8,
    /// How many requests of each are under way at once.
    pub packets: usize,
    /// How many crashes, losses of requests and of answers there are in all.
    pub faults: u8,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// How far the search goes.
    pub bounds: Bounds,
    /// Which rules gateways keep.
    pub rules: Rules,
}

impl Cluster {
    /// Searches all states. Those that differ only in which gateway is which are one.
    pub fn search(self) -> impl Checker<Self> {
        let checker = self.checker().symmetry_fn(State::in_order);
        let checker = checker.finish_when(HasDiscoveries::AnyFailures);
        checker.spawn_dfs().join()
    }

    fn steps_of_store(&self, state: &State, steps: &mut Vec<Step>) {
        let may_fail = state.faults < self.bounds.faults;
        for (b, bucket) in (0..).zip(&state.buckets) {
            let may_collect = !self.rules.collects_as_owner && bucket.base == 0;
            if may_collect && !bucket.readable().is_empty() {
                steps.push(Step::Collect(0, b));
            }
            for at in 0..bucket.packets.len() {
                if at > 0 && bucket.packets[at] == bucket.packets[at - 1] {
                    continue;
                }
                steps.push(Step::Arrive(b, at));
                if may_fail {
                    steps.extend([Step::ArriveUnheard(b, at), Step::Lose(b, at)]);
                }
            }
        }
    }

    fn steps_of(&self, state: &State, g: u8, gateway: &Gateway, steps: &mut Vec<Step>) {
        let may_fail = state.faults < self.bounds.faults;
        let takeovers = state.buckets.iter().map(|it| it.epoch.saturating_sub(1));
        let may_take_over = takeovers.sum::<u8>() < self.bounds.takeovers;
        let may_take = |bucket: &Bucket| {
            let is_over = state.is_owner_over(bucket) || !self.rules.waits_for_leases;
            bucket.owner.is_none() || is_over && may_take_over
        };
        let sessions = gateway.sessions.iter().zip(&state.buckets);
        for (b, (session, bucket)) in (0..).zip(sessions) {
            match *session {
                Session::None => {
                    if may_take(bucket) {
                        steps.push(Step::TakeBucket(g, b));
                        if may_fail {
                            steps.push(Step::TakeBucketUnheard(g, b));
                        }
                    }
                }
                Session::Owner { is_new, .. } => {
                    let has_room = bucket.packets.len() < self.bounds.packets;
                    if has_room && (is_new || bucket.writes < self.bounds.writes) {
                        steps.push(Step::Send(g, b));
                    }
                    if Self::may_collect(session, bucket) {
                        steps.push(Step::Collect(g, b));
                    }
                }
                Session::Waiting { packet, answer, .. } => {
                    if answer.is_some() {
                        steps.push(Step::Hear(g, b));
                    }
                    let has_room = bucket.packets.len() < self.bounds.packets;
                    if has_room || bucket.at(packet.number).is_some() {
                        steps.push(Step::TimeOut(g, b));
                    }
                }
                Session::Looking { .. } => steps.push(Step::Look(g, b)),
            }
        }
    }

    /// Once is enough for numbers to be free again.
    fn may_collect(session: &Session, bucket: &Bucket) -> bool {
        let Session::Owner {
            epoch,
            next,
            is_new,
        } = *session
        else {
            return false;
        };
        bucket.epoch == epoch && !is_new && bucket.base == 0 && next > 0
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let gateway = Gateway {
            lease: 1,
            is_lease_over: false,
            sessions: vec![Session::None; usize::from(self.bounds.buckets)],
        };
        vec![State {
            buckets: vec![Bucket::default(); usize::from(self.bounds.buckets)],
            gateways: vec![gateway; usize::from(self.bounds.gateways)],
            faults: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.steps_of_store(state, steps);
        for (g, gateway) in (0..).zip(&state.gateways) {
            self.steps_of(state, g, gateway, steps);
            let is_idle = gateway.sessions.iter().all(|it| *it == Session::None);
            // That of one that does nothing tells nothing.
            if !gateway.is_lease_over && !is_idle {
                steps.push(Step::EndLease(g));
            }
            let returns = state.gateways.iter().map(|it| it.lease - 1).sum::<u8>();
            if gateway.is_lease_over && returns < self.bounds.returns {
                steps.push(Step::NewLease(g));
            }
            if state.faults < self.bounds.faults && !is_idle {
                steps.push(Step::Crash(g));
            }
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        next.apply(self.rules, &step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(DURABLE, |_, state: &State| {
                state.buckets.iter().all(|bucket| {
                    let readable = bucket.readable();
                    let is_there = |&(number, segment): &(u8, _)| {
                        readable.get(usize::from(number)) == Some(&segment)
                    };
                    bucket.acknowledged.iter().all(is_there)
                })
            }),
            Property::always(FRESH, |model: &Self, state: &State| {
                !state.is_stale(model.rules)
            }),
            Property::sometimes(PROGRESS, |model: &Self, state: &State| {
                let all = usize::from(model.bounds.writes);
                state
                    .buckets
                    .iter()
                    .all(|bucket| bucket.acknowledged.len() == all)
            }),
            Property::sometimes(TAKEN_OVER, |_, state: &State| {
                state.buckets.iter().any(|bucket| {
                    let mut epochs = bucket.acknowledged.iter().map(|(_, segment)| segment.epoch);
                    let first = epochs.next();
                    epochs.any(|epoch| Some(epoch) != first)
                })
            }),
        ]
    }
}
