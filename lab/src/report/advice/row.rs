//! What one resource says of a job.

use coffer_measure::comparison::{Comparison, EQUIVALENT_WITHIN, Finding, ROUNDED_BY};
use coffer_measure::statistics::Estimate;

use crate::contender::{Contender, Placement};
use crate::report::advice::jobs::{Job, Resource};
use crate::report::advice::standing::{Group, Scale, Standing, Taken};
use crate::report::advice::{Found, listed};

/// The best that a placement has to offer.
#[derive(Debug, Clone)]
pub struct Best {
    /// Which placement.
    pub placement: Placement,
    /// The contender of it that takes the least.
    pub contender: String,
    /// Others of the placement that can't be told from that one, or differ too little to matter.
    pub alike: Vec<String>,
    /// What it costs.
    pub cost: Estimate,
    /// Whether it may cost less than that: its CPU time came in too few ticks to be told.
    pub at_most: bool,
    /// How many times the first that is; None for the first itself.
    pub compared: Option<Comparison>,
    /// How its placement stands to that of the first.
    pub standing: Standing,
    /// What it takes with encryption and without, where the cost is how many times that is.
    pub(super) amounts: Option<(f64, f64)>,
}

/// What is known of how many times the first one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// So many.
    All,
    /// So many or more: the first took less than can be told.
    Least,
    /// So many or fewer: it took less than can be told itself.
    Most,
    /// Both did.
    Nothing,
}

/// What a resource says of a job.
#[derive(Debug, Clone)]
pub struct Row {
    /// Of what.
    pub resource: Resource,
    /// What its costs are.
    pub unit: String,
    /// Whether they are instructions, and not time.
    pub counted: bool,
    /// What is told beside them where they are how many times the same without encryption.
    pub(super) amount: String,
    /// The best of each placement: the first, those that were in question with it, by how many
    /// times the first they take, and the others; "no encryption" is the last.
    pub best: Vec<Best>,
    /// The next of those in question: how many times it takes what the first takes.
    pub compared: Option<Comparison>,
    /// The placements that are in question after it.
    pub remaining: Vec<Placement>,
    /// Those that it put out of the question.
    pub ruled_out: Vec<Placement>,
    /// Pairs of placements that take the same.
    pub(super) same: Vec<[Placement; 2]>,
    /// Who took part and can't be told.
    pub untold: Vec<String>,
}

impl Best {
    /// How many times the first.
    pub fn times(&self) -> f64 {
        self.compared.map_or(1.0, |found| found.ratio.median)
    }

    /// Whether the samples tell that.
    pub fn is_told(&self) -> bool {
        let unsure = |found: Comparison| found.finding == Finding::CannotTell;
        !self.compared.is_some_and(unsure)
    }
}

impl Row {
    /// None without figures. The reason, where no figure of those in question can be told.
    pub(super) fn of(
        job: &Job,
        contenders: &[&Contender],
        (evidence, experiments): &Found<'_>,
        resource: Resource,
        open: &[Placement],
    ) -> Option<Result<Self, String>> {
        let unit = experiments[0].unit;
        let (mut all, mut untold) = (Vec::new(), Vec::new());
        for one in contenders {
            let costs = job.costs(experiments, evidence.x, &one.name, resource);
            match costs.and_then(|costs| Taken::of(one, costs)) {
                Some(taken) => all.push(taken),
                None if one.placement != Placement::None => untold.push(*one),
                None => {}
            }
        }
        let counted = unit.counts_instructions();
        let told = all.iter().filter(|one| open.contains(&one.placement));
        let told: Vec<&Taken> = told.collect();
        if told.iter().all(|one| one.costs.at_most) {
            return left_out(resource, &job.unit(resource, counted), &told, &untold).map(Err);
        }
        let scale = Scale::new(unit, &all, !job.only.is_empty());
        let mut row = Self {
            resource,
            unit: job.unit(resource, counted),
            counted,
            amount: job.amount(resource, counted),
            best: Vec::new(),
            compared: None,
            remaining: Vec::new(),
            ruled_out: Vec::new(),
            same: Vec::new(),
            untold: untold.iter().map(|one| one.name.clone()).collect(),
        };
        row.judge(&scale, &all, &untold, open);
        Some(Ok(row))
    }

