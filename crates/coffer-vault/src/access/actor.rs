//! Actors: who performs an administrative act.

use std::fmt;
use std::sync::Arc;

use coffer_label::Label;

use super::monitor::may_read;
use super::roles::Role;
use super::subject::Subject;

/// Who asks for an administrative act, as the front door found out.
#[derive(Clone, Debug)]
pub enum Actor {
    /// The owner of the data folder, or root, at the local socket: every role but that of a data
    /// user, for the owner of the folder can change the server itself.
    Local {
        /// The user's id.
        uid: u32,
    },
    /// The holder of an access key: the subject's roles.
    Subject(Arc<Subject>),
}

impl Actor {
    /// Whether the actor has a role now.
    pub fn has(&self, role: Role) -> bool {
        match self {
            Self::Local { .. } => role != Role::DataUser,
            Self::Subject(subject) => subject.roles.has(role),
        }
    }

    /// Whether the actor has a duty beside data, and so knows of all levels and buckets.
    pub(crate) fn looks_after(&self) -> bool {
        match self {
            Self::Local { .. } => true,
            Self::Subject(subject) => subject.roles.look_after(),
        }
    }

    /// Whether the actor may know that levels of this label exist: those who look after the server
    /// know of all, others of what they may read.
    pub(crate) fn may_know(&self, label: &Label) -> bool {
        match self {
            _ if self.looks_after() => true,
            Self::Subject(subject) => may_read(subject, label),
            Self::Local { .. } => false,
        }
    }
}

/// Who stands in a record.
pub(crate) trait AuditIdentity {
    /// A subject's id, `local:UID`, or `server`.
    fn id(&self) -> String;

    /// The name by which people know a subject.
    fn name(&self) -> Option<&str> {
        None
    }

    /// The id of the access key that a subject asks with.
    fn access_key_id(&self) -> Option<&str> {
        None
    }
}

impl AuditIdentity for Actor {
    fn id(&self) -> String {
        self.to_string()
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Local { .. } => None,
            Self::Subject(subject) => Some(subject.name()),
        }
    }

    fn access_key_id(&self) -> Option<&str> {
        match self {
            Self::Local { .. } => None,
            Self::Subject(subject) => subject.access_key_id(),
        }
    }
}

impl AuditIdentity for Subject {
    fn id(&self) -> String {
        if self.is_anonymous() {
            return self.name.to_string();
        }
        self.id.to_string()
    }

    fn name(&self) -> Option<&str> {
        Some(Subject::name(self))
    }

    fn access_key_id(&self) -> Option<&str> {
        Subject::access_key_id(self)
    }
}

/// The server itself.
impl AuditIdentity for &str {
    fn id(&self) -> String {
        (*self).to_owned()
    }
}

/// As records and receipts name the actor: a subject's id, or `local:UID`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { uid } => write!(f, "local:{uid}"),
            Self::Subject(subject) => subject.id.fmt(f),
        }
    }
}
