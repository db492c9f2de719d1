//! Patterns: texts with `*`, `?` and variables.
//!
//! A pattern is cut at each `*` into runs. The first run must begin the text and the last one end
//! it; those between are looked for from left to right, each as early as possible, which finds a
//! match if there is one. A run of plain text is found in linear time; one with `?` in at most its
//! length times a 64th of the text's, and not at all in a very long one. A `?` is one character of
//! Unicode.

mod gaps;

use self::gaps::end_of_first;
use super::key::Key;
use super::value::Values;
use super::variable::{PatternError, Variable};
use crate::limits::{PATTERN_BYTES, SEARCHED_BYTES};
use crate::truth::Truth;

/// What has a meaning of its own in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syntax {
    /// `*` and `?`.
    pub(crate) wildcards: bool,
    /// `${…}`.
    pub(crate) variables: bool,
}

/// A text with wildcards and variables.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    runs: Vec<Run>,
    has_variables: bool,
}

/// What stands between two `*`.
type Run = Vec<Piece>;

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    OneCharacter,
    Variable(Variable),
}

impl Pattern {
    pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Self, PatternError> {
        if text.len() > PATTERN_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        let mut pattern = Self {
            runs: vec![Run::new()],
            has_variables: false,
        };
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            rest = match character {
                '*' if syntax.wildcards => {
                    pattern.runs.push(Run::new());
                    after
                }
                '?' if syntax.wildcards => pattern.push(Piece::OneCharacter, after),
                '$' if syntax.variables && after.starts_with('{') => {
                    let (variable, rest) = Variable::parse(&after[1..])?;
                    pattern.has_variables = true;
                    pattern.push(Piece::Variable(variable), rest)
                }
                _ => {
                    pattern.push_text(character);
                    after
                }
            };
        }
        Ok(pattern)
    }

    fn push<'a>(&mut self, piece: Piece, rest: &'a str) -> &'a str {
        if let Some(run) = self.runs.last_mut() {
            run.push(piece);
        }
        rest
    }

    fn push_text(&mut self, character: char) {
        if let Some(Piece::Text(text)) = self.runs.last_mut().and_then(|run| run.last_mut()) {
            text.push(character);
        } else {
            self.push(Piece::Text(character.to_string()), "");
        }
    }

    /// The keys of its variables.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let pieces = self.runs.iter().flatten();
        pieces.filter_map(|piece| match piece {
            Piece::Variable(Variable::Key { key, .. }) => Some(key),
            Piece::Variable(Variable::Character(_)) | Piece::Text(_) | Piece::OneCharacter => None,
        })
    }

    /// Whether it stands for one text alone.
    pub(crate) fn is_fixed(&self) -> bool {
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        self.runs.len() == 1 && self.runs[0].iter().all(is_text)
    }

    /// Whether the text is what the pattern stands for in a request with these values. Unknown if
    /// that depends on a variable without a value, or would take too long.
    pub(crate) fn matches(&self, text: &str, values: &dyn Values) -> Truth {
        // `*` alone, as most resources have it.
        if let [first, last] = self.runs.as_slice()
            && first.is_empty()
            && last.is_empty()
        {
            return Truth::Yes;
        }
        if text.len() > SEARCHED_BYTES && self.has_gaps() {
            return Truth::Unknown;
        }
        if self.has_all_values(values) {
            return runs_match(&self.runs, text, values).into();
        }
        if runs_match(&self.opened(values), text, values) {
            Truth::Unknown
        } else {
            Truth::No
        }
    }

    /// Whether it may have `?` between two `*`. A variable without a value is such a one.
    fn has_gaps(&self) -> bool {
        let between = match self.runs.as_slice() {
            runs if self.has_variables => runs,
            [_, between @ .., _] => between,
            _ => &[],
        };
        let mut pieces = between.iter().flatten();
        pieces.any(|piece| matches!(piece, Piece::OneCharacter))
    }

    fn has_all_values(&self, values: &dyn Values) -> bool {
        let has_value = |piece: &Piece| match piece {
            Piece::Variable(variable) => variable.text(values).is_some(),
            Piece::Text(_) | Piece::OneCharacter => true,
        };
        !self.has_variables || self.runs.iter().flatten().all(has_value)
    }

    /// The texts that it stands for, without regard to case.
    pub(crate) fn equals_ignoring_case(&self, text: &str, values: &dyn Values) -> Truth {
        let mut expected = String::new();
        for piece in self.runs.iter().flatten() {
            match piece {
                Piece::Text(text) => expected.push_str(text),
                Piece::OneCharacter => expected.push('?'),
                Piece::Variable(variable) => match variable.text(values) {
                    Some(text) => expected.push_str(&text),
                    None => return Truth::Unknown,
                },
            }
        }
        // No text gets longer or shorter by that much; a long one is not gone through for each.
        if text.len() > 8 * expected.len() {
            return Truth::No;
        }
        let lower = |text: &str| {
            text.chars()
                .flat_map(char::to_lowercase)
                .collect::<String>()
        };
        (lower(&expected) == lower(text)).into()
    }

    /// The runs, with a `*` in place of each variable that has no value.
    fn opened(&self, values: &dyn Values) -> Vec<Run> {
        let is_open = |piece: &Piece| match piece {
            Piece::Variable(variable) => variable.text(values).is_none(),
            Piece::Text(_) | Piece::OneCharacter => false,
        };
        let runs = self.runs.iter().flat_map(|run| run.split(is_open));
        runs.map(<[Piece]>::to_vec).collect()
    }
}

