//! What the store holds, what gateways know, and which rules they keep.

/// Which rules gateways keep. All of them, but in tests that show that the search finds what goes
/// wrong without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// After a creation that succeeded, the owner looks whether the bucket is still of its epoch.
    pub looks_after_writes: bool,
    /// Reads are answered only while the gateway's clock says that its lease has not ended.
    pub reads_under_lease: bool,
    /// A gateway whose lease has ended drops all its buckets before it takes a new one.
    pub drops_buckets: bool,
    /// A bucket is taken over only when the lease has ended under which it was owned.
    pub waits_for_leases: bool,
    /// What is found under a number is compared with what was to be created there.
    pub compares_what_exists: bool,
    /// A new owner puts a segment of its own epoch into the log before it serves.
    pub announces_epochs: bool,
    /// Segments are collected by the owner only, by a change of what says who owns the bucket.
    pub collects_as_owner: bool,
    /// What is collected is read no more, and its number stays taken for as long as anyone may try
    /// to write there.
    pub keeps_numbers: bool,
}

impl Rules {
    /// As decided.
    pub const ALL: Self = Self {
        looks_after_writes: true,
        reads_under_lease: true,
        drops_buckets: true,
        waits_for_leases: true,
        compares_what_exists: true,
        announces_epochs: true,
        collects_as_owner: true,
        keeps_numbers: false,
    };

    /// As decided of records: a creation that succeeded is all that a commit needs.
    pub const RECORDS: Self = Self {
        looks_after_writes: false,
        keeps_numbers: true,
        ..Self::ALL
    };
}

/// What lies under a number of the log: whose epoch, and which write; 0 announces the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub(crate) epoch: u8,
    pub(crate) write: u8,
}

/// A request on its way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Packet {
    pub(crate) from: u8,
    pub(crate) number: u8,
    pub(crate) segment: Segment,
}

/// One bucket in the store, and what clients were told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    /// The gateway that owns it, and under which of its leases it took it.
    pub(crate) owner: Option<(u8, u8)>,
    /// How often it was taken.
    pub(crate) epoch: u8,
    /// What is in the store now; collected segments are not.
    pub(crate) log: Vec<Option<Segment>>,
    /// From here on the log is read; a snapshot has what came before.
    pub(crate) base: u8,
    /// What the snapshot was made of.
    pub(crate) folded: Vec<Segment>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) writes: u8,
    /// Acknowledged, with the numbers: `(number, segment)`.
    pub(crate) acknowledged: Vec<(u8, Segment)>,
}

impl Bucket {
    /// What is found by reading the log, in order: the snapshot, and what follows without a gap.
    pub(crate) fn readable(&self) -> Vec<Segment> {
        let rest = self.log.iter().skip(usize::from(self.base));
        let rest = rest.map_while(|segment| *segment);
        self.folded.iter().copied().chain(rest).collect()
    }

    pub(crate) fn at(&self, number: u8) -> Option<Segment> {
        self.log.get(usize::from(number)).copied().flatten()
    }

    pub(crate) fn put(&mut self, number: u8, segment: Segment) {
        let index = usize::from(number);
        if self.log.len() <= index {
            self.log.resize(index + 1, None);
        }
        self.log[index] = Some(segment);
    }
}

/// What a gateway does with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Session {
    #[default]
    None,
    /// It owns it, and knows the log up to `next`. `is_new`: its epoch is not announced yet.
    Owner { epoch: u8, next: u8, is_new: bool },
    /// It waits for the store. `answer`: whether it was created.
    Waiting {
        packet: Packet,
        is_new: bool,
        answer: Option<bool>,
    },
    /// It is created, and is about to look whether it owns the bucket still.
    Looking { packet: Packet, is_new: bool },
}

impl Packet {
    fn nameless(&self) -> Self {
        Self { from: 0, ..*self }
    }
}

impl Session {
    fn nameless(self) -> Self {
        self.renamed(|_| 0)
    }

    fn renamed(self, name: impl Fn(u8) -> u8) -> Self {
        let rename = |packet: Packet| Packet {
            from: name(packet.from),
            ..packet
        };
        match self {
            Self::Waiting {
                packet,
                is_new,
                answer,
            } => Self::Waiting {
                packet: rename(packet),
                is_new,
                answer,
            },
            Self::Looking { packet, is_new } => Self::Looking {
                packet: rename(packet),
                is_new,
            },
            other => other,
        }
    }
}

/// A gateway, and its sessions by bucket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gateway {
    /// The number of its lease: one more each time that it takes a new one.
    pub(crate) lease: u8,
    pub(crate) is_lease_over: bool,
    pub(crate) sessions: Vec<Session>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) buckets: Vec<Bucket>,
    pub(crate) gateways: Vec<Gateway>,
    /// How many crashes, losses and answers that did not arrive there were.
    pub(crate) faults: u8,
}

impl State {
    /// Whether the lease has ended under which a bucket is owned.
    pub(crate) fn is_owner_over(&self, bucket: &Bucket) -> bool {
        bucket.owner.is_some_and(|(g, lease)| {
            let gateway = &self.gateways[usize::from(g)];
            gateway.is_lease_over || gateway.lease != lease
        })
    }

    /// The same with gateways in an order of their own: which of them is which makes no difference.
    pub fn in_order(&self) -> Self {
        let nameless = |g: u8| {
            let gateway = &self.gateways[usize::from(g)];
            let sessions = gateway.sessions.iter().copied();
            let owned = self.buckets.iter().map(move |bucket| {
                let own = bucket.owner.filter(|(owner, _)| *owner == g);
                own.map(|(_, lease)| lease)
            });
            let sent = self.buckets.iter().map(move |bucket| {
                let own = bucket.packets.iter().filter(move |packet| packet.from == g);
                own.map(Packet::nameless).collect::<Vec<_>>()
            });
            let sessions: Vec<_> = sessions.map(Session::nameless).collect();
            (
                (gateway.lease, gateway.is_lease_over),
                sessions,
                owned.collect::<Vec<_>>(),
                sent.collect::<Vec<_>>(),
            )
        };
        let mut order: Vec<u8> = (0..self.gateways.len() as u8).collect();
        order.sort_by_cached_key(|g| nameless(*g));
        let mut named = vec![0; order.len()];
        for (new, old) in (0..).zip(&order) {
            named[usize::from(*old)] = new;
        }
        let name = |g: u8| named[usize::from(g)];
        let mut state = self.clone();
        for (gateway, old) in state.gateways.iter_mut().zip(&order) {
            let before = &self.gateways[usize::from(*old)];
            *gateway = Gateway {
                sessions: before.sessions.iter().map(|it| it.renamed(name)).collect(),
                ..*before
            };
        }
        for bucket in &mut state.buckets {
            bucket.owner = bucket.owner.map(|(g, lease)| (name(g), lease));
            bucket
                .packets
                .iter_mut()
                .for_each(|packet| packet.from = name(packet.from));
            bucket.packets.sort_unstable();
        }
        state
    }
}
