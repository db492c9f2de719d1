//! A condition: an operator, a key, and values.

use std::iter;

use super::key::Key;
use super::operands::{OperandError, Operands};
use super::operator::{Operator, Qualifier};
use super::value::{Value, Values};
use super::variable::PatternError;
use crate::error::Fault;
use crate::truth::Truth;

/// One key under one operator.
#[derive(Clone, PartialEq)]
pub(crate) struct Condition {
    /// The operator and the key as the policy writes them.
    pub(crate) operator_text: String,
    pub(crate) key_text: String,
    /// The values as the policy writes them.
    pub(crate) texts: Vec<String>,
    pub(crate) operator: Operator,
    pub(crate) key: Key,
    pub(crate) operands: Operands,
}

impl Condition {
    /// Reads a condition, and sees that operator, key and values fit each other. `variables`:
    /// whether the policy's version has them.
    pub(crate) fn parse(
        operator_text: &str,
        key_text: &str,
        texts: Vec<String>,
        variables: bool,
    ) -> Result<Self, Fault> {
        let operator = Operator::parse(operator_text).ok_or_else(|| Fault::Operator {
            name: operator_text.into(),
        })?;
        let key = Key::parse(key_text).ok_or_else(|| Fault::Key {
            name: key_text.into(),
        })?;
        if !operator.fits(&key) {
            return Err(Fault::OperatorKey {
                operator: operator_text.into(),
                key: key_text.into(),
                kind: key.kind().name(),
            });
        }
        let operands = Operands::parse(operator.comparison, &texts, variables);
        let operands = operands.map_err(|error| match error {
            OperandError::Pattern(PatternError::Variable) => Fault::Variable,
            OperandError::Pattern(PatternError::TooLong(bytes)) => Fault::PatternTooLong { bytes },
            OperandError::Not(expected) => Fault::Value {
                key: key_text.into(),
                expected,
            },
        })?;
        Ok(Self {
            operator_text: operator_text.to_owned(),
            key_text: key_text.to_owned(),
            texts,
            operator,
            key,
            operands,
        })
    }

    /// The keys that it asks a request for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        iter::once(&self.key).chain(self.operands.keys())
    }

    /// Whether it holds in a request with these values.
    pub(crate) fn holds(&self, values: &dyn Values) -> Truth {
        let found = values.value(&self.key);
        let found = match found {
            Some(Value::Texts(texts)) if texts.is_empty() => None,
            other => other,
        };
        match (&self.operands, found) {
            (Operands::Null(missing), found) => missing.contains(&found.is_none()).into(),
            (_, None) => self.holds_without_value(),
            (_, Some(Value::Texts(texts))) => {
                let all = texts.into_iter().map(Value::Text);
                self.holds_for(all, values)
            }
            (_, Some(value)) => self.holds_for([value], values),
        }
    }

    /// A key that is missing matches nothing, so that a negated operator holds; `IfExists` holds,
    /// and `ForAllValues` of no values. `ForAnyValue` with `IfExists`: the manual has it hold, and
    /// in practice it is said not to, so it is neither.
    fn holds_without_value(&self) -> Truth {
        match self.operator.qualifier {
            Qualifier::All => Truth::Yes,
            Qualifier::Any if self.operator.if_exists => Truth::Unknown,
            Qualifier::Any => Truth::No,
            Qualifier::None => (self.operator.if_exists || self.operator.negated).into(),
        }
    }

    fn holds_for<'a>(
        &self,
        all: impl IntoIterator<Item = Value<'a>>,
        values: &dyn Values,
    ) -> Truth {
        let negated = self.operator.negated;
        let matches = all
            .into_iter()
            .map(|value| self.operands.match_value(&value, values));
        match self.operator.qualifier {
            Qualifier::All => Truth::all(matches.map(|hit| hit.not_if(negated))),
            Qualifier::Any => Truth::any(matches.map(|hit| hit.not_if(negated))),
            Qualifier::None => Truth::any(matches).not_if(negated),
        }
    }
}

#[cfg(test)]
mod tests;
