//! Roles: what a subject may do beside reading and writing data.

use std::fmt;
use std::str::FromStr;

use crate::error::VaultError;

/// A duty. Duties are kept apart so that one who runs the server need not be able to read, and
/// one who may destroy need not be able to hide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Reads and writes objects, as far as clearance and grants go.
    DataUser,
    /// Subjects, buckets, configuration; neither data nor keys.
    SystemAdministrator,
    /// Levels, keys, exports, erases; no data.
    KeyCustodian,
    /// The audit log and receipts.
    Auditor,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 4] = [
        Self::DataUser,
        Self::SystemAdministrator,
        Self::KeyCustodian,
        Self::Auditor,
    ];

    /// Its name on the command line, in the API and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DataUser => "data-user",
            Self::SystemAdministrator => "system-administrator",
            Self::KeyCustodian => "key-custodian",
            Self::Auditor => "auditor",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = VaultError;

    fn from_str(text: &str) -> Result<Self, VaultError> {
        let named = |role: &Self| role.as_str() == text;
        Self::ALL
            .into_iter()
            .find(named)
            .ok_or(VaultError::Invalid {
                what: "a role is data-user, system-administrator, key-custodian or auditor",
            })
    }
}

/// A set of roles. Its text is their names with commas between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Every role.
    pub fn all() -> Self {
        Role::ALL.into_iter().collect()
    }

    /// Whether the role is among them.
    pub fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }

    /// Whether a duty beside data is among them, so that all levels and buckets are known.
    pub(crate) fn look_after(self) -> bool {
        let duties = [Role::SystemAdministrator, Role::KeyCustodian, Role::Auditor];
        duties.into_iter().any(|role| self.has(role))
    }

    /// The roles, in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, role) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{role}")?;
        }
        Ok(())
    }
}

impl FromStr for Roles {
    type Err = VaultError;

    fn from_str(text: &str) -> Result<Self, VaultError> {
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(str::parse::<Role>).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for bits in 0..16 {
            let roles = Roles(bits);
            assert_eq!(roles.to_string().parse::<Roles>().unwrap(), roles);
            assert_eq!(roles.iter().collect::<Roles>(), roles);
        }
        assert_eq!(Roles::all(), Roles(15));
        assert_eq!("auditor".parse::<Roles>().unwrap().to_string(), "auditor");
        assert!("auditor,king".parse::<Roles>().is_err());
    }
}
