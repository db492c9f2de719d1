//! The advice: for each job, which placement to choose on this machine, and by how much. CPU time
//! of the server decides first, since that is what a server runs out of; where it does not tell,
//! wall time, and then the time of a request.

mod jobs;
mod missing;
mod standing;

mod row;

mod reasons;

use crate::contender::{Contender, Placement};
use crate::host::machine::Machine;
use crate::record::{Experiment, Record};
use crate::report::advice::jobs::{Evidence, JOBS, Job};
use crate::report::advice::missing::{absent, left_out, not_measured};
use crate::report::advice::reasons::{
    advised, alike, counted, dearer, doubt, in_c, reason, shared, told_by, untold,
};

pub use jobs::{Resource, baseline};
pub use reasons::{amount, times};
pub use row::{Best, Known, Row};
pub use standing::Standing;

/// What to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verdict {
    /// This placement takes less than any other.
    Choose(Placement),
    /// Those that remain take the same: other reasons may decide.
    NoDifference,
    /// The samples don't tell.
    CannotTell,
    /// Only one placement could run: it is no choice.
    OnlyOneRan(Placement),
    /// Nothing was measured.
    #[default]
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
#[derive(Debug, Clone, Default)]
pub struct Advice {
    /// The job.
    pub job: &'static str,
    /// What was taken for it.
    pub about: &'static str,
    /// What to do.
    pub verdict: Verdict,
    /// The placements that remain in question.
    pub open: Vec<Placement>,
    /// The resource that says so; the first that leaves them in doubt, where none does.
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
    let (evidence, experiments) = &found;
    let contenders = job.participants(experiments, evidence.x);
    let weighed = Weighed::of(job, &contenders, &found, latency.as_ref());
    let (verdict, decided_by) = weighed.verdict()?;
    let Weighed {
        rows,
        open,
        mut reasons,
        ..
    } = weighed;
    let opposed_by = rows.iter().position(|row| is_against(row, verdict));
    reasons.extend(advised(&rows, verdict));
    reasons.extend(rows.iter().filter_map(dearer));
    reasons.extend(rows.iter().filter_map(alike));
    reasons.extend(rows.iter().filter_map(untold));
    reasons.extend(doubt(&rows, decided_by));
    reasons.extend(shared(job, &rows, (verdict, decided_by)));
    reasons.extend(left_out(job, experiments[0], &contenders));
    let own = told_by(&found);
    let other = latency.as_ref().map(told_by).filter(|other| *other != own);
    reasons.extend([own].into_iter().chain(other));
    reasons.extend(counted(&rows));
    let caution = rows.get(decided_by).and_then(|row| in_c(row, machine));
    let in_c = caution.is_some();
    reasons.extend(caution);
    let ran = contenders.iter().filter(|one| job.is_meant(one));
    Some(Advice {
        job: job.name,
        about: job.about,
        verdict,
        open,
        decided_by,
        opposed_by,
        reasons,
        in_c,
        ran: ran.map(|one| one.name.clone()).collect(),
        absent: absent(job, experiments[0]),
        experiment: Some(experiments[0].id.clone()),
        rows,
    })
}

/// What the resources say, one after the other: each puts placements out of the question, and the
/// next tells about those that remain.
struct Weighed {
    rows: Vec<Row>,
    /// What each says, and which were left out.
    reasons: Vec<String>,
    /// The placements that took part.
    all: Vec<Placement>,
    /// Those that remain in question.
    open: Vec<Placement>,
    /// The resource that left one alone.
    decided_by: Option<usize>,
}

impl Weighed {
    fn of(
        job: &Job,
        contenders: &[&Contender],
        found: &Found<'_>,
        latency: Option<&Found<'_>>,
    ) -> Self {
        let took_part = |place: &Placement| contenders.iter().any(|one| one.placement == *place);
        let encrypting = Placement::ALL
            .into_iter()
            .filter(|one| *one != Placement::None);
        let all: Vec<Placement> = encrypting.filter(took_part).collect();
        let mut weighed = Self {
            rows: Vec::new(),
            reasons: Vec::new(),
            open: all.clone(),
            all,
            decided_by: None,
        };
        for resource in Resource::ALL {
            let found = match resource {
                Resource::Latency => latency,
                _ => Some(found),
            };
            // What is decided may be against what a later resource would say by itself.
            let open = match weighed.decided_by {
                Some(_) => &weighed.all,
                None => &weighed.open,
            };
            match found.and_then(|found| Row::of(job, contenders, found, resource, open)) {
                Some(Ok(row)) => weighed.add(row),
                Some(Err(why)) => weighed.reasons.push(why),
                None => {}
            }
        }
        weighed
    }

    fn add(&mut self, mut row: Row) {
        if self.decided_by.is_some() {
            row.ruled_out.clear();
        } else {
            self.open.clone_from(&row.remaining);
            let is_alone = self.open.len() == 1 && self.all.len() > 1;
            self.decided_by = is_alone.then_some(self.rows.len());
        }
        self.reasons.push(reason(&row));
        self.rows.push(row);
    }

    /// None without rows.
    fn verdict(&self) -> Option<(Verdict, usize)> {
        self.rows.first()?;
        if let [only] = self.all[..] {
            return Some((Verdict::OnlyOneRan(only), 0));
        }
        if let (Some(index), [chosen]) = (self.decided_by, &self.open[..]) {
            return Some((Verdict::Choose(*chosen), index));
        }
        let in_doubt = |row: &Row| !row.are_same(&self.open);
        let verdict = match self.rows.iter().position(in_doubt) {
            Some(index) => (Verdict::CannotTell, index),
            None => (Verdict::NoDifference, 0),
        };
        Some(verdict)
    }
}

/// Whether a row by itself would choose another placement.
fn is_against(row: &Row, verdict: Verdict) -> bool {
    let alone = <[Placement; 1]>::try_from(&row.remaining[..]);
    matches!((verdict, alone), (Verdict::Choose(chosen), Ok([alone])) if alone != chosen)
}

/// Names in a row; None without any.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(" · "))
}

#[cfg(test)]
mod tests;
