//! A request, as far as a policy asks for it.

use crate::conditions::{Timestamp, Values};
use crate::names::Action;

/// Who asks what. One operation may be several requests: `CopyObject` reads and writes, a deletion
/// under governance also bypasses it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Who asks.
    pub requester: Requester<'a>,
    /// What for.
    pub action: Action,
    /// Of what.
    pub resource: Resource<'a>,
    /// When.
    pub time: Timestamp,
    /// All else that conditions may ask.
    pub values: &'a dyn Values,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester<'a> {
    /// Who signed nothing.
    Anonymous,
    /// Who signed with a subject's access key.
    Subject(Identity<'a>),
}

/// A subject of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The text of its id, which principals are compared with: `aws:userid`. Who asks often has
    /// no other at hand.
    pub id: &'a str,
    /// How it is called now: `aws:username`.
    pub name: &'a str,
    /// Whether it owns the bucket.
    pub owns_bucket: bool,
}

/// Of what: the policy's bucket, or an object in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    /// The bucket.
    Bucket,
    /// The object of this name.
    Object(&'a str),
}

impl<'a> Resource<'a> {
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::Bucket => None,
            Self::Object(name) => Some(name),
        }
    }
}
