//! Patterns of ARNs: six parts between colons, each compared on its own.
//!
//! *IAM User Guide*, Condition operators, ARN: a `*` doesn't reach over a colon into the next of
//! the six parts. The sixth may hold colons.

use super::key::Key;
use super::pattern::{Pattern, Syntax};
use super::value::Values;
use super::variable::PatternError;
use crate::truth::Truth;

/// How many parts an ARN has.
const PARTS: usize = 6;

/// A pattern for each part of an ARN.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ArnPattern(Vec<Pattern>);

impl ArnPattern {
    /// Reads a pattern; none where it has fewer than six parts.
    pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Option<Self>, PatternError> {
        let parts = split_outside_variables(text, syntax.variables);
        if parts.len() < PARTS {
            return Ok(None);
        }
        let patterns = parts.into_iter().map(|part| Pattern::parse(part, syntax));
        patterns
            .collect::<Result<_, _>>()
            .map(|parts| Some(Self(parts)))
    }

    /// The keys of its variables.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().flat_map(Pattern::keys)
    }

    /// Whether it stands for one ARN alone.
    pub(crate) fn is_fixed(&self) -> bool {
        self.0.iter().all(Pattern::is_fixed)
    }

    pub(crate) fn matches(&self, text: &str, values: &dyn Values) -> Truth {
        let parts: Vec<&str> = text.splitn(PARTS, ':').collect();
        if parts.len() < PARTS {
            return Truth::No;
        }
        let pairs = self.0.iter().zip(parts);
        Truth::all(pairs.map(|(pattern, part)| pattern.matches(part, values)))
    }
}

/// Up to six parts between colons; those of a variable's name divide nothing.
fn split_outside_variables(text: &str, variables: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut in_variable = false;
    for (at, character) in text.char_indices() {
        match character {
            '{' if variables && text[..at].ends_with('$') => in_variable = true,
            '}' => in_variable = false,
            ':' if !in_variable && parts.len() + 1 < PARTS => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::value::NoValues;

    const ALL: Syntax = Syntax {
        wildcards: true,
        variables: true,
    };

    #[test]
    fn parts_of_arns_are_compared_on_their_own() {
        let matches = |pattern: &str, text: &str| {
            let pattern = ArnPattern::parse(pattern, ALL).unwrap();
            pattern.map(|pattern| pattern.matches(text, &NoValues))
        };
        let user = "arn:aws:iam::111122223333:user/a:b";
        assert_eq!(matches("arn:aws:iam::*:user/*", user), Some(Truth::Yes));
        assert_eq!(matches("arn:*:*:*:*:*", user), Some(Truth::Yes));
        assert_eq!(
            matches("arn:aws:iam:*:user/*:b", user),
            Some(Truth::No),
            "not over a colon"
        );
        assert_eq!(
            matches("arn:aws:iam::111122223333:user", user),
            Some(Truth::No)
        );
        assert_eq!(
            matches("arn:aws:iam::*:user/*", "arn:aws:iam"),
            Some(Truth::No)
        );
        assert_eq!(matches("arn:aws:*", user), None, "fewer than six parts");
        let own = "arn:aws:iam::${aws:PrincipalAccount}:user/${aws:username}";
        assert_eq!(matches(own, user), Some(Truth::Unknown));
    }
}
