//! What happens, and what each step makes of a state.

use crate::state::{Packet, Rules, Segment, Session, State};

/// One thing that happens; the first number is a gateway, the second a bucket. What arrives or is
/// lost names the bucket, and which of its packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Step {
    TakeBucket(u8, u8),
    TakeBucketUnheard(u8, u8),
    EndLease(u8),
    NewLease(u8),
    Send(u8, u8),
    Arrive(u8, usize),
    ArriveUnheard(u8, usize),
    Lose(u8, usize),
    Hear(u8, u8),
    TimeOut(u8, u8),
    Look(u8, u8),
    Collect(u8, u8),
    Crash(u8),
}

impl State {
    pub(crate) fn apply(&mut self, rules: Rules, step: &Step) {
        match *step {
            Step::TakeBucket(g, b) => {
                self.take_bucket(g, b);
                let bucket = &self.buckets[usize::from(b)];
                let next = bucket.base + bucket.readable().len() as u8 - bucket.folded.len() as u8;
                let is_new = rules.announces_epochs;
                let epoch = bucket.epoch;
                *self.session(g, b) = Session::Owner {
                    epoch,
                    next,
                    is_new,
                };
            }
            Step::TakeBucketUnheard(g, b) => {
                self.faults += 1;
                self.take_bucket(g, b);
            }
            Step::EndLease(g) => self.gateways[usize::from(g)].is_lease_over = true,
            Step::NewLease(g) => self.new_lease(rules, g),
            Step::Send(g, b) => self.send(g, b),
            Step::Arrive(b, at) => {
                let (packet, is_created) = self.arrive(b, at);
                let session = self.session(packet.from, b);
                if let Session::Waiting {
                    packet: awaited,
                    answer,
                    ..
                } = session
                    && *awaited == packet
                {
                    *answer = Some(is_created);
                }
            }
            Step::ArriveUnheard(b, at) => {
                self.faults += 1;
                self.arrive(b, at);
            }
            Step::Lose(b, at) => {
                self.faults += 1;
                self.buckets[usize::from(b)].packets.remove(at);
            }
            Step::Hear(g, b) => self.hear(rules, g, b),
            Step::TimeOut(g, b) => self.time_out(rules, g, b),
            Step::Look(g, b) => self.look(g, b),
            Step::Collect(g, b) => self.collect(rules, g, b),
            Step::Crash(g) => {
                self.faults += 1;
                let gateway = &mut self.gateways[usize::from(g)];
                gateway.sessions.fill(Session::None);
                // Nothing is answered under it any more, so it may as well have ended.
                gateway.is_lease_over = true;
            }
        }
    }

    pub(crate) fn session(&mut self, g: u8, b: u8) -> &mut Session {
        &mut self.gateways[usize::from(g)].sessions[usize::from(b)]
    }

    /// By compare-and-swap of what says who owns it: the epoch rises.
    fn take_bucket(&mut self, g: u8, b: u8) {
        let lease = self.gateways[usize::from(g)].lease;
        let bucket = &mut self.buckets[usize::from(b)];
        bucket.owner = Some((g, lease));
        bucket.epoch += 1;
    }

    /// By compare-and-swap of its own lease, which others have ended or time has.
    fn new_lease(&mut self, rules: Rules, g: u8) {
        let gateway = &mut self.gateways[usize::from(g)];
        gateway.lease += 1;
        gateway.is_lease_over = false;
        if rules.drops_buckets {
            gateway.sessions.fill(Session::None);
        }
    }

    fn send(&mut self, g: u8, b: u8) {
        let Session::Owner {
            epoch,
            next,
            is_new,
        } = *self.session(g, b)
        else {
            return;
        };
        let bucket = &mut self.buckets[usize::from(b)];
        let write = if is_new {
            0
        } else {
            bucket.writes += 1;
            bucket.writes
        };
        let segment = Segment { epoch, write };
        let packet = Packet {
            from: g,
            number: next,
            segment,
        };
        bucket.packets.push(packet);
        bucket.packets.sort_unstable();
        *self.session(g, b) = Session::Waiting {
            packet,
            is_new,
            answer: None,
        };
    }

    /// Created if nothing lies under the number, be it that what lay there was collected.
    fn arrive(&mut self, b: u8, at: usize) -> (Packet, bool) {
        let bucket = &mut self.buckets[usize::from(b)];
        let packet = bucket.packets.remove(at);
        let is_created = bucket.at(packet.number).is_none();
        if is_created {
            bucket.put(packet.number, packet.segment);
        }
        (packet, is_created)
    }

