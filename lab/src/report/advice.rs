//! The advice: for each job, which placement to choose on this machine, and by how much. CPU time
//! of the server decides first, since that is what a server runs out of; where it does not tell,
//! wall time, and then the time of a request.

mod jobs;

use crate::contender::{Availability, Placement};
use crate::host::kernel_crypto::aes_in_c;
use crate::host::machine::Machine;
use crate::record::{Experiment, Record};
use crate::report::advice::jobs::{Costs, Evidence, JOBS, Job, SERVER};
use crate::report::table::{figure, interval, place};
use coffer_measure::comparison::{self, Comparison, Finding};
use coffer_measure::statistics::{CONFIDENCE, Estimate};

pub use jobs::Resource;

/// The best that a placement has to offer.
#[derive(Debug, Clone)]
pub struct Best {
    /// Which placement.
    pub placement: Placement,
    /// Its cheapest contender.
    pub contender: String,
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
    match evidence.find_map(|one| Some((*one, one.of(record)?))) {
        Some((evidence, experiments)) => {
            let latency = job.latency.and_then(|one| Some((one, one.of(record)?)));
            judge(job, (evidence, experiments), latency, &record.machine)
        }
        None => Advice {
            job: job.name,
            about: job.about,
            verdict: Verdict::NotMeasured,
            decided_by: 0,
            rows: Vec::new(),
            reasons: vec![format!(
                "Not measured here: this run holds no experiment for it ({}).",
                job.evidence[0].ids.join(", ")
            )],
            in_c: false,
            ran: Vec::new(),
            absent: Vec::new(),
            experiment: None,
        },
    }
}

/// Experiments, and where on their axis to look.
type Found<'a> = (Evidence, Vec<&'a Experiment>);

fn judge(job: &Job, found: Found<'_>, latency: Option<Found<'_>>, machine: &Machine) -> Advice {
    let (_, experiments) = &found;
    let rows = Resource::ALL.into_iter().filter_map(|resource| {
        let found = match resource {
            Resource::Latency => latency.as_ref()?,
            _ => &found,
        };
        row(job, found, resource)
    });
    let rows: Vec<Row> = rows.collect();
    let (verdict, decided_by) = verdict(&rows);
    let mut reasons: Vec<String> = rows.iter().map(reason).collect();
    reasons.extend(doubt(&rows, decided_by));
    reasons.extend(shared(job, &rows, (verdict, decided_by)));
    reasons.push(told_by(&found));
    reasons.extend(latency.as_ref().map(told_by));
    let caution = rows.get(decided_by).and_then(|row| in_c(row, machine));
    reasons.extend(caution.map(|driver| {
        format!(
            "The processor has instructions for AES, but /proc/crypto lists no driver that uses \
             them, and {driver} comes first: what this kernel encrypts tells nothing of one that \
             has such a driver."
        )
    }));
    let who = |runs: bool| {
        let all = experiments[0].series.iter().map(|one| &one.contender);
        all.filter(move |one| {
            one.placement != Placement::None
                && job.is_for(&one.name)
                && one.availability.runs() == runs
        })
    };
    Advice {
        job: job.name,
        about: job.about,
        verdict,
        decided_by,
        rows,
        reasons,
        in_c: caution.is_some(),
        ran: who(true).map(|one| one.name.clone()).collect(),
        absent: who(false).filter_map(absent).collect(),
        experiment: Some(experiments[0].id.clone()),
    }
}

fn absent(one: &crate::contender::Contender) -> Option<Absent> {
    let Availability::CannotRun {
        why,
        what_would_make_it_run: remedy,
    } = &one.availability
    else {
        return None;
    };
    Some(Absent {
        placement: one.placement,
        text: format!("{}: {why}. It would need: {remedy}.", one.name),
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
        let own = Best {
            placement,
            contender: name.clone(),
            cost,
            times: 1.0,
            is_told: true,
            amounts,
            rounds,
        };
        match best.iter_mut().find(|one| one.placement == placement) {
            Some(one) if one.cost.median > cost.median => *one = own,
            Some(_) => {}
            None => best.push(own),
        }
    }
    best.sort_by(|a, b| a.cost.median.total_cmp(&b.cost.median));
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
        amount: job.amount(resource, counted),
        compared,
        best,
    })
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
}

