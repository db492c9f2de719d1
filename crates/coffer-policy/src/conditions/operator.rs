//! Condition operators, by name.
//!
//! *IAM User Guide*, Condition operators
//! (`IAM/latest/UserGuide/reference_policies_elements_condition_operators.html`) and Set operators
//! for multivalued context keys.

use super::key::{Key, Kind};

/// How many of a request's values must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Qualifier {
    /// The key has one value.
    None,
    /// `ForAllValues:`, which holds where there is no value.
    All,
    /// `ForAnyValue:`, which doesn't.
    Any,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    TextEquals,
    TextEqualsIgnoringCase,
    TextLike,
    Number(Order),
    Date(Order),
    Bool,
    Bytes,
    Address,
    Arn,
    Null,
}

/// Which order of the request's value to the policy's holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An operator as a policy writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(crate) qualifier: Qualifier,
    pub(crate) comparison: Comparison,
    pub(crate) negated: bool,
    pub(crate) if_exists: bool,
}

/// The names, without qualifier and `IfExists`; whether the comparison is negated.
const NAMES: [(&str, Comparison, bool); 27] = [
    ("StringEquals", Comparison::TextEquals, false),
    ("StringNotEquals", Comparison::TextEquals, true),
    (
        "StringEqualsIgnoreCase",
        Comparison::TextEqualsIgnoringCase,
        false,
    ),
    (
        "StringNotEqualsIgnoreCase",
        Comparison::TextEqualsIgnoringCase,
        true,
    ),
    ("StringLike", Comparison::TextLike, false),
    ("StringNotLike", Comparison::TextLike, true),
    ("NumericEquals", Comparison::Number(Order::Equal), false),
    ("NumericNotEquals", Comparison::Number(Order::Equal), true),
    ("NumericLessThan", Comparison::Number(Order::Less), false),
    (
        "NumericLessThanEquals",
        Comparison::Number(Order::LessOrEqual),
        false,
    ),
    (
        "NumericGreaterThan",
        Comparison::Number(Order::Greater),
        false,
    ),
    (
        "NumericGreaterThanEquals",
        Comparison::Number(Order::GreaterOrEqual),
        false,
    ),
    ("DateEquals", Comparison::Date(Order::Equal), false),
    ("DateNotEquals", Comparison::Date(Order::Equal), true),
    ("DateLessThan", Comparison::Date(Order::Less), false),
    (
        "DateLessThanEquals",
        Comparison::Date(Order::LessOrEqual),
        false,
    ),
    ("DateGreaterThan", Comparison::Date(Order::Greater), false),
    (
        "DateGreaterThanEquals",
        Comparison::Date(Order::GreaterOrEqual),
        false,
    ),
    ("Bool", Comparison::Bool, false),
    ("BinaryEquals", Comparison::Bytes, false),
    ("IpAddress", Comparison::Address, false),
    ("NotIpAddress", Comparison::Address, true),
    ("ArnEquals", Comparison::Arn, false),
    ("ArnLike", Comparison::Arn, false),
    ("ArnNotEquals", Comparison::Arn, true),
    ("ArnNotLike", Comparison::Arn, true),
    ("Null", Comparison::Null, false),
];

impl Operator {
    /// The operator of this name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (qualifier, text) = if let Some(rest) = text.strip_prefix("ForAllValues:") {
            (Qualifier::All, rest)
        } else if let Some(rest) = text.strip_prefix("ForAnyValue:") {
            (Qualifier::Any, rest)
        } else {
            (Qualifier::None, text)
        };
        let (name, if_exists) = match text.strip_suffix("IfExists") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let &(_, comparison, negated) = NAMES.iter().find(|(known, ..)| *known == name)?;
        // `Null` is about being there itself.
        let is_plain = qualifier == Qualifier::None && !if_exists;
        (comparison != Comparison::Null || is_plain).then_some(Self {
            qualifier,
            comparison,
            negated,
            if_exists,
        })
    }

    /// Whether it can compare the values of this key. Texts are compared as texts, also numbers and
    /// truth values; a date or an address has too many spellings for that.
    pub(crate) fn fits(self, key: &Key) -> bool {
        match (self.comparison, key.kind()) {
            (
                Comparison::TextEquals | Comparison::TextEqualsIgnoringCase | Comparison::TextLike,
                Kind::Text | Kind::Arn | Kind::Number | Kind::Bool,
            )
            | (Comparison::Number(_), Kind::Number)
            | (Comparison::Date(_), Kind::Date)
            | (Comparison::Bool, Kind::Bool)
            | (Comparison::Bytes, Kind::Text)
            | (Comparison::Address, Kind::Address)
            | (Comparison::Arn, Kind::Arn)
            | (Comparison::Null, _) => true,
            (Comparison::Number(_), _) => *key == Key::EpochTime,
            _ => false,
        }
    }
}

impl Order {
    pub(crate) fn holds<T: Ord>(self, of_request: &T, of_policy: &T) -> bool {
        match self {
            Self::Equal => of_request == of_policy,
            Self::Less => of_request < of_policy,
            Self::LessOrEqual => of_request <= of_policy,
            Self::Greater => of_request > of_policy,
            Self::GreaterOrEqual => of_request >= of_policy,
        }
    }
}