    fn hear(&mut self, rules: Rules, g: u8, b: u8) {
        let Session::Waiting {
            packet,
            is_new,
            answer: Some(is_created),
        } = *self.session(g, b)
        else {
            return;
        };
        if is_created {
            self.created(rules, g, b, packet, is_new);
        } else {
            self.exists(rules, g, b, packet, is_new);
        }
    }

    /// Something lies there, or lay there: the segment is read.
    fn exists(&mut self, rules: Rules, g: u8, b: u8, packet: Packet, is_new: bool) {
        let found = self.buckets[usize::from(b)].at(packet.number);
        let is_own = !rules.compares_what_exists || found == Some(packet.segment);
        match found {
            _ if is_own => self.created(rules, g, b, packet, is_new),
            // An owner of before came first: its segment counts, and the next number is tried.
            Some(segment) if is_new && segment.epoch < packet.segment.epoch => {
                let next = packet.number + 1;
                let epoch = packet.segment.epoch;
                *self.session(g, b) = Session::Owner {
                    epoch,
                    next,
                    is_new,
                };
            }
            // Fenced. The client is told that its write is in doubt.
            _ => *self.session(g, b) = Session::None,
        }
    }

    fn created(&mut self, rules: Rules, g: u8, b: u8, packet: Packet, is_new: bool) {
        if rules.looks_after_writes {
            *self.session(g, b) = Session::Looking { packet, is_new };
        } else {
            self.acknowledge(g, b, packet);
        }
    }

    fn acknowledge(&mut self, g: u8, b: u8, packet: Packet) {
        let Packet {
            number, segment, ..
        } = packet;
        if segment.write > 0 {
            let bucket = &mut self.buckets[usize::from(b)];
            bucket.acknowledged.push((number, segment));
            bucket.acknowledged.sort_unstable();
        }
        *self.session(g, b) = Session::Owner {
            epoch: segment.epoch,
            next: number + 1,
            is_new: false,
        };
    }

    /// No answer came: the segment is read. Where there is none, the same is sent again.
    fn time_out(&mut self, rules: Rules, g: u8, b: u8) {
        let Session::Waiting { packet, is_new, .. } = *self.session(g, b) else {
            return;
        };
        let bucket = &mut self.buckets[usize::from(b)];
        if bucket.at(packet.number).is_some() {
            self.exists(rules, g, b, packet, is_new);
        } else {
            bucket.packets.push(packet);
            bucket.packets.sort_unstable();
        }
    }

    fn look(&mut self, g: u8, b: u8) {
        let Session::Looking { packet, .. } = *self.session(g, b) else {
            return;
        };
        if self.buckets[usize::from(b)].epoch == packet.segment.epoch {
            self.acknowledge(g, b, packet);
        } else {
            *self.session(g, b) = Session::None;
        }
    }

    /// What an owner knows of the log goes into a snapshot, and what says who owns the bucket says
    /// as well from where on the log is to be read.
    fn collect(&mut self, rules: Rules, g: u8, b: u8) {
        let known = match *self.session(g, b) {
            Session::Owner { next, .. } if rules.collects_as_owner => Some(next),
            _ => None,
        };
        let bucket = &mut self.buckets[usize::from(b)];
        let readable = bucket.readable();
        let next = known.unwrap_or(readable.len() as u8);
        bucket.folded = readable.into_iter().take(usize::from(next)).collect();
        bucket.base = next;
        if rules.keeps_numbers {
            return;
        }
        let collected = bucket.log.iter_mut().take(usize::from(next));
        collected.for_each(|segment| *segment = None);
    }

    /// Whether an owner that may answer reads knows less than was acknowledged. It answers from
    /// what it knows: all segments below `next`.
    pub(crate) fn is_stale(&self, rules: Rules) -> bool {
        self.gateways.iter().any(|gateway| {
            // Its clock tells of its lease; of buckets that others took it knows nothing.
            let may_answer = !gateway.is_lease_over || !rules.reads_under_lease;
            let mut sessions = gateway.sessions.iter().zip(&self.buckets);
            may_answer
                && sessions.any(|(session, bucket)| {
                    let Session::Owner { next, is_new, .. } = *session else {
                        return false;
                    };
                    let lacks = |(number, _): &(u8, Segment)| *number >= next;
                    !is_new && bucket.acknowledged.iter().any(lacks)
                })
        })
    }
}