fn runs_match(runs: &[Run], text: &str, values: &dyn Values) -> bool {
    let Some((first, others)) = runs.split_first() else {
        return text.is_empty();
    };
    let Some(rest) = without_prefix(first, text, values) else {
        return false;
    };
    let Some((last, between)) = others.split_last() else {
        return rest.is_empty();
    };
    let Some(mut rest) = without_suffix(last, rest, values) else {
        return false;
    };
    between
        .iter()
        .all(|run| match behind_first(run, rest, values) {
            Some(behind) => {
                rest = behind;
                true
            }
            None => false,
        })
}

/// What follows the run, where the text begins with it.
fn without_prefix<'a>(run: &Run, text: &'a str, values: &dyn Values) -> Option<&'a str> {
    run.iter().try_fold(text, |rest, piece| match piece {
        Piece::Text(text) => rest.strip_prefix(text.as_str()),
        Piece::OneCharacter => {
            let mut characters = rest.chars();
            characters.next().map(|_| characters.as_str())
        }
        Piece::Variable(variable) => rest.strip_prefix(variable.text(values)?.as_ref()),
    })
}

/// What comes before the run, where the text ends with it.
fn without_suffix<'a>(run: &Run, text: &'a str, values: &dyn Values) -> Option<&'a str> {
    run.iter().rev().try_fold(text, |rest, piece| match piece {
        Piece::Text(text) => rest.strip_suffix(text.as_str()),
        Piece::OneCharacter => {
            let mut characters = rest.chars();
            characters.next_back().map(|_| characters.as_str())
        }
        Piece::Variable(variable) => rest.strip_suffix(variable.text(values)?.as_ref()),
    })
}

/// What follows the first place where the run stands.
fn behind_first<'a>(run: &Run, text: &'a str, values: &dyn Values) -> Option<&'a str> {
    let behind = |plain: &str| text.find(plain).map(|at| &text[at + plain.len()..]);
    match run.as_slice() {
        [] => Some(text),
        [Piece::Text(plain)] => behind(plain),
        pieces if pieces.contains(&Piece::OneCharacter) => {
            let wanted = characters(run, values)?;
            end_of_first(&wanted, text).map(|end| &text[end..])
        }
        _ => {
            let wanted: Option<String> = characters(run, values)?.into_iter().collect();
            behind(&wanted?)
        }
    }
}

/// The characters that the run stands for; `None` is any.
fn characters(run: &Run, values: &dyn Values) -> Option<Vec<Option<char>>> {
    let mut characters = Vec::new();
    for piece in run {
        match piece {
            Piece::Text(text) => characters.extend(text.chars().map(Some)),
            Piece::OneCharacter => characters.push(None),
            Piece::Variable(variable) => {
                characters.extend(variable.text(values)?.chars().map(Some));
            }
        }
    }
    Some(characters)
}

#[cfg(test)]
mod tests;
