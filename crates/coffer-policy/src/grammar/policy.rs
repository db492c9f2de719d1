//! Policies.

use std::collections::BTreeSet;
use std::fmt;

use super::json::{self, Json};
use super::principals::{Reading, Subjects};
use super::statement::{Statement, Surroundings};
use crate::conditions::Key;
use crate::error::{Element, Fault, PolicyError};
use crate::limits::STATEMENTS;
use crate::names::AccountId;

/// A policy of one bucket, read and checked.
#[derive(Clone, PartialEq)]
pub struct Policy {
    account: AccountId,
    version: Option<Version>,
    id: Option<String>,
    statements: Vec<Statement>,
}

/// The version of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// `2008-10-17`, also where none is given: no variables.
    First,
    /// `2012-10-17`.
    Second,
}

impl Policy {
    /// Reads what a client sent for a bucket, whose name is given, on a server of this account.
    /// Names of principals become the ids of those who are called so now.
    ///
    /// # Errors
    ///
    /// When it is no policy of the bucket, or names a principal that there isn't.
    pub fn parse(
        text: &[u8],
        bucket: &str,
        account: &AccountId,
        subjects: &dyn Subjects,
    ) -> Result<Self, PolicyError> {
        Self::read(text, bucket, account, Reading::Sent(subjects))
    }

    /// Reads what [`Policy::to_stored`] wrote, whether or not its subjects are there still.
    ///
    /// # Errors
    ///
    /// When it is not what that wrote for this bucket and this account.
    pub fn from_stored(
        text: &[u8],
        bucket: &str,
        account: &AccountId,
    ) -> Result<Self, PolicyError> {
        Self::read(text, bucket, account, Reading::Stored)
    }

    /// The policy as it is kept: JSON that names subjects by their ids alone.
    pub fn to_stored(&self) -> String {
        self.write(None)
    }

    /// The policy as a client is shown it: JSON that names subjects as they are called now, and
    /// those who are gone by their ids.
    pub fn shown(&self, subjects: &dyn Subjects) -> String {
        self.write(Some(subjects))
    }

    /// The account of the server.
    pub fn account(&self) -> &AccountId {
        &self.account
    }

    /// All keys that it may ask a request for, each once: a request that has no value for any other
    /// is judged the same whatever else it says.
    pub fn keys(&self) -> Vec<Key> {
        let asked: BTreeSet<&Key> = self.statements.iter().flat_map(Statement::keys).collect();
        asked.into_iter().cloned().collect()
    }

    pub(crate) fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn read(
        text: &[u8],
        bucket: &str,
        account: &AccountId,
        reading: Reading<'_>,
    ) -> Result<Self, PolicyError> {
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Fault::NoObject.into());
        }
        let json = json::parse(text)?;
        if matches!(reading, Reading::Sent(_)) {
            json::check_length(text)?;
        }
        let Json::Object(fields) = &json else {
            return Err(Fault::NoObject.into());
        };
        let (mut version, mut id, mut statements) = (None, None, None);
        for (name, value) in fields {
            match name.as_str() {
                "Version" => version = Some(Version::parse(value)?),
                "Id" => id = Some(value.text(Element::Id)?.to_owned()),
                "Statement" => statements = Some(value.list(Element::Statement)?),
                name => return Err(Fault::UnknownField { name: name.into() }.into()),
            }
        }
        let statements = statements.ok_or(Fault::MissingField { name: "Statement" })?;
        let count = statements.len();
        if count > STATEMENTS {
            return Err(Fault::Statements { count }.at(Element::Statement));
        }
        let around = Surroundings {
            bucket,
            account,
            reading,
            variables: version == Some(Version::Second),
        };
        let statement = |(number, json): (usize, &Json)| {
            Statement::parse(json, around).map_err(|error| error.in_statement(number))
        };
        let statements = (1..)
            .zip(statements)
            .map(statement)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            account: account.clone(),
            version,
            id,
            statements,
        })
    }

    fn write(&self, subjects: Option<&dyn Subjects>) -> String {
        let mut fields = Vec::new();
        let version = self.version.map(|version| version.text().to_owned());
        fields.extend(version.map(|text| ("Version".to_owned(), Json::Text(text))));
        fields.extend(self.id.clone().map(|id| ("Id".to_owned(), Json::Text(id))));
        let statements = self.statements.iter();
        let statements = statements.map(|statement| statement.write(&self.account, subjects));
        fields.push(("Statement".to_owned(), Json::List(statements.collect())));
        // What was read as JSON can be written as such.
        serde_json::to_string(&Json::Object(fields)).unwrap_or_default()
    }
}

impl Version {
    fn parse(json: &Json) -> Result<Self, PolicyError> {
        match json.text(Element::Version)? {
            "2008-10-17" => Ok(Self::First),
            "2012-10-17" => Ok(Self::Second),
            _ => Err(Fault::Version.at(Element::Version)),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::First => "2008-10-17",
            Self::Second => "2012-10-17",
        }
    }
}

impl fmt::Debug for Policy {
    /// How many statements it has: resources and values are names of objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.statements.len();
        f.debug_struct("Policy")
            .field("statements", &count)
            .finish_non_exhaustive()
    }
}
