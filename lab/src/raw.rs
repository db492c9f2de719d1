//! Raw calculation: what does encryption alone cost, without files and networks?

mod speed;

mod chunked;
mod modes;

pub mod aeads;
mod calls;
pub mod handshakes;
pub mod memory;
pub mod null_cipher;
pub mod open_ssl_speed;
mod table_a;

use crate::cipher::agreement::agree;
use crate::cipher::algorithm::Algorithm;
use crate::cipher::roster::{ceiling, roster};
use crate::cipher::{CipherContender, kernel_module};
use crate::contender::{Contender, Placement};
use crate::error::Result;
use crate::measuring::rounds::Effort;
use crate::raw::speed::Direction;
use crate::record::{Agreement, Experiment};

/// Compares all contenders, and only if they agree measures them.
pub fn raw(effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let longest = modes::longest_block(effort);
    let mut rosters = Vec::new();
    let mut agreements = Vec::new();
    for algorithm in Algorithm::MODES {
        let mut roster = roster(algorithm);
        agreements.push(agree(algorithm, &roster, longest)?);
        roster.push(ceiling());
        rosters.push((algorithm, roster));
    }
    let (module, agreed) = module_agrees(longest)?;
    agreements.extend(agreed);
    let mut experiments = Vec::new();
    for (algorithm, roster) in &rosters {
        experiments.extend(modes::by_block(*algorithm, roster, effort)?);
        experiments.extend(modes::by_threads(*algorithm, roster, effort)?);
    }
    let (agreed, measured) = aeads::authenticated(effort)?;
    agreements.extend(agreed);
    experiments.extend(measured);
    experiments.extend(memory::copies(effort)?);
    let cbc = contenders(&rosters, Algorithm::Cbc256);
    // The ceiling does not encrypt, and can't be held against the others.
    let (cbc, _) = cbc.split_at(cbc.len().saturating_sub(1));
    experiments.push(table_a::loop_of_a(cbc, &module, effort)?);
    experiments.push(open_ssl_speed::open_ssl_speed(effort)?);
    experiments.extend(chunked::chunked(effort)?);
    experiments.push(null_cipher::null_operations(effort)?);
    experiments.push(calls::calls(effort)?);
    experiments.push(handshakes::handshakes(effort)?);
    Ok((agreements, experiments))
}

/// The experiments that [`raw`] measures on this machine, by their ids.
pub fn ids() -> Vec<String> {
    let mut ids: Vec<String> = Algorithm::MODES.into_iter().flat_map(modes::ids).collect();
    ids.extend(Direction::BOTH.map(aeads::id));
    ids.push(memory::ID.to_owned());
    ids.extend([table_a::ID, "raw/openssl-speed"].map(str::to_owned));
    ids.extend(Direction::BOTH.map(chunked::id));
    ids.extend([null_cipher::ID, calls::ID, handshakes::ID].map(str::to_owned));
    ids
}

/// The loop of A alone, under the same condition.
pub fn loop_alone(effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let longest = modes::longest_block(effort);
    let cbc = roster(Algorithm::Cbc256);
    let mut agreements = vec![agree(Algorithm::Cbc256, &cbc, longest)?];
    let (module, agreed) = module_agrees(longest)?;
    agreements.extend(agreed);
    let experiment = table_a::loop_of_a(&cbc, &module, effort)?;
    Ok((agreements, vec![experiment]))
}

/// Compares the lab's kernel module with the contenders in user space, where it is loaded.
fn module_agrees(longest: usize) -> Result<(Contender, Option<Agreement>)> {
    let module = kernel_module();
    let contender = module.contender.clone();
    if !contender.availability.runs() {
        return Ok((contender, None));
    }
    let mut both = roster(Algorithm::Cbc256);
    both.retain(|one| one.contender.placement == Placement::User);
    both.push(module);
    let agreed = agree(Algorithm::Cbc256, &both, longest)?;
    Ok((contender, Some(agreed)))
}

fn contenders(
    rosters: &[(Algorithm, Vec<CipherContender>)],
    wanted: Algorithm,
) -> &[CipherContender] {
    let found = rosters.iter().find(|(algorithm, _)| *algorithm == wanted);
    found.map_or(&[], |(_, roster)| roster)
}
