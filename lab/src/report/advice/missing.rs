//! What a run lacks to judge a job by: who could not run, and who ran but does less than it asks
//! for.

use crate::contender::{Availability, Contender};
use crate::record::{Experiment, Record};
use crate::report::advice::jobs::{COLD, Job, WARM};
use crate::report::advice::{Absent, Advice, listed};

/// Those who do what a job asks for and could not run.
pub(super) fn absent(job: &Job, experiment: &Experiment) -> Vec<Absent> {
    let all = experiment.series.iter().map(|one| &one.contender);
    let meant = all.filter(|one| job.is_meant(one));
    meant.filter_map(told).collect()
}

fn told(one: &Contender) -> Option<Absent> {
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

/// Who ran and has no figures to be judged by.
pub(super) fn left_out(
    job: &Job,
    experiment: &Experiment,
    participants: &[&Contender],
) -> Option<String> {
    let took_part = |name: &str| participants.iter().any(|one| one.name == name);
    let all = experiment.series.iter().map(|one| &one.contender);
    let left = all.filter(|one| job.is_meant(one) && one.availability.runs());
    let left = left.filter(|one| !took_part(&one.name));
    let names = listed(left.map(|one| one.name.as_str()))?;
    Some(format!(
        "Left out, since figures of a direction or of a round are missing: {names}."
    ))
}

/// The advice for a job that no figure tells about: what there is of its experiments says why.
pub(super) fn not_measured(job: &Job, record: &Record) -> Advice {
    let ids = job.evidence[0].ids;
    let found: Vec<&Experiment> = ids.iter().filter_map(|id| record.experiment(id)).collect();
    let absent = found.first().map_or(Vec::new(), |one| absent(job, one));
    let is_only_warm = ids.contains(&COLD)
        && record.experiment(COLD).is_none()
        && record.experiment(WARM).is_some();
    let why = if is_only_warm {
        "Not measured here: files were read from memory only, where they lie decrypted."
    } else if found.len() == ids.len() && !absent.is_empty() {
        "Not measured here: none that does this could run."
    } else {
        "Not measured here."
    };
    let mut reasons = vec![
        why.to_owned(),
        format!("It is judged by: {}.", ids.join(", ")),
    ];
    let all = found.first().map_or(&[][..], |one| &one.series);
    let ran = all.iter().filter(|one| !one.points.is_empty());
    let ran = ran.map(|one| one.contender.name.as_str());
    let less = listed(ran.filter(|name| job.except.contains(name)));
    reasons.extend(less.map(|names| format!("Ran, but do less than it asks for: {names}.")));
    Advice {
        job: job.name,
        about: job.about,
        reasons,
        absent,
        experiment: found.first().map(|one| one.id.clone()),
        ..Advice::default()
    }
}