    /// Compares all placements with the first of those in question, and puts out of the question
    /// which are told to take more.
    fn judge(&mut self, scale: &Scale, all: &[Taken], untold: &[&Contender], open: &[Placement]) {
        let groups = Placement::ALL.into_iter().filter_map(|placement| {
            let own: Vec<&Taken> = all
                .iter()
                .filter(|one| one.placement == placement)
                .collect();
            scale.group(&own)
        });
        let groups: Vec<Group<'_>> = groups.collect();
        let is_open = |group: &&Group<'_>| open.contains(&group.first.placement);
        let candidates: Vec<&Group<'_>> = groups.iter().filter(is_open).collect();
        let Some(first) = scale.first(candidates.iter().map(|group| group.first)) else {
            return;
        };
        self.best = groups
            .iter()
            .map(|group| best(scale, group, first))
            .collect();
        for one in &mut self.best {
            // That one may take the least.
            if untold.iter().any(|other| other.placement == one.placement) {
                one.standing = Standing::CannotTell;
            }
        }
        let is_out = |placement: &Placement| {
            let found = self.best.iter().find(|one| one.placement == *placement);
            *placement != first.placement
                && found.is_some_and(|one| one.standing == Standing::Dearer)
        };
        (self.ruled_out, self.remaining) = open.iter().copied().partition(is_out);
        self.best.sort_by(|a, b| {
            let key = |one: &Best| {
                let is_first = one.compared.is_none();
                let is_plain = one.placement == Placement::None;
                (is_plain, !is_first, !open.contains(&one.placement))
            };
            key(a).cmp(&key(b)).then(a.times().total_cmp(&b.times()))
        });
        let next = self.best.get(1).filter(|one| open.contains(&one.placement));
        self.compared = next.and_then(|one| one.compared);
        for (at, one) in candidates.iter().enumerate() {
            let others = candidates[at + 1..].iter();
            let same = others.filter(|other| scale.are_same(one, other));
            let pairs = same.map(|other| [one.first.placement, other.first.placement]);
            self.same.extend(pairs);
        }
    }

    /// The one that takes the least of those in question.
    pub fn first(&self) -> Option<&Best> {
        self.best.first()
    }

    /// The others that encrypt.
    pub fn others(&self) -> impl Iterator<Item = &Best> {
        let all = self.best.iter().skip(1);
        all.filter(|one| one.placement != Placement::None)
    }

    /// The best of a placement.
    pub fn at(&self, placement: Placement) -> Option<&Best> {
        self.best.iter().find(|one| one.placement == placement)
    }

    /// What is known of how many times the first one takes.
    pub fn known(&self, one: &Best) -> Known {
        let first = self.first().is_some_and(|first| first.at_most);
        match (first, one.at_most) {
            _ if one.compared.is_none() => Known::All,
            (false, false) => Known::All,
            (true, false) => Known::Least,
            (false, true) => Known::Most,
            (true, true) => Known::Nothing,
        }
    }

    /// Whether costs are how many times the same without encryption.
    pub fn is_relative(&self) -> bool {
        self.best.iter().any(|one| one.amounts.is_some())
    }

    /// Whether those of some placements take the same, each as each other.
    pub(super) fn are_same(&self, placements: &[Placement]) -> bool {
        let is_same = |one: &Placement, other: &Placement| {
            one == other
                || self.same.contains(&[*one, *other])
                || self.same.contains(&[*other, *one])
        };
        let mut all = placements.iter();
        all.all(|one| placements.iter().all(|other| is_same(one, other)))
    }

    /// How many times the first the same takes without encryption, where that is told to be more.
    /// Encryption saves no work: something else differed as much.
    pub fn dearer_without(&self) -> Option<f64> {
        let first = self.first()?;
        let (is_told, times) = if self.is_relative() {
            let is_told = first.cost.high < 1.0 - ROUNDED_BY;
            (is_told, 1.0 / first.cost.median)
        } else {
            // As of all placements: none of it may take less.
            let plain = self.at(Placement::None)?;
            (plain.standing <= Standing::TooLittle, plain.times())
        };
        (is_told && times > 1.0 + EQUIVALENT_WITHIN).then_some(times)
    }
}

fn best(scale: &Scale, group: &Group<'_>, first: &Taken) -> Best {
    let own = group.first;
    let is_first = own.placement == first.placement;
    let compared = scale.times(&own.costs, &first.costs).filter(|_| !is_first);
    Best {
        placement: own.placement,
        contender: own.contender.clone(),
        alike: group.alike(),
        cost: own.cost,
        at_most: own.costs.at_most,
        compared,
        standing: scale.of_group(group, first),
        amounts: own.costs.amounts,
    }
}

/// Why a resource is not judged. None where there is none to name.
fn left_out(
    resource: Resource,
    unit: &str,
    coarse: &[&Taken],
    untold: &[&Contender],
) -> Option<String> {
    let coarse = coarse.iter().map(|one| one.contender.as_str());
    let names = listed(coarse.chain(untold.iter().map(|one| one.name.as_str())))?;
    let why = why_untold(resource);
    Some(format!("{unit}: left out, since {why}: {names}."))
}

/// Why a resource of contenders that took part can't be told.
pub(super) fn why_untold(resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu => {
            "what these took, or the same without encryption, came in too few ticks of the \
             kernel’s clock to be told"
        }
        Resource::Time | Resource::Latency => "it was not measured of these",
    }
}
