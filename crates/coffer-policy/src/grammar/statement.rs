//! Statements.

use super::actions::Actions;
use super::json::Json;
use super::principals::{self, Principal, Reading, Subjects};
use super::resources::ResourcePattern;
use crate::conditions::{Condition, Key, KeyPlace};
use crate::error::{Element, Fault, PolicyError};
use crate::names::{AccountId, ActionSet, ResourceKind};

/// What a statement does with the requests that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It allows them.
    Allow,
    /// It denies them, whatever allows them.
    Deny,
}

/// A statement.
#[derive(Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) sid: Option<String>,
    pub(crate) effect: Effect,
    pub(crate) is_not_principal: bool,
    pub(crate) principals: Vec<Principal>,
    pub(crate) actions: Actions,
    pub(crate) is_not_resource: bool,
    pub(crate) resources: Vec<ResourcePattern>,
    pub(crate) conditions: Vec<Condition>,
}

/// What a policy is read for.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) account: &'a AccountId,
    pub(crate) reading: Reading<'a>,
    /// Whether the policy's version has variables.
    pub(crate) variables: bool,
}

/// The fields of a statement, in the order in which they are written.
const FIELDS: [(&str, Element); 9] = [
    ("Sid", Element::Sid),
    ("Effect", Element::Effect),
    ("Principal", Element::Principal),
    ("NotPrincipal", Element::NotPrincipal),
    ("Action", Element::Action),
    ("NotAction", Element::NotAction),
    ("Resource", Element::Resource),
    ("NotResource", Element::NotResource),
    ("Condition", Element::Condition),
];

impl Statement {
    pub(crate) fn parse(json: &Json, around: Surroundings<'_>) -> Result<Self, PolicyError> {
        let fields = json.object(Element::Statement)?;
        let is_known = |name: &str| FIELDS.iter().any(|(known, _)| *known == name);
        if let Some((name, _)) = fields.iter().find(|(name, _)| !is_known(name)) {
            let name = name.as_str().into();
            return Err(Fault::UnknownField { name }.into());
        }
        let sid = field(fields, "Sid").map(|sid| sid.text(Element::Sid).map(str::to_owned));
        let effect = field(fields, "Effect").ok_or(Fault::MissingField { name: "Effect" })?;
        let effect = match effect.text(Element::Effect)? {
            "Allow" => Effect::Allow,
            "Deny" => Effect::Deny,
            _ => return Err(Fault::Effect.at(Element::Effect)),
        };
        let (who, element) = one_of(fields, "Principal", "NotPrincipal")?;
        let is_not_principal = element == Element::NotPrincipal;
        if is_not_principal && effect == Effect::Allow {
            return Err(Fault::AllowNotPrincipal.at(element));
        }
        let principals = principals::parse(who, element, around.account, around.reading)?;
        let (what, element) = one_of(fields, "Action", "NotAction")?;
        let actions = Actions::parse(what.texts(element)?, element)?;
        let (which, element) = one_of(fields, "Resource", "NotResource")?;
        let is_not_resource = element == Element::NotResource;
        let pattern = |text: &String| ResourcePattern::parse(text, around.bucket, around.variables);
        let texts = which.texts(element)?;
        let resources = texts.iter().map(pattern).collect::<Result<_, _>>();
        let conditions = match field(fields, "Condition") {
            Some(json) => conditions(json, around.variables)?,
            None => Vec::new(),
        };
        let statement = Self {
            sid: sid.transpose()?,
            effect,
            is_not_principal,
            principals,
            actions,
            is_not_resource,
            resources: resources.map_err(|fault| fault.at(element))?,
            conditions,
        };
        statement.check_combination()?;
        Ok(statement)
    }

    /// Sees that each action and each condition key is of some request that the statement can
    /// match.
    fn check_combination(&self) -> Result<(), PolicyError> {
        let kinds = [ResourceKind::Bucket, ResourceKind::Object];
        let applies = |set: ActionSet| {
            let is_reached = |kind: &&ResourceKind| self.reaches(**kind);
            kinds
                .iter()
                .filter(is_reached)
                .any(|kind| set.applies_to(*kind))
        };
        let actions = &self.actions;
        if actions.is_negated && !applies(actions.set) {
            let name = "NotAction".into();
            return Err(Fault::ActionResource { name }.at(Element::NotAction));
        }
        let mut named = actions.texts.iter().zip(&actions.named);
        if let Some((text, _)) = named.find(|(_, set)| !actions.is_negated && !applies(**set)) {
            let name = text.as_str().into();
            return Err(Fault::ActionResource { name }.at(Element::Action));
        }
        let can_have = |kind| self.reaches(kind) && actions.set.applies_to(kind);
        let is_asked_in_vain = |condition: &&Condition| match condition.key.place() {
            KeyPlace::Both => false,
            KeyPlace::Bucket => !can_have(ResourceKind::Bucket),
            KeyPlace::Object => !can_have(ResourceKind::Object),
        };
        match self.conditions.iter().find(is_asked_in_vain) {
            Some(condition) => {
                let key = condition.key_text.as_str().into();
                Err(Fault::KeyResource { key }.at(Element::Condition))
            }
            None => Ok(()),
        }
    }

