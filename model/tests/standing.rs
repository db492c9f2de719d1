//! Answers that stand are searched whole, and what breaks without each rule is found.

use coffer_model::{STANDS_AGAIN, STANDS_FRESH, Standers, StandingRules};
use stateright::Checker;

fn standers(rules: StandingRules, followers: u8) -> Standers {
    Standers {
        rules,
        followers,
        changes: 1,
        reads: 1,
    }
}

#[test]
fn no_read_by_an_answer_that_stands_is_stale() {
    let found = standers(StandingRules::ALL, 2).search();
    let (states, depth) = (found.unique_state_count(), found.max_depth());
    println!("{states} states, {depth} deep");
    assert!(found.is_done(), "not all was searched");
    found.assert_no_discovery(STANDS_FRESH);
    found.assert_any_discovery(STANDS_AGAIN);
}

#[test]
fn nor_is_one_after_two_changes() {
    let found = Standers {
        changes: 2,
        reads: 2,
        ..standers(StandingRules::ALL, 1)
    };
    let found = found.search();
    assert!(found.is_done(), "not all was searched");
    found.assert_no_discovery(STANDS_FRESH);
}

#[track_caller]
fn breaks(rules: StandingRules) {
    let found = standers(rules, 2).search();
    let path = found.discovery(STANDS_FRESH).expect("the search finds it");
    println!("{:?}", path.into_actions());
}

#[test]
fn without_waiting_for_what_was_told_it_is_answered_by_later() {
    breaks(StandingRules {
        waits: false,
        ..StandingRules::ALL
    });
}

#[test]
fn without_a_bridle_one_follower_shows_what_another_does_not_know() {
    breaks(StandingRules {
        bridles: false,
        ..StandingRules::ALL
    });
}

#[test]
fn what_is_told_while_changes_are_under_way_must_not_stand() {
    breaks(StandingRules {
        ends_at_changes: false,
        ..StandingRules::ALL
    });
}

#[test]
fn another_state_shows_what_others_do_not_know() {
    breaks(StandingRules {
        ends_with_state: false,
        ..StandingRules::ALL
    });
}

#[test]
fn so_it_does_by_an_answer_that_was_asked_for_before_it() {
    breaks(StandingRules {
        ignores_older: false,
        ..StandingRules::ALL
    });
}

#[test]
fn an_answer_that_counts_from_when_it_came_stands_too_long() {
    breaks(StandingRules {
        counts_from_asking: false,
        ..StandingRules::ALL
    });
}

#[test]
fn without_waiting_for_the_predecessor_what_that_told_is_answered_by() {
    breaks(StandingRules {
        waits_for_predecessor: false,
        ..StandingRules::ALL
    });
}
