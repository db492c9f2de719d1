//! `Action` and `NotAction`.
//!
//! *IAM User Guide*, IAM JSON policy elements: Action
//! (`IAM/latest/UserGuide/reference_policies_elements_action.html`): read in any case, with
//! wildcards.

use crate::conditions::{NoValues, Pattern, PatternError, Syntax};
use crate::error::{Element, Fault, PolicyError};
use crate::names::{Action, ActionSet};
use crate::truth::Truth;

/// The actions of a statement.
#[derive(Clone, PartialEq)]
pub(crate) struct Actions {
    pub(crate) is_negated: bool,
    /// As written.
    pub(crate) texts: Vec<String>,
    /// What each of the texts names.
    pub(crate) named: Vec<ActionSet>,
    /// What the statement is about.
    pub(crate) set: ActionSet,
}

impl Actions {
    pub(crate) fn parse(texts: Vec<String>, element: Element) -> Result<Self, PolicyError> {
        let is_negated = element == Element::NotAction;
        let named = texts.iter().map(|text| named_by(text));
        let named: Vec<ActionSet> = named
            .collect::<Result<_, _>>()
            .map_err(|fault| fault.at(element))?;
        let all = named
            .iter()
            .fold(ActionSet::default(), |all, set| all.union(*set));
        let set = if is_negated { all.complement() } else { all };
        Ok(Self {
            is_negated,
            texts,
            named,
            set,
        })
    }
}

/// The actions that a text names.
fn named_by(text: &str) -> Result<ActionSet, Fault> {
    let invalid = || Fault::Action { name: text.into() };
    let lower = text.to_ascii_lowercase();
    let name = match lower.as_str() {
        "*" => "*",
        prefixed => prefixed.strip_prefix("s3:").ok_or_else(invalid)?,
    };
    let syntax = Syntax {
        wildcards: true,
        variables: false,
    };
    let pattern = Pattern::parse(name, syntax).map_err(|error| match error {
        PatternError::TooLong(bytes) => Fault::PatternTooLong { bytes },
        PatternError::Variable => invalid(),
    })?;
    let is_named = |action: &Action| {
        pattern.matches(&action.name().to_ascii_lowercase(), &NoValues) == Truth::Yes
    };
    let set: ActionSet = Action::ALL.iter().copied().filter(is_named).collect();
    if set.is_empty() {
        Err(invalid())
    } else {
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ActionSet {
        named_by(text).unwrap()
    }

    #[test]
    fn names_are_read_in_any_case_and_with_wildcards() {
        assert_eq!(
            set("s3:GetObject"),
            [Action::GetObject].into_iter().collect()
        );
        assert_eq!(set("S3:getobject"), set("s3:GetObject"));
        assert_eq!(set("*"), ActionSet::ALL);
        assert_eq!(set("s3:*"), ActionSet::ALL);
        let gets = set("s3:Get*Acl");
        let expected = [
            Action::GetBucketAcl,
            Action::GetObjectAcl,
            Action::GetObjectVersionAcl,
        ];
        assert_eq!(gets, expected.into_iter().collect());
        assert_eq!(set("s3:?etObject"), set("s3:GetObject"));
    }

    #[test]
    fn what_s3_does_not_do_is_refused() {
        for text in [
            "",
            "s3",
            "s3:",
            "GetObject",
            "ec2:*",
            "s3:GetObjects",
            "s3:Fetch*",
            "s3:${*}",
        ] {
            assert!(named_by(text).is_err(), "{text}");
        }
    }
}
