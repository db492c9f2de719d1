//! Why a text is no bucket policy: what S3 answers as `MalformedPolicy`.

use std::fmt;

use thiserror::Error;

use crate::limits::{POLICY_BYTES, QUOTED_CHARS, TEXT_BYTES};

/// Why a text is no policy of a bucket, and where. `Display` is a sentence in AWS's words, with the
/// place behind it; it repeats no resource and no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{fault}{place}")]
pub struct PolicyError {
    /// What is wrong.
    pub fault: Fault,
    /// Where.
    pub place: Place,
}

/// Where in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The statement's number, from 1, where it is in one.
    pub statement: Option<usize>,
    /// The element, where it is in one.
    pub element: Option<Element>,
}

/// An element of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the elements are called so in policies")]
pub enum Element {
    Version,
    Id,
    Statement,
    Sid,
    Effect,
    Principal,
    NotPrincipal,
    Action,
    NotAction,
    Resource,
    NotResource,
    Condition,
}

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Longer than is looked at.
    #[error("Policy exceeds the maximum allowed document size: {text_bytes} bytes, {TEXT_BYTES}")]
    TextTooLong {
        /// The text's length, in bytes.
        text_bytes: usize,
    },
    /// Longer than AWS allows.
    #[error(
        "Normalized policy document exceeds the maximum allowed size of {POLICY_BYTES} bytes: it \
         has {policy_bytes} without white space"
    )]
    TooLong {
        /// The policy's length without white space, in bytes.
        policy_bytes: usize,
    },
    /// No JSON of an object.
    #[error("Policies must be valid JSON and the first byte must be '{{'")]
    NoObject,
    /// No JSON, or JSON that leaves open what is meant.
    #[error("This policy contains invalid Json: {reason}")]
    Json {
        /// What and where, by line and column.
        reason: String,
    },
    /// Of another type than the grammar has there.
    #[error("Policy document has an element of a wrong type: expected {expected}")]
    Type {
        /// What the grammar has there.
        expected: &'static str,
    },
    /// A field that the grammar doesn't have there.
    #[error("Unknown field {name}")]
    UnknownField {
        /// How it is called.
        name: Quoted,
    },
    /// A field that must be there.
    #[error("Missing required field {name}")]
    MissingField {
        /// How it is called.
        name: &'static str,
    },
    /// Two fields of which one may be there.
    #[error("{first} and {second} can't stand in one statement")]
    BothFields {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A list without values, or no statement at all, in this element.
    #[error("{}", without_values(.0))]
    Empty(Element),
    /// Too many statements.
    #[error("Policy has {count} statements, more than {most}", most = crate::limits::STATEMENTS)]
    Statements {
        /// How many there are.
        count: usize,
    },
    /// A version of the language that there isn't.
    #[error("The policy must contain a valid version string: 2008-10-17 or 2012-10-17")]
    Version,
    /// Neither `Allow` nor `Deny`.
    #[error("Invalid effect: it is Allow or Deny")]
    Effect,
    /// No principal, or none that may be named. Which of the two is not told.
    #[error(
        "Invalid principal in policy: {name}; it is *, this account, a canonical user, or with AWS \
         arn:aws:iam::ACCOUNT:user/NAME or the id of a subject that the bucket may be shared with"
    )]
    Principal {
        /// As written.
        name: Quoted,
    },
    /// `NotPrincipal` allows more with each principal that is named.
    #[error("Allow with NotPrincipal is not allowed; use Deny, or name principals")]
    AllowNotPrincipal,
    /// An action that S3 doesn't have.
    #[error("Policy has invalid action: {name}")]
    Action {
        /// As written.
        name: Quoted,
    },
    /// A resource that is not the bucket or in it.
    #[error("Policy has invalid resource: it must be arn:aws:s3:::BUCKET or begin with it and /")]
    Resource,
    /// An action of objects in a statement without objects, or the like.
    #[error("Action does not apply to any resource(s) in statement: {name}")]
    ActionResource {
        /// The action, as written.
        name: Quoted,
    },
    /// An operator that there isn't.
    #[error("Invalid Condition type : {name}")]
    Operator {
        /// As written.
        name: Quoted,
    },
    /// A condition key that there isn't.
    #[error("Policy has an invalid condition key: {name}")]
    Key {
        /// As written.
        name: Quoted,
    },
    /// An operator that doesn't fit its key.
    #[error("Condition type {operator} does not fit the condition key {key}, which is {kind}")]
    OperatorKey {
        /// The operator.
        operator: Quoted,
        /// The key.
        key: Quoted,
        /// What its values are.
        kind: &'static str,
    },
    /// A value that doesn't fit its operator.
    #[error("Value of the condition key {key} is not {expected}")]
    Value {
        /// The key.
        key: Quoted,
        /// What it must be.
        expected: &'static str,
    },
    /// A key that no request has which the statement is about.
    #[error("Conditions do not apply to combination of actions and resources in statement: {key}")]
    KeyResource {
        /// The key.
        key: Quoted,
    },
    /// A variable that is not ended, or of a key that there isn't.
    #[error("Policy has an invalid policy variable: ${{...}} takes one condition key of text")]
    Variable,
    /// Longer than a pattern may be.
    #[error("A value has {bytes} bytes, more than {most}", most = crate::limits::PATTERN_BYTES)]
    PatternTooLong {
        /// Its length, in bytes.
        bytes: usize,
    },
}

/// AWS has no word for an empty list: it looks for what the element must hold.
fn without_values(element: &Element) -> &'static str {
    match element {
        Element::Statement => "Could not parse the policy: Statement is empty!",
        Element::Principal | Element::NotPrincipal => {
            "Invalid principal in policy: a list must hold a value"
        }
        Element::Action | Element::NotAction => {
            "Policy has invalid action: a list must hold a value"
        }
        Element::Resource | Element::NotResource => {
            "Policy has invalid resource: a list must hold a value"
        }
        _ => "A list must hold a value",
    }
}

/// A name as it was written, cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl From<&str> for Quoted {
    fn from(name: &str) -> Self {
        Self(name.chars().take(QUOTED_CHARS).collect())
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.statement, self.element) {
            (None, None) => Ok(()),
            (Some(number), None) => write!(f, " (statement {number})"),
            (None, Some(element)) => write!(f, " ({element:?})"),
            (Some(number), Some(element)) => write!(f, " (statement {number}, {element:?})"),
        }
    }
}

impl Fault {
    /// The fault, at an element of the policy.
    pub(crate) fn at(self, element: Element) -> PolicyError {
        let place = Place {
            statement: None,
            element: Some(element),
        };
        PolicyError { fault: self, place }
    }
}

impl PolicyError {
    /// The same, in the statement of this number, from 1.
    pub(crate) fn in_statement(mut self, number: usize) -> Self {
        self.place.statement = Some(number);
        self
    }
}

impl From<Fault> for PolicyError {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            place: Place::default(),
        }
    }
}