fn verdict(rows: &[Row]) -> (Verdict, usize) {
    let Some((Some(first), second)) = rows.first().map(Row::leaders) else {
        return (Verdict::NotMeasured, 0);
    };
    if second.is_none() {
        return (Verdict::OnlyOneRan(first.placement), 0);
    }
    let finding = |row: &Row| row.compared.map(|one| one.finding);
    let decides = |row: &Row| finding(row) == Some(Finding::More);
    if let Some(index) = rows.iter().position(decides)
        && let (Some(first), _) = rows[index].leaders()
    {
        return (Verdict::Choose(first.placement), index);
    }
    let same = rows.iter().all(|row| finding(row) == Some(Finding::Same));
    let verdict = if same {
        Verdict::NoDifference
    } else {
        Verdict::CannotTell
    };
    (verdict, 0)
}

/// What a row says, in a sentence.
fn reason(row: &Row) -> String {
    let told = |one: &Best| {
        let (median, range) = (figure(one.cost.median), interval(&one.cost));
        let placement = one.placement.word();
        let amounts = one.amounts.map_or(String::new(), |(with, without)| {
            let (with, without) = (figure(with), figure(without));
            format!(", which is {with} beside {without} {}", row.amount)
        });
        format!("{} ({placement}) {median}{range}{amounts}", one.contender)
    };
    let unit = &row.unit;
    match (row.leaders(), row.compared) {
        ((Some(first), Some(second)), Some(compared)) => {
            let both = format!("{} against {}", told(first), told(second));
            format!("{unit}: {both}: {}.", times(&compared, row.is_relative()))
        }
        ((Some(first), _), _) => format!("{unit}: {}.", told(first)),
        _ => String::new(),
    }
}

fn times(compared: &Comparison, is_relative: bool) -> String {
    let (median, range) = (figure(compared.ratio.median), interval(&compared.ratio));
    match compared.finding {
        Finding::More | Finding::Less => {
            let what = ["the second takes", "the second’s is"][usize::from(is_relative)];
            format!("{what} {median} times as much{range}")
        }
        Finding::Same => "no difference".to_owned(),
        Finding::CannotTell => format!("can’t tell, {median} times{range}"),
    }
}

/// The kernel's AES, where it is in C although the processor has instructions for it, and the row
/// has a contender that uses it. WireGuard's cipher is another.
fn in_c<'a>(row: &Row, machine: &'a Machine) -> Option<&'a str> {
    let kernel = row.at(Placement::Kernel)?;
    let driver = aes_in_c(&machine.drivers, &machine.instructions)?;
    (!kernel.contender.contains("WireGuard")).then_some(driver.driver.as_str())
}

/// What a client on the same cores spends is in the time that decides.
fn shared(job: &Job, rows: &[Row], (verdict, decided_by): (Verdict, usize)) -> Option<String> {
    let decides = rows.get(decided_by)?.resource;
    let is_choice = matches!(verdict, Verdict::Choose(_));
    (is_choice && job.cpu_of == SERVER && decides != Resource::Cpu).then(|| {
        "Client and server share the cores here: this time is that of both, and tells less of a \
         server by itself."
            .to_owned()
    })
}

/// Where the figures stand.
fn told_by((evidence, experiments): &Found<'_>) -> String {
    let titles: Vec<&str> = experiments.iter().map(|one| one.title.as_str()).collect();
    let mut text = format!("Told by: {}", titles.join(" · "));
    let at = place(experiments[0].axis, evidence.x);
    if !at.is_empty() {
        text += &format!(", {at}");
    }
    text + "."
}

/// Where too few rounds were made for the intervals to hold what they should.
fn doubt(rows: &[Row], decided_by: usize) -> Option<String> {
    let confidence = rows.get(decided_by)?.compared?.ratio.confidence;
    (confidence < CONFIDENCE).then(|| {
        format!(
            "With so few rounds these intervals hold with {:.0} % only: try more (--rounds).",
            confidence * 100.0
        )
    })
}

#[cfg(test)]
mod tests;
