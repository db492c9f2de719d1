//! Policy variables: `${aws:username}` stands for the name of who asks.
//!
//! *IAM User Guide*, Policy variables
//! (`IAM/latest/UserGuide/reference_policies_variables.html`): `${KEY}`, `${KEY, 'DEFAULT'}`, and
//! `${*}`, `${?}`, `${$}` for the characters themselves.

use std::borrow::Cow;

use super::key::{Key, Kind};
use super::value::{Value, Values};

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// A variable that is not ended, or of no key.
    Variable,
    /// Longer than a pattern may be.
    TooLong(usize),
}

/// What stands between `${` and `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    Character(char),
    Key { key: Key, default: Option<String> },
}

impl Variable {
    /// Reads what follows `${`, and gives what follows the variable's end.
    pub(crate) fn parse(text: &str) -> Result<(Self, &str), PatternError> {
        for character in ['*', '?', '$'] {
            let rest = text.strip_prefix(character);
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('}')) {
                return Ok((Self::Character(character), rest));
            }
        }
        let (name, default, rest) = match text.find(['}', ',']) {
            Some(at) if text[at..].starts_with('}') => (&text[..at], None, &text[at + 1..]),
            Some(at) => {
                let quoted = text[at + 1..].trim_start_matches(' ').strip_prefix('\'');
                let (default, rest) = quoted
                    .and_then(|quoted| quoted.split_once("'}"))
                    .ok_or(PatternError::Variable)?;
                (&text[..at], Some(default.to_owned()), rest)
            }
            None => return Err(PatternError::Variable),
        };
        let has_text = |key: &Key| {
            matches!(key.kind(), Kind::Text | Kind::Arn) && *key != Key::RequestObjectTagKeys
        };
        let key = Key::parse(name).filter(has_text);
        let key = key.ok_or(PatternError::Variable)?;
        Ok((Self::Key { key, default }, rest))
    }

    /// What it stands for in this request; none where it has no value and no default.
    pub(crate) fn text<'a>(&'a self, values: &'a dyn Values) -> Option<Cow<'a, str>> {
        match self {
            Self::Character('*') => Some(Cow::Borrowed("*")),
            Self::Character('?') => Some(Cow::Borrowed("?")),
            Self::Character(_) => Some(Cow::Borrowed("$")),
            Self::Key { key, default } => match values.value(key) {
                Some(Value::Text(text)) => Some(text),
                // As it was sent: what is spelled otherwise means the same.
                Some(Value::Spelled { meant, also }) if also.is_empty() => meant.into_iter().next(),
                Some(_) => None,
                None => default.as_deref().map(Cow::Borrowed),
            },
        }
    }
}
