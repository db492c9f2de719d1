//! The advice: for each job, which placement to choose on this machine, and by how much. CPU time
//! of the server decides first, since that is what a server runs out of; where it does not tell,
//! wall time, and then the time of a request.

mod jobs;
mod missing;
mod reasons;

use crate::contender::Placement;
use crate::host::machine::Machine;
use crate::record::{Experiment, Record, Unit};
use crate::report::advice::jobs::{Costs, Evidence, JOBS, Job};
use crate::report::advice::missing::{absent, not_measured};
use crate::report::advice::reasons::{
    advised, alike, dearer, doubt, in_c, of_this_length, reason, shared, told_by,
};
use coffer_measure::comparison::{
    self, COUNTED_WITHIN, Comparison, EQUIVALENT_WITHIN, Finding, ROUNDED_BY,
};
use coffer_measure::statistics::Estimate;

pub use jobs::{Resource, baseline};

/// The best that a placement has to offer.
#[derive(Debug, Clone)]
pub struct Best {
    /// Which placement.
    pub placement: Placement,
    /// Its cheapest contender.
    pub contender: String,
    /// Others of the placement that can't be told from that one, or differ too little to matter.
    pub alike: Vec<String>,
    /// What it costs.
    pub cost: Estimate,
    /// How many times the cheapest that encrypts, which is 1.
    pub times: f64,
    /// Whether the samples tell that.
    pub is_told: bool,
    /// What it takes with encryption and without, where the cost is how many times that is.
    amounts: Option<(f64, f64)>,
    /// What it costs in each round.
    rounds: Vec<f64>,
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
    amount: String,
    /// The best of each placement that ran, the cheapest first; "no encryption" among them.
    pub best: Vec<Best>,
    /// The cheapest that encrypts against the second: how many times the one takes what the other
    /// takes.
    pub compared: Option<Comparison>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// This placement takes less.
    Choose(Placement),
    /// They take the same: other reasons may decide.
    NoDifference,
    /// The samples don't tell.
    CannotTell,
    /// Only one placement could run: it is no choice.
    OnlyOneRan(Placement),
    /// Nothing was measured.
    NotMeasured,
}

/// One who could not run.
#[derive(Debug, Clone)]
pub struct Absent {
    /// Where it would encrypt.
    pub placement: Placement,
    /// Who, why not, and what would help.
    pub text: String,
}

/// The advice for one job.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The job.
    pub job: &'static str,
    /// What was taken for it.
    pub about: &'static str,
    /// What to do.
    pub verdict: Verdict,
    /// The resource that says so; the first where none does.
    pub decided_by: usize,
    /// Another resource by which a choice would be another.
    pub opposed_by: Option<usize>,
    /// What each resource says, in their order.
    pub rows: Vec<Row>,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// Whether the kernel stands here with an AES in C, beside others that have instructions.
    pub in_c: bool,
    /// Who ran.
    pub ran: Vec<String>,
    /// Who did not.
    pub absent: Vec<Absent>,
    /// The experiment that says so.
    pub experiment: Option<String>,
}

/// The advice for each job.
pub fn advice(record: &Record) -> Vec<Advice> {
    JOBS.iter().map(|job| for_job(job, record)).collect()
}

fn for_job(job: &Job, record: &Record) -> Advice {
    let mut evidence = job.evidence.iter();
    let found = evidence.find_map(|one| Some((*one, one.of(record)?)));
    let judged = found.and_then(|found| {
        let latency = job.latency.and_then(|one| Some((one, one.of(record)?)));
        judge(job, found, latency, &record.machine)
    });
    judged.unwrap_or_else(|| not_measured(job, record))
}

/// Experiments, and where on their axis to look.
type Found<'a> = (Evidence, Vec<&'a Experiment>);

/// None, where none that encrypts has a figure.
fn judge(
    job: &Job,
    found: Found<'_>,
    latency: Option<Found<'_>>,
    machine: &Machine,
) -> Option<Advice> {
    let (_, experiments) = &found;
    let rows = Resource::ALL.into_iter().filter_map(|resource| {
        let found = match resource {
            Resource::Latency => latency.as_ref()?,
            _ => &found,
        };
        row(job, found, resource)
    });
    let rows: Vec<Row> = rows.collect();
    let (verdict, decided_by) = verdict(&rows)?;
    let opposed_by = rows.iter().position(|row| is_against(row, verdict));
    let mut reasons: Vec<String> = rows.iter().map(reason).collect();
    reasons.extend(advised(&rows, verdict));
    reasons.extend(rows.iter().filter_map(dearer));
    reasons.extend(rows.iter().filter_map(alike));
    reasons.extend(doubt(&rows, decided_by));
    reasons.extend(shared(job, &rows, (verdict, decided_by)));
    let own = told_by(&found);
    let other = latency.as_ref().map(told_by).filter(|other| *other != own);
    reasons.extend([own].into_iter().chain(other));
    reasons.extend(of_this_length(&rows));
    let caution = rows.get(decided_by).and_then(|row| in_c(row, machine));
    reasons.extend(caution.map(|driver| {
        format!(
            "The processor has instructions for AES, but /proc/crypto lists no driver that uses \
             them, and {driver} comes first: what this kernel encrypts tells nothing of one that \
             has such a driver."
        )
    }));
    let all = experiments[0].series.iter().map(|one| &one.contender);
    let ran = all.filter(|one| job.is_meant(one) && one.availability.runs());
    Some(Advice {
        job: job.name,
        about: job.about,
        verdict,
        decided_by,
        opposed_by,
        rows,
        reasons,
        in_c: caution.is_some(),
        ran: ran.map(|one| one.name.clone()).collect(),
        absent: absent(job, experiments[0]),
        experiment: Some(experiments[0].id.clone()),
    })
}

