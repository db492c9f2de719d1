//! Patterns against what they mean.

use proptest::prelude::*;

use super::*;
use crate::conditions::{Key, ListedValues, NoValues};

const WILD: Syntax = Syntax {
    wildcards: true,
    variables: false,
};

const ALL: Syntax = Syntax {
    wildcards: true,
    variables: true,
};

fn pattern(text: &str, syntax: Syntax) -> Pattern {
    Pattern::parse(text, syntax).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn matches(pattern_text: &str, text: &str) -> bool {
    pattern(pattern_text, WILD).matches(text, &NoValues) == Truth::Yes
}

/// What a pattern means, in the plainest words; exponential in the number of `*`.
fn means(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=text.len()).any(|skipped| means(rest, &text[skipped..])),
        (['?', rest @ ..], [_, others @ ..]) => means(rest, others),
        ([one, rest @ ..], [other, others @ ..]) => one == other && means(rest, others),
        _ => false,
    }
}

#[test]
fn wildcards_stand_for_any_text_and_any_character() {
    for (pattern, text) in [
        ("", ""),
        ("*", ""),
        ("*", "a/b"),
        ("a*", "a"),
        ("a*b*c", "abbc"),
        ("*b", "aab"),
        ("a?c", "aéc"),
        ("??", "ab"),
        ("*?*", "x"),
        ("a**b", "ab"),
        ("*.jpg", "a.jpg.jpg"),
        ("?*?", "ab"),
    ] {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [
        ("", "a"),
        ("?", ""),
        ("a*a", "a"),
        ("ab*bc", "abc"),
        ("a?c", "ac"),
        ("*?*", ""),
        ("a*b*c", "acb"),
        ("A", "a"),
    ] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn without_their_syntax_characters_stand_for_themselves() {
    let plain = Syntax {
        wildcards: false,
        variables: false,
    };
    for text in ["a*", "a?", "${aws:username}", "$", "${"] {
        let pattern = pattern(text, plain);
        assert!(pattern.is_fixed());
        assert_eq!(pattern.matches(text, &NoValues), Truth::Yes, "{text}");
        assert_eq!(pattern.matches("ab", &NoValues), Truth::No, "{text}");
    }
}

#[test]
fn variables_stand_for_values_as_they_are() {
    let mut values = ListedValues::default();
    values.insert(Key::UserName, "a*n");
    let home = pattern("home/${AWS:UserName}/*", ALL);
    assert!(!home.is_fixed());
    assert_eq!(home.matches("home/a*n/x", &values), Truth::Yes);
    assert_eq!(
        home.matches("home/ann/x", &values),
        Truth::No,
        "no wildcard of the value's"
    );
    let special = pattern("${*}${?}${$}*", ALL);
    assert_eq!(special.matches("*?$anything", &values), Truth::Yes);
    assert_eq!(special.matches("ab$", &values), Truth::No);
    assert_eq!(pattern("$x{", ALL).matches("$x{", &values), Truth::Yes);
}

#[test]
fn a_variable_without_a_value_leaves_it_open() {
    let home = pattern("home/${aws:username}/*", ALL);
    assert_eq!(home.matches("home/ann/x", &NoValues), Truth::Unknown);
    assert_eq!(home.matches("public/x", &NoValues), Truth::No);
    let guest = pattern("home/${aws:username, 'guest'}/*", ALL);
    assert_eq!(guest.matches("home/guest/x", &NoValues), Truth::Yes);
    assert_eq!(guest.matches("home/ann/x", &NoValues), Truth::No);
}

#[test]
fn what_is_no_variable_is_refused() {
    for text in [
        "${",
        "${}",
        "${aws:username",
        "${aws:nothing}",
        "${username}",
        "${aws:username, guest}",
        "${aws:username, 'guest}",
        "${s3:max-keys}",
        "${aws:CurrentTime}",
        "${ aws:username}",
        "${s3:RequestObjectTagKeys}",
    ] {
        assert_eq!(
            Pattern::parse(text, ALL).err(),
            Some(PatternError::Variable),
            "{text}"
        );
    }
    let long = "x".repeat(PATTERN_BYTES + 1);
    let error = Pattern::parse(&long, ALL).err();
    assert_eq!(error, Some(PatternError::TooLong(PATTERN_BYTES + 1)));
}

#[test]
fn the_worst_patterns_take_bounded_time() {
    let text = "a".repeat(1024);
    let begin = std::time::Instant::now();
    for worst in ["a*", "*a", "*a?", "?*", "a?*"] {
        let pattern = worst.repeat(PATTERN_BYTES / worst.len() - 1) + "b";
        assert!(!matches(&pattern, &text));
    }
    let run = format!("*{}b*", "a?".repeat(PATTERN_BYTES / 4));
    assert!(!matches(&run, &text));
    // A matcher that backtracks would not end at all.
    assert!(begin.elapsed().as_secs() < 20);
}

#[test]
fn a_long_text_is_not_searched_for_gaps() {
    let long = "a".repeat(SEARCHED_BYTES) + "b";
    let of = |text: &str| pattern(text, WILD).matches(&long, &NoValues);
    for (text, truth) in [
        ("*a?a*", Truth::Unknown),
        ("*a?c*", Truth::Unknown),
        ("a*b", Truth::Yes),
        ("?*?", Truth::Yes),
        ("*aa*a?", Truth::Yes),
        ("a*c*", Truth::No),
    ] {
        assert_eq!(of(text), truth, "{text}");
    }
    assert!(matches("*a?b*", &long[1..]));
    let ignoring =
        |text: &str, other: &str| pattern(text, WILD).equals_ignoring_case(other, &NoValues);
    assert_eq!(ignoring("kk", "\u{212a}\u{212a}"), Truth::Yes);
    assert_eq!(ignoring("a", &long), Truth::No);
}

proptest! {
    #[test]
    fn patterns_match_what_they_mean(pattern in "[ab*?é]{0,10}", text in "[abé]{0,12}") {
        let characters: Vec<char> = pattern.chars().collect();
        let of_text: Vec<char> = text.chars().collect();
        prop_assert_eq!(matches(&pattern, &text), means(&characters, &of_text));
    }

    #[test]
    fn long_runs_match_what_they_mean(
        run in "[ab?]{0,4}[a?]{60,140}[ab?]{0,2}",
        before in "[ab]{0,150}",
        behind in "[ab]{0,5}",
        flips in any::<bool>(),
    ) {
        let run = run.replace('?', if flips { "?" } else { "a" });
        let middle = run.replace('?', "b");
        let text = format!("{before}{middle}{behind}");
        let somewhere = format!("*{run}*");
        prop_assert!(matches(&somewhere, &text));
        for (pattern, text) in [
            (somewhere, format!("{before}{}", &middle[1..])),
            (format!("*{run}*{run}?*"), text),
        ] {
            let characters: Vec<char> = pattern.chars().collect();
            let of_text: Vec<char> = text.chars().collect();
            prop_assert_eq!(matches(&pattern, &text), means(&characters, &of_text));
        }
    }

    #[test]
    fn no_text_panics(pattern in ".{0,30}", text in ".{0,30}") {
        if let Ok(pattern) = Pattern::parse(&pattern, ALL) {
            pattern.matches(&text, &NoValues);
            pattern.equals_ignoring_case(&text, &NoValues);
        }
    }
}
