//! How contenders stand to each other by one resource: the rule that all of an advice comes from.

use coffer_measure::comparison::{self, COUNTED_WITHIN, Comparison, EQUIVALENT_WITHIN, Finding};
use coffer_measure::statistics::Estimate;

use crate::contender::{Contender, Placement};
use crate::record::Unit;
use crate::report::advice::jobs::Costs;

/// What a contender takes of a resource.
pub(super) struct Taken {
    pub(super) placement: Placement,
    pub(super) contender: String,
    pub(super) costs: Costs,
    /// The figure of its rounds.
    pub(super) cost: Estimate,
}

impl Taken {
    /// None without rounds.
    pub(super) fn of(contender: &Contender, costs: Costs) -> Option<Self> {
        Some(Self {
            placement: contender.placement,
            contender: contender.name.clone(),
            cost: Estimate::of(&costs.rounds)?,
            costs,
        })
    }
}

/// How one stands to the first, which takes the least: the most that can be told comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is told to take more, by enough to choose by: it is out of the question.
    Dearer,
    /// It is told to take more, but by too little to choose by.
    TooLittle,
    /// It takes the same.
    Same,
    /// It is told to take more than the first, but not more than no encryption. Encryption saves
    /// no work, so drift or noise made as much of a difference as this is.
    AsPlain,
    /// The samples don't tell.
    CannotTell,
}

/// By what contenders are compared: the ratio of each round.
pub(super) struct Scale {
    unit: Unit,
    /// What the best without encryption takes, where that is time. Counts neither drift nor
    /// scatter.
    plain: Option<Costs>,
}

/// How often contenders are gone through to find the first: one that was passed over may take less
/// than one that was found later.
const PASSES: usize = 2;

impl Scale {
    /// Where costs are relative they are how many times the same without encryption.
    pub(super) fn new(unit: Unit, all: &[Taken], is_relative: bool) -> Self {
        let mut scale = Self { unit, plain: None };
        if unit.counts_instructions() {
            return scale;
        }
        scale.plain = if is_relative {
            let rounds = all.iter().map(|one| one.costs.rounds.len()).max();
            rounds.map(|rounds| Costs::of(vec![1.0; rounds]))
        } else {
            let plain = all.iter().filter(|one| one.placement == Placement::None);
            scale.first(plain).map(|one| one.costs.clone())
        };
        scale
    }

    /// How many times the one takes what the other takes. Of the most that one may have taken, no
    /// more is told than what holds for less, too.
    pub(super) fn times(&self, one: &Costs, other: &Costs) -> Option<Comparison> {
        let compare = self.unit.comparing(comparison::paired);
        let mut found = compare(&one.rounds, &other.rounds)?;
        let is_told = match (one.at_most, other.at_most) {
            (false, false) => true,
            (false, true) => found.finding == Finding::More,
            (true, false) => found.finding == Finding::Less,
            (true, true) => false,
        };
        if !is_told {
            found.finding = Finding::CannotTell;
        }
        Some(found)
    }

    fn finding(&self, one: &Costs, other: &Costs) -> Option<Finding> {
        self.times(one, other).map(|found| found.finding)
    }

    /// How one stands to another that takes less, or may.
    pub(super) fn standing(&self, one: &Taken, first: &Taken) -> Standing {
        let Some(found) = self.times(&one.costs, &first.costs) else {
            return Standing::CannotTell;
        };
        let margin = if self.unit.counts_instructions() {
            COUNTED_WITHIN
        } else {
            EQUIVALENT_WITHIN
        };
        let is_little = found.ratio.median <= 1.0 + margin;
        match found.finding {
            Finding::Same => Standing::Same,
            Finding::Less | Finding::CannotTell => Standing::CannotTell,
            // The first may have taken less than that, so this may be any number of times as much.
            Finding::More if is_little && first.costs.at_most => Standing::CannotTell,
            Finding::More if is_little => Standing::TooLittle,
            Finding::More if !self.is_more_than_plain(one) => Standing::AsPlain,
            Finding::More => Standing::Dearer,
        }
    }

    /// What takes more than one without encryption takes more than no encryption, whatever the
    /// others of that take: so the best is enough. No encryption is not held against itself.
    fn is_more_than_plain(&self, one: &Taken) -> bool {
        let is_more = |plain| self.finding(&one.costs, plain) == Some(Finding::More);
        one.placement == Placement::None || self.plain.as_ref().is_none_or(is_more)
    }

    /// The one that none of the others is told to take less than: by the ratio of their rounds,
    /// since the machine may have drifted between those that the medians are of. Where there is no
    /// such one it is one that others can't be told from.
    pub(super) fn first<'a>(&self, all: impl Iterator<Item = &'a Taken>) -> Option<&'a Taken> {
        let mut all: Vec<&Taken> = all.collect();
        all.sort_by(|a, b| a.cost.median.total_cmp(&b.cost.median));
        let mut first = *all.first()?;
        for _ in 0..PASSES {
            let before = &first.contender;
            for one in all.iter().copied().filter(|one| one.contender != *before) {
                if self.finding(&one.costs, &first.costs) == Some(Finding::Less) {
                    first = one;
                }
            }
            if first.contender == *before {
                break;
            }
        }
        Some(first)
    }

    /// Contenders of one placement: the first, and those that it is not told to take less than by
    /// enough to choose by. None without contenders.
    pub(super) fn group<'a>(&self, all: &[&'a Taken]) -> Option<Group<'a>> {
        let first = self.first(all.iter().copied())?;
        let mut group = Group {
            first,
            peers: Vec::new(),
            near: Vec::new(),
        };
        let others = all.iter().copied();
        for one in others.filter(|one| one.contender != first.contender) {
            match self.standing(one, first) {
                Standing::Dearer => {}
                Standing::TooLittle => group.near.push(one),
                _ => group.peers.push(one),
            }
        }
        Some(group)
    }

    /// How a placement stands to the first: as that one of it of which the least is told, since any
    /// that may take the least keeps it in question.
    pub(super) fn of_group(&self, group: &Group<'_>, first: &Taken) -> Standing {
        let all = group.leading().map(|one| self.standing(one, first));
        all.max().unwrap_or(Standing::Dearer)
    }

    /// Whether two placements take the same, whichever takes the least.
    pub(super) fn are_same(&self, one: &Group<'_>, other: &Group<'_>) -> bool {
        let pairs = one
            .leading()
            .flat_map(|ours| other.leading().map(move |theirs| (ours, theirs)));
        let mut found = pairs.map(|(ours, theirs)| self.finding(&ours.costs, &theirs.costs));
        found.all(|found| found == Some(Finding::Same))
    }
}

/// The contenders that a placement is judged by.
pub(super) struct Group<'a> {
    /// The one that takes the least.
    pub(super) first: &'a Taken,
    /// Those that may take as little.
    peers: Vec<&'a Taken>,
    /// Those that take more, but too little of it to choose by.
    near: Vec<&'a Taken>,
}

impl<'a> Group<'a> {
    /// Those that may take the least.
    fn leading(&self) -> impl Iterator<Item = &'a Taken> {
        [self.first].into_iter().chain(self.peers.iter().copied())
    }

    /// The names of the others.
    pub(super) fn alike(&self) -> Vec<String> {
        let mut all: Vec<&Taken> = self.peers.iter().chain(&self.near).copied().collect();
        all.sort_by(|a, b| a.cost.median.total_cmp(&b.cost.median));
        all.iter().map(|one| one.contender.clone()).collect()
    }
}