/// None, where nothing was measured of it, or too coarsely.
fn row(job: &Job, (evidence, experiments): &Found<'_>, resource: Resource) -> Option<Row> {
    let unit = experiments[0].unit;
    let counted = unit.counts_instructions();
    let mut best: Vec<Best> = Vec::new();
    for series in &experiments[0].series {
        let (name, placement) = (&series.contender.name, series.contender.placement);
        if job.except.contains(&name.as_str()) {
            continue;
        }
        // What can't be told of one who took least is no ground to choose among the others.
        let coarse = placement != Placement::None && job.is_coarse(experiments, evidence.x, name);
        if resource == Resource::Cpu && coarse {
            return None;
        }
        let costs = job.costs(experiments, evidence.x, name, resource);
        let Some(Costs { rounds, amounts }) = costs else {
            continue;
        };
        let Some(cost) = Estimate::of(&rounds) else {
            continue;
        };
        best.push(Best {
            placement,
            contender: name.clone(),
            alike: Vec::new(),
            cost,
            times: 1.0,
            is_told: true,
            amounts,
            rounds,
        });
    }
    let mut best = cheapest(best, unit);
    let first = best
        .iter()
        .position(|one| one.placement != Placement::None)?;
    let base = best[first].rounds.clone();
    let against = |one: &Best| unit.comparing(comparison::paired)(&one.rounds, &base);
    let mut others = best.iter().skip(first + 1);
    let second = others.find(|one| one.placement != Placement::None);
    let compared = second.and_then(against);
    let rest = best
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| *index != first);
    for (_, one) in rest {
        let found = against(one);
        one.times = found.map_or(f64::NAN, |found| found.ratio.median);
        one.is_told = found.is_some_and(|found| found.finding != Finding::CannotTell);
    }
    Some(Row {
        resource,
        unit: job.unit(resource, counted),
        counted,
        amount: job.amount(resource, counted),
        compared,
        best,
    })
}

/// The cheapest of each placement, with those that are as cheap as far as can be told; the cheapest
/// of all first.
fn cheapest(mut all: Vec<Best>, unit: Unit) -> Vec<Best> {
    all.sort_by(|a, b| a.cost.median.total_cmp(&b.cost.median));
    let mut best: Vec<Best> = Vec::new();
    for one in all {
        let Some(known) = best.iter_mut().find(|best| best.placement == one.placement) else {
            best.push(one);
            continue;
        };
        let compared = unit.comparing(comparison::paired)(&one.rounds, &known.rounds);
        if compared.is_some_and(|found| !matters(&found, unit.counts_instructions())) {
            known.alike.push(one.contender);
        }
    }
    best
}

impl Row {
    /// The cheapest that encrypts, and the second.
    pub fn leaders(&self) -> (Option<&Best>, Option<&Best>) {
        let mut all = self
            .best
            .iter()
            .filter(|one| one.placement != Placement::None);
        (all.next(), all.next())
    }

    /// The best of a placement.
    pub fn at(&self, placement: Placement) -> Option<&Best> {
        self.best.iter().find(|one| one.placement == placement)
    }

    /// Whether costs are how many times the same without encryption.
    pub fn is_relative(&self) -> bool {
        self.best.iter().any(|one| one.amounts.is_some())
    }

    /// How many times the cheapest that encrypts the same takes without encryption, where that is
    /// told to be more. Encryption saves no work: something else differed as much.
    pub fn dearer_without(&self) -> Option<f64> {
        let first = self.leaders().0?;
        let (is_told, times) = if self.is_relative() {
            let is_told = first.cost.high < 1.0 - ROUNDED_BY;
            (is_told, 1.0 / first.cost.median)
        } else {
            let plain = self.at(Placement::None)?;
            (plain.is_told, plain.times)
        };
        (is_told && times > 1.0 + EQUIVALENT_WITHIN).then_some(times)
    }
}

/// None without rows.
fn verdict(rows: &[Row]) -> Option<(Verdict, usize)> {
    let (first, second) = rows.first()?.leaders();
    let first = first?;
    if second.is_none() {
        return Some((Verdict::OnlyOneRan(first.placement), 0));
    }
    let finding = |row: &Row| row.compared.map(|one| one.finding);
    if let Some(index) = rows.iter().position(decides)
        && let (Some(first), _) = rows[index].leaders()
    {
        return Some((Verdict::Choose(first.placement), index));
    }
    let same = rows.iter().all(|row| finding(row) == Some(Finding::Same));
    let verdict = if same {
        Verdict::NoDifference
    } else {
        Verdict::CannotTell
    };
    Some((verdict, 0))
}

/// Whether the second takes so much more than the first that it matters: by more than what can't
/// come from encryption, where that is time. Counts neither drift nor scatter.
fn decides(row: &Row) -> bool {
    let least = row.dearer_without().filter(|_| !row.counted).unwrap_or(1.0);
    let compared = row.compared.as_ref();
    compared.is_some_and(|one| matters(one, row.counted) && one.ratio.median > least)
}

fn matters(compared: &Comparison, counted: bool) -> bool {
    let margin = [EQUIVALENT_WITHIN, COUNTED_WITHIN][usize::from(counted)];
    compared.finding == Finding::More && compared.ratio.median > 1.0 + margin
}

/// Whether a row by itself would choose another placement.
fn is_against(row: &Row, verdict: Verdict) -> bool {
    let (Verdict::Choose(chosen), (Some(first), _)) = (verdict, row.leaders()) else {
        return false;
    };
    decides(row) && first.placement != chosen
}

#[cfg(test)]
mod tests;