    /// The keys that it asks a request for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let resources = self.resources.iter().flat_map(ResourcePattern::keys);
        resources.chain(self.conditions.iter().flat_map(Condition::keys))
    }

    /// Whether the resources can be of this kind. What is not among them is of both kinds.
    fn reaches(&self, kind: ResourceKind) -> bool {
        self.is_not_resource || self.resources.iter().any(|resource| resource.can_be(kind))
    }

    /// As JSON: with the names of principals where there are subjects to ask, else with their ids.
    pub(crate) fn write(&self, account: &AccountId, subjects: Option<&dyn Subjects>) -> Json {
        let effect = match self.effect {
            Effect::Allow => "Allow",
            Effect::Deny => "Deny",
        };
        let negatable = |name: &str, is_negated: bool| {
            let not = if is_negated { "Not" } else { "" };
            format!("{not}{name}")
        };
        let mut fields = Vec::new();
        fields.extend(
            self.sid
                .clone()
                .map(|sid| ("Sid".to_owned(), Json::Text(sid))),
        );
        fields.push(("Effect".to_owned(), Json::Text(effect.to_owned())));
        fields.push((
            negatable("Principal", self.is_not_principal),
            principals::write(&self.principals, account, subjects),
        ));
        fields.push((
            negatable("Action", self.actions.is_negated),
            Json::from_texts(self.actions.texts.iter().cloned()),
        ));
        fields.push((
            negatable("Resource", self.is_not_resource),
            Json::from_texts(self.resources.iter().map(|resource| resource.text.clone())),
        ));
        if !self.conditions.is_empty() {
            fields.push(("Condition".to_owned(), write_conditions(&self.conditions)));
        }
        Json::Object(fields)
    }
}

fn field<'a>(fields: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    let found = fields.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value)
}

/// The one of two fields that is there, and which.
fn one_of<'a>(
    fields: &'a [(String, Json)],
    first: &'static str,
    second: &'static str,
) -> Result<(&'a Json, Element), PolicyError> {
    let (name, json) = match (field(fields, first), field(fields, second)) {
        (Some(json), None) => (first, json),
        (None, Some(json)) => (second, json),
        (None, None) => return Err(Fault::MissingField { name: first }.into()),
        (Some(_), Some(_)) => return Err(Fault::BothFields { first, second }.into()),
    };
    let element = FIELDS.iter().find(|(known, _)| *known == name);
    Ok((
        json,
        element.map_or(Element::Statement, |(_, element)| *element),
    ))
}

fn conditions(json: &Json, variables: bool) -> Result<Vec<Condition>, PolicyError> {
    let element = Element::Condition;
    let mut conditions = Vec::new();
    for (operator, keys) in json.object(element)? {
        let keys = keys.object(element)?;
        if keys.is_empty() {
            return Err(Fault::Empty(element).at(element));
        }
        for (key, values) in keys {
            let texts = values
                .list(element)?
                .iter()
                .map(scalar)
                .collect::<Result<_, _>>()?;
            let condition = Condition::parse(operator, key, texts, variables);
            conditions.push(condition.map_err(|fault| fault.at(element))?);
        }
    }
    Ok(conditions)
}

/// The text of a value: quotation marks are optional for numbers and truth values.
fn scalar(json: &Json) -> Result<String, PolicyError> {
    match json {
        Json::Text(text) | Json::Number(text) => Ok(text.clone()),
        Json::Bool(value) => Ok(value.to_string()),
        _ => {
            let expected = "a text, a number, true or false";
            Err(Fault::Type { expected }.at(Element::Condition))
        }
    }
}

/// Conditions of one operator stand beside each other, as they were read.
fn write_conditions(conditions: &[Condition]) -> Json {
    let by_operator = conditions.chunk_by(|one, next| one.operator_text == next.operator_text);
    let operators = by_operator.map(|conditions| {
        let key = |condition: &Condition| {
            let texts = Json::from_texts(condition.texts.iter().cloned());
            (condition.key_text.clone(), texts)
        };
        let operator = conditions[0].operator_text.clone();
        (operator, Json::Object(conditions.iter().map(key).collect()))
    });
    Json::Object(operators.collect())
}
