//! Raw calculation: what does encryption alone cost, without files and networks?

mod speed;

mod chunked;
mod modes;
mod open_ssl_speed;
mod table_a;

use crate::agreement::agree;
use crate::algorithm::Algorithm;
use crate::cipher::roster::roster;
use crate::cipher::{CipherContender, kernel_module};
use crate::contender::Placement;
use crate::error::Result;
use crate::record::{Agreement, Experiment};
use crate::rounds::Effort;

/// Compares all contenders, and only if they agree measures them.
pub fn raw(effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let longest = modes::longest_block(effort);
    let mut rosters = Vec::new();
    let mut agreements = Vec::new();
    for algorithm in Algorithm::ALL {
        let roster = roster(algorithm);
        agreements.push(agree(algorithm, &roster, longest)?);
        rosters.push((algorithm, roster));
    }
    let module = kernel_module();
    let module_contender = module.contender.clone();
    if module_contender.availability.runs() {
        let mut both = roster(Algorithm::Cbc256);
        both.retain(|one| one.contender.placement == Placement::User);
        both.push(module);
        agreements.push(agree(Algorithm::Cbc256, &both, longest)?);
    }
    let mut experiments = Vec::new();
    for (algorithm, roster) in &rosters {
        experiments.extend(modes::by_block(*algorithm, roster, effort)?);
        experiments.extend(modes::by_threads(*algorithm, roster, effort)?);
    }
    let cbc = contenders(&rosters, Algorithm::Cbc256);
    experiments.push(table_a::loop_of_a(cbc, &module_contender, effort)?);
    experiments.push(open_ssl_speed::open_ssl_speed(effort)?);
    experiments.push(chunked::chunked(effort)?);
    Ok((agreements, experiments))
}

fn contenders(
    rosters: &[(Algorithm, Vec<CipherContender>)],
    wanted: Algorithm,
) -> &[CipherContender] {
    let found = rosters.iter().find(|(algorithm, _)| *algorithm == wanted);
    found.map_or(&[], |(_, roster)| roster)
}
