//! The reference monitor against a small model of what it should decide: random labels,
//! clearances, grants, policies and roles, random operations, on a real vault.

#![allow(clippy::unwrap_used)] // a failed expectation of a test is its failure

mod changes;
mod lists;
mod long_put;
mod memory;
mod model;
mod operations;
mod policies;
mod requests;
mod start;
mod world;

use proptest::prelude::*;

use crate::operations::{Operation, operation};
use crate::world::World;

fn cases() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_vault_decides_as_the_model_does(
        seed in start::start(),
        operations in prop::collection::vec(operation(), 40..160),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(run(seed, operations))?;
    }
}

async fn run(seed: start::Start, operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let mut world = World::new(&seed).await;
    for operation in operations {
        world.sentence = world.model.next_sentence(&operation);
        let expected = world.model.outcome(&operation);
        let found = world.perform(&operation).await;
        prop_assert_eq!(found, expected, "{:?} in {:?}", operation, world.model);
        let carried = world.model.carried_down();
        prop_assert_eq!(carried, None, "{:?} in {:?}", operation, world.model);
    }
    world.vault.close().await;
    Ok(())
}
