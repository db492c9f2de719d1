//! Lists and grants.

use thiserror::Error;

use crate::evaluate::Requester;
use crate::limits::GRANTS;
use crate::names::SubjectId;

/// A list of grants on one bucket or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    owner: Option<SubjectId>,
    grants: Vec<Grant>,
}

/// A list that grants nothing, of no one.
pub static NO_GRANTS: Acl = Acl {
    owner: None,
    grants: Vec::new(),
};

/// More grants than a list may hold, which are [`GRANTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an access control list has {count} grants, more than {GRANTS}")]
pub struct TooManyGrants {
    /// How many they are.
    pub count: usize,
}

/// Who is granted what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub grantee: Grantee,
    /// What.
    pub permission: Permission,
}

/// Who is granted a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grantee {
    /// A subject, known by a canonical user id.
    Subject(SubjectId),
    /// All of a group.
    Group(Group),
}

/// A group that S3 defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// All who ask, signed or not.
    AllUsers,
    /// All who sign.
    AuthenticatedUsers,
    /// What writes access logs: none of those who ask here.
    LogDelivery,
}

/// What is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Listing a bucket; reading an object.
    Read,
    /// Making objects in a bucket; nothing on an object.
    Write,
    /// Reading the list itself.
    ReadAcp,
    /// Replacing the list itself.
    WriteAcp,
    /// All of them.
    FullControl,
}

impl Acl {
    /// The list of what belongs to an owner; none: to who was anonymous.
    ///
    /// # Errors
    ///
    /// When there are more than [`GRANTS`].
    pub fn new(owner: Option<SubjectId>, grants: Vec<Grant>) -> Result<Self, TooManyGrants> {
        let count = grants.len();
        if count > GRANTS {
            return Err(TooManyGrants { count });
        }
        Ok(Self { owner, grants })
    }

    /// A list of so few grants that it needs no check.
    pub(super) fn canned(owner: Option<SubjectId>, grants: Vec<Grant>) -> Self {
        Self { owner, grants }
    }

    /// Whose it is; none: who made it was anonymous.
    pub fn owner(&self) -> Option<&SubjectId> {
        self.owner.as_ref()
    }

    /// Whether it is the list of what belongs to the subject of this id.
    pub fn is_owned_by(&self, id: &str) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| owner.as_str() == id)
    }

    /// The grants, as they were given.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Whether it grants anything to all users, or to all who sign: what AWS calls public.
    pub fn is_public(&self) -> bool {
        self.grants.iter().any(Grant::is_public)
    }

    /// The list without what it grants to the public: what counts, and what is shown, under
    /// `IgnorePublicAcls`.
    #[must_use]
    pub fn without_public_grants(&self) -> Self {
        let grants = self.grants.iter().filter(|grant| !grant.is_public());
        Self {
            owner: self.owner.clone(),
            grants: grants.cloned().collect(),
        }
    }

    /// Whether it grants the permission. Who owns what the list is about may always read and
    /// replace the list.
    pub fn permits(&self, requester: Requester<'_>, permission: Permission) -> bool {
        let is_of_the_list = matches!(permission, Permission::ReadAcp | Permission::WriteAcp);
        let owns = match requester {
            Requester::Anonymous => false,
            Requester::Subject(identity) => self.is_owned_by(identity.id),
        };
        let is_granted = |grant: &Grant| {
            let covers =
                grant.permission == permission || grant.permission == Permission::FullControl;
            covers && grant.grantee.is(requester)
        };
        (owns && is_of_the_list) || self.grants.iter().any(is_granted)
    }
}

impl Grant {
    fn is_public(&self) -> bool {
        matches!(
            self.grantee,
            Grantee::Group(Group::AllUsers | Group::AuthenticatedUsers)
        )
    }
}

impl Grantee {
    fn is(&self, requester: Requester<'_>) -> bool {
        match (self, requester) {
            (Self::Group(Group::AllUsers), _)
            | (Self::Group(Group::AuthenticatedUsers), Requester::Subject(_)) => true,
            (Self::Subject(id), Requester::Subject(identity)) => id.as_str() == identity.id,
            _ => false,
        }
    }
}

impl Group {
    const URIS: [(Self, &str); 3] = [
        (
            Self::AllUsers,
            "http://acs.amazonaws.com/groups/global/AllUsers",
        ),
        (
            Self::AuthenticatedUsers,
            "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
        ),
        (
            Self::LogDelivery,
            "http://acs.amazonaws.com/groups/s3/LogDelivery",
        ),
    ];

    /// The group of this URI.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let found = Self::URIS.iter().find(|(_, known)| *known == uri);
        found.map(|(group, _)| *group)
    }

    /// The URI that S3 calls it by.
    pub fn uri(self) -> &'static str {
        let found = Self::URIS.iter().find(|(group, _)| *group == self);
        found.map_or("", |(_, uri)| uri)
    }
}

impl Permission {
    const NAMES: [(Self, &str); 5] = [
        (Self::Read, "READ"),
        (Self::Write, "WRITE"),
        (Self::ReadAcp, "READ_ACP"),
        (Self::WriteAcp, "WRITE_ACP"),
        (Self::FullControl, "FULL_CONTROL"),
    ];

    /// The permission of this name, as lists write it: `READ_ACP`.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(permission, _)| *permission)
    }

    /// Its name, as lists write it.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES
            .iter()
            .find(|(permission, _)| *permission == self);
        found.map_or("", |(_, name)| name)
    }
}
