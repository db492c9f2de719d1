//! The protocol is searched whole, and what breaks without each of its rules is found.

use coffer_model::{Bounds, Cluster, DURABLE, FRESH, PROGRESS, Rules, TAKEN_OVER};
use stateright::Checker;

/// One bucket that changes owners twice.
const ONE: Bounds = Bounds {
    gateways: 3,
    buckets: 1,
    takeovers: 2,
    returns: 1,
    writes: 2,
    packets: 1,
    faults: 2,
};

/// Two requests at once: late ones, and the same one twice.
const LATE: Bounds = Bounds {
    takeovers: 1,
    packets: 2,
    ..ONE
};

/// Two buckets, which gateways own crosswise.
const TWO: Bounds = Bounds {
    buckets: 2,
    takeovers: 1,
    writes: 1,
    faults: 1,
    ..ONE
};

fn holds(bounds: Bounds, rules: Rules) {
    let found = Cluster { bounds, rules }.search();
    let (states, depth) = (found.unique_state_count(), found.max_depth());
    println!("{states} states, {depth} deep");
    assert!(found.is_done(), "not all was searched");
    found.assert_no_discovery(DURABLE);
    found.assert_no_discovery(FRESH);
    found.assert_any_discovery(PROGRESS);
    if bounds.writes > 1 {
        found.assert_any_discovery(TAKEN_OVER);
    }
}

#[test]
fn a_bucket_with_three_owners_one_after_the_other_loses_nothing() {
    holds(ONE, Rules::ALL);
}

#[test]
fn late_and_repeated_requests_lose_nothing() {
    holds(LATE, Rules::ALL);
}

#[test]
fn two_buckets_of_three_gateways_lose_nothing() {
    holds(TWO, Rules::ALL);
}

#[test]
fn where_no_number_is_free_again_a_commit_is_one_creation_and_loses_nothing() {
    holds(ONE, Rules::RECORDS);
    holds(LATE, Rules::RECORDS);
}

#[track_caller]
fn breaks(rules: Rules, property: &'static str) {
    let bounds = ONE;
    let found = Cluster { bounds, rules }.search();
    let path = found.discovery(property).expect("the search finds it");
    println!("{property}: {:?}", path.into_actions());
}

/// A number is free again after its segment was collected.
#[test]
fn without_the_look_after_a_write_something_acknowledged_is_lost() {
    let rules = Rules {
        looks_after_writes: false,
        ..Rules::ALL
    };
    breaks(rules, DURABLE);
}

/// A new owner that has read the log writes to a number that another collects meanwhile.
#[test]
fn where_segments_are_collected_by_others_something_acknowledged_is_lost() {
    let rules = Rules {
        collects_as_owner: false,
        ..Rules::ALL
    };
    breaks(rules, DURABLE);
}

#[test]
fn without_regard_to_its_lease_an_owner_that_wakes_up_answers_with_what_was() {
    let rules = Rules {
        reads_under_lease: false,
        ..Rules::ALL
    };
    breaks(rules, FRESH);
}

#[test]
fn a_gateway_that_keeps_its_buckets_over_a_lease_that_ended_answers_with_what_was() {
    let rules = Rules {
        drops_buckets: false,
        ..Rules::ALL
    };
    breaks(rules, FRESH);
}

#[test]
fn where_a_bucket_is_taken_under_a_lease_that_lasts_its_owner_answers_with_what_was() {
    let rules = Rules {
        waits_for_leases: false,
        ..Rules::ALL
    };
    breaks(rules, FRESH);
}

#[test]
fn an_owner_that_takes_what_exists_for_its_own_loses_writes() {
    let rules = Rules {
        compares_what_exists: false,
        looks_after_writes: false,
        ..Rules::ALL
    };
    breaks(rules, DURABLE);
}
