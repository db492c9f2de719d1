//! What a request has for a key.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use super::decimal::Decimal;
use super::key::Key;
use super::timestamp::Timestamp;

/// The value that a request has for a key.
#[derive(Clone, PartialEq)]
pub enum Value<'a> {
    /// A text; also an ARN.
    Text(Cow<'a, str>),
    /// Any number of texts: `s3:RequestObjectTagKeys`.
    Texts(Vec<Cow<'a, str>>),
    /// One text that can be written in several ways: `s3:x-amz-copy-source`, and headers of grants.
    /// A comparison that comes out by `also` alone is neither true nor false, so that nothing is
    /// allowed by it, and everything denied.
    Spelled {
        /// What says just this.
        meant: Vec<Cow<'a, str>>,
        /// What may say something else.
        also: Vec<Cow<'a, str>>,
    },
    /// A number: `s3:max-keys`, `s3:signatureAge` in milliseconds, `s3:TlsVersion` like 1.3.
    Number(Decimal),
    /// A time.
    Date(Timestamp),
    /// Yes or no.
    Bool(bool),
    /// An address.
    Address(IpAddr),
}

impl fmt::Debug for Value<'_> {
    /// What kind it is: a prefix or a copy's source is the name of an object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Texts(_) => "Texts",
            Self::Spelled { .. } => "Spelled",
            Self::Number(_) => "Number",
            Self::Date(_) => "Date",
            Self::Bool(_) => "Bool",
            Self::Address(_) => "Address",
        })
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// What a request has for each condition key, but for those of time, principal and account, which
/// [`evaluate`](crate::evaluate) knows. Asked only for keys that decide. For `s3:signatureAge` it
/// is when the request was signed, as a date: its age is that of the moment for which is asked.
pub trait Values {
    /// The value; none where the request has none, as a listing without a prefix has no
    /// `s3:prefix`. A value of another kind than [`Value`] gives for the key can't be compared: no
    /// statement allows by it, and one that denies does.
    fn value(&self, key: &Key) -> Option<Value<'_>>;
}

/// No values.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoValues;

impl Values for NoValues {
    fn value(&self, _key: &Key) -> Option<Value<'_>> {
        None
    }
}

/// Values in a list, for those who know all of them.
#[derive(Clone, Default)]
pub struct ListedValues<'a>(Vec<(Key, Value<'a>)>);

impl<'a> ListedValues<'a> {
    /// Adds what the request has for a key.
    pub fn insert(&mut self, key: Key, value: impl Into<Value<'a>>) {
        self.0.push((key, value.into()));
    }
}

impl Values for ListedValues<'_> {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        let found = self.0.iter().find(|(listed, _)| listed == key);
        found.map(|(_, value)| value.clone())
    }
}
