//! The values that a policy gives an operator, read for it.

use std::borrow::Cow;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;

use super::arn_pattern::ArnPattern;
use super::decimal::Decimal;
use super::key::Key;
use super::operator::{Comparison, Order};
use super::pattern::{Pattern, Syntax};
use super::timestamp::Timestamp;
use super::value::{Value, Values};
use super::variable::PatternError;
use crate::truth::Truth;

/// The values of one condition.
#[derive(Clone, PartialEq)]
pub(crate) enum Operands {
    Texts(Vec<Pattern>),
    TextsIgnoringCase(Vec<Pattern>),
    Arns(Vec<ArnPattern>),
    Numbers(Order, Vec<Decimal>),
    Dates(Order, Vec<Timestamp>),
    Bools(Vec<bool>),
    Bytes(Vec<Vec<u8>>),
    Networks(Vec<IpNet>),
    /// Whether the key must be missing.
    Null(Vec<bool>),
}

/// Why a value doesn't fit its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandError {
    Pattern(PatternError),
    /// It is not this.
    Not(&'static str),
}

impl Operands {
    /// Reads the values for a comparison. `variables`: whether the policy's version has them.
    pub(crate) fn parse(
        comparison: Comparison,
        texts: &[String],
        variables: bool,
    ) -> Result<Self, OperandError> {
        let patterns = |wildcards| {
            let syntax = Syntax {
                wildcards,
                variables,
            };
            let pattern = |text: &String| Pattern::parse(text, syntax);
            let patterns: Result<_, _> = texts.iter().map(pattern).collect();
            patterns.map_err(OperandError::Pattern)
        };
        match comparison {
            Comparison::TextEquals => patterns(false).map(Self::Texts),
            Comparison::TextLike => patterns(true).map(Self::Texts),
            Comparison::TextEqualsIgnoringCase => patterns(false).map(Self::TextsIgnoringCase),
            Comparison::Arn => arns(texts, variables).map(Self::Arns),
            Comparison::Number(order) => {
                let numbers = all(texts, Decimal::parse, "a number")?;
                Ok(Self::Numbers(order, numbers))
            }
            Comparison::Date(order) => {
                let dates = all(
                    texts,
                    Timestamp::parse,
                    "a date like 2026-11-23T00:00:00Z, or seconds since 1970",
                )?;
                Ok(Self::Dates(order, dates))
            }
            Comparison::Bool => all(texts, bool_of, "true or false").map(Self::Bools),
            Comparison::Null => all(texts, bool_of, "true or false").map(Self::Null),
            Comparison::Bytes => {
                let decoded = |text: &str| STANDARD.decode(text).ok();
                all(texts, decoded, "base64").map(Self::Bytes)
            }
            Comparison::Address => {
                let expected = "an IP address or a range like 203.0.113.0/24";
                all(texts, network, expected).map(Self::Networks)
            }
        }
    }

    /// Whether one of them matches this single value of a request.
    pub(crate) fn match_value(&self, value: &Value<'_>, values: &dyn Values) -> Truth {
        match (self, value) {
            (_, Value::Spelled { meant, also }) => {
                let matches = |text: &Cow<'_, str>| {
                    self.match_value(&Value::Text(Cow::Borrowed(text.as_ref())), values)
                };
                let perhaps = Truth::any(also.iter().map(matches)).min(Truth::Unknown);
                Truth::any(meant.iter().map(matches)).max(perhaps)
            }
            (Self::Bools(bools), Value::Bool(value)) => bools.contains(value).into(),
            (Self::Bytes(all), Value::Text(text)) => {
                all.iter().any(|bytes| bytes == text.as_bytes()).into()
            }
            (Self::Networks(networks), Value::Address(address)) => {
                let address = address.to_canonical();
                networks
                    .iter()
                    .any(|network| network.contains(&address))
                    .into()
            }
            (Self::Numbers(order, numbers), Value::Number(value)) => numbers
                .iter()
                .any(|number| order.holds(value, number))
                .into(),
            (Self::Numbers(order, numbers), Value::Date(time)) => {
                let value = Decimal::from(time.seconds());
                numbers
                    .iter()
                    .any(|number| order.holds(&value, number))
                    .into()
            }
            (Self::Dates(order, dates), Value::Date(value)) => {
                dates.iter().any(|date| order.holds(value, date)).into()
            }
            (_, Value::Number(number)) => self.match_text(&number.to_string(), values),
            (_, Value::Bool(true)) => self.match_text("true", values),
            (_, Value::Bool(false)) => self.match_text("false", values),
            (_, Value::Text(text)) => self.match_text(text, values),
            _ => Truth::Unknown,
        }
    }

    fn match_text(&self, text: &str, values: &dyn Values) -> Truth {
        match self {
            Self::Texts(patterns) => {
                Truth::any(patterns.iter().map(|pattern| pattern.matches(text, values)))
            }
            Self::TextsIgnoringCase(patterns) => {
                let equals = |pattern: &Pattern| pattern.equals_ignoring_case(text, values);
                Truth::any(patterns.iter().map(equals))
            }
            Self::Arns(patterns) => {
                Truth::any(patterns.iter().map(|pattern| pattern.matches(text, values)))
            }
            _ => Truth::Unknown,
        }
    }

    /// The keys of the variables in them.
    pub(crate) fn keys(&self) -> Vec<&Key> {
        match self {
            Self::Texts(patterns) | Self::TextsIgnoringCase(patterns) => {
                patterns.iter().flat_map(Pattern::keys).collect()
            }
            Self::Arns(patterns) => patterns.iter().flat_map(ArnPattern::keys).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether they are values that stand for themselves alone, without wildcard and variable.
    pub(crate) fn are_fixed(&self) -> bool {
        match self {
            Self::Texts(patterns) | Self::TextsIgnoringCase(patterns) => {
                patterns.iter().all(Pattern::is_fixed)
            }
            Self::Arns(patterns) => patterns.iter().all(ArnPattern::is_fixed),
            _ => true,
        }
    }
}

fn all<T>(
    texts: &[String],
    parse: impl Fn(&str) -> Option<T>,
    expected: &'static str,
) -> Result<Vec<T>, OperandError> {
    let parsed: Option<Vec<T>> = texts.iter().map(|text| parse(text)).collect();
    parsed.ok_or(OperandError::Not(expected))
}

fn arns(texts: &[String], variables: bool) -> Result<Vec<ArnPattern>, OperandError> {
    let syntax = Syntax {
        wildcards: true,
        variables,
    };
    let pattern = |text: &String| {
        let pattern = ArnPattern::parse(text, syntax).map_err(OperandError::Pattern)?;
        pattern.ok_or(OperandError::Not("an ARN"))
    };
    texts.iter().map(pattern).collect()
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// An address, or a range; bits behind its prefix don't count.
fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = text.parse::<IpNet>().ok().or_else(address)?;
    Some(network.trunc())
}
