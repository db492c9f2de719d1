//! Reads by gateways that follow are searched whole, and what breaks without each rule is found.

use coffer_model::{ANSWERED, FRESH_READS, ReadRules, Readers, TAKEN};
use stateright::Checker;

fn readers(rules: ReadRules) -> Readers {
    Readers {
        rules,
        followers: 1,
        writes: 1,
        reads: 2,
    }
}

#[test]
fn no_read_is_stale_and_nothing_is_answered_that_was_taken_away() {
    let found = readers(ReadRules::ALL).search();
    let (states, depth) = (found.unique_state_count(), found.max_depth());
    println!("{states} states, {depth} deep");
    assert!(found.is_done(), "not all was searched");
    found.assert_no_discovery(FRESH_READS);
    found.assert_no_discovery(TAKEN);
    found.assert_any_discovery(ANSWERED);
}

#[track_caller]
fn breaks(rules: ReadRules, property: &'static str) {
    let found = readers(rules).search();
    let path = found.discovery(property).expect("the search finds it");
    println!("{property}: {:?}", path.into_actions());
}

#[test]
fn without_a_question_of_its_own_a_read_is_stale() {
    let rules = ReadRules {
        asks_anew: false,
        ..ReadRules::ALL
    };
    breaks(rules, FRESH_READS);
}

#[test]
fn without_the_end_of_answers_what_was_taken_away_goes_on() {
    let rules = ReadRules {
        ends_answers: false,
        ..ReadRules::ALL
    };
    breaks(rules, TAKEN);
}

#[test]
fn without_a_state_that_has_the_act_one_that_has_not_may_be_answered_by() {
    let rules = ReadRules {
        settles_with_state: false,
        ..ReadRules::ALL
    };
    breaks(rules, TAKEN);
}

#[test]
fn without_waiting_for_those_who_have_not_settled_they_go_on() {
    let rules = ReadRules {
        waits_for_followers: false,
        ..ReadRules::ALL
    };
    breaks(rules, TAKEN);
}

#[test]
fn without_waiting_for_the_predecessor_what_it_permitted_goes_on() {
    let rules = ReadRules {
        waits_for_terms: false,
        ..ReadRules::ALL
    };
    breaks(rules, TAKEN);
}

#[test]
fn a_permission_that_counts_from_its_answer_lasts_too_long() {
    let rules = ReadRules {
        counts_from_asking: false,
        ..ReadRules::ALL
    };
    breaks(rules, TAKEN);
}
