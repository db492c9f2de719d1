//! A server with a few subjects, and requests to it as the examples write them.

use std::borrow::Cow;

use coffer_policy::{
    AccountId, Action, Decimal, Decision, Identity, Key, ListedValues, Policy, PolicyError,
    Request, Requester, Resource, SubjectId, Subjects, Timestamp, Value, Values, evaluate,
};
use serde_json::Value as Json;

pub(crate) const BUCKET: &str = "films";

/// Ann's canonical id is not known, Bob's is.
const BOBS_CANONICAL_ID: &str = "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be";

pub(crate) fn account() -> AccountId {
    "111122223333".parse().unwrap()
}

/// Subjects by name: `ann` has the id `AIDAEXAMPLEOFANN0001`.
pub(crate) struct Names(pub(crate) Vec<&'static str>);

pub(crate) fn names() -> Names {
    Names(vec!["amy", "ann", "bob", "eve", "owner"])
}

pub(crate) fn id_of(name: &str) -> SubjectId {
    format!("AIDAEXAMPLEOF{}0001", name.to_uppercase())
        .parse()
        .unwrap()
}

impl Subjects for Names {
    fn id_of_name(&self, name: &str) -> Option<SubjectId> {
        self.0.contains(&name).then(|| id_of(name))
    }

    fn name_of_id(&self, id: &SubjectId) -> Option<String> {
        let found = self.0.iter().find(|name| id_of(name) == *id);
        found.map(|name| (*name).to_owned())
    }

    fn id_of_canonical_user(&self, canonical_id: &str) -> Option<SubjectId> {
        (canonical_id == BOBS_CANONICAL_ID).then(|| id_of("bob"))
    }
}

pub(crate) fn parse(policy: &Json) -> Result<Policy, PolicyError> {
    let text = serde_json::to_vec(policy).unwrap();
    Policy::parse(&text, BUCKET, &account(), &names())
}

pub(crate) fn action(name: &str) -> Action {
    let found = Action::ALL.iter().find(|action| action.name() == name);
    *found.unwrap_or_else(|| panic!("no action {name}"))
}

fn value<'a>(key: &Key, json: &'a Json) -> Value<'a> {
    match (key, json) {
        (Key::SourceIp, Json::String(text)) => Value::Address(text.parse().unwrap()),
        (Key::ObjectLockRetainUntilDate, Json::String(text)) => {
            Value::Date(Timestamp::parse(text).unwrap())
        }
        (_, Json::String(text)) => text.as_str().into(),
        (_, Json::Bool(value)) => Value::Bool(*value),
        (_, Json::Number(number)) => Value::Number(Decimal::parse(&number.to_string()).unwrap()),
        (_, Json::Array(texts)) => Value::Texts(
            texts
                .iter()
                .map(|text| Cow::Borrowed(text.as_str().unwrap()))
                .collect(),
        ),
        _ => panic!("no value: {json}"),
    }
}

/// What the policy says of a request: `{"who": …, "action": …, "object": …, "values": {…}}`.
pub(crate) fn decide(policy: &Policy, request: &Json) -> Decision {
    let mut values = ListedValues::default();
    for (key, json) in request["values"].as_object().into_iter().flatten() {
        let key = Key::parse(key).unwrap_or_else(|| panic!("no key {key}"));
        let value = value(&key, json);
        values.insert(key, value);
    }
    decide_by(policy, request, &values)
}

/// The same of a request that has these values.
pub(crate) fn decide_by(policy: &Policy, request: &Json, values: &dyn Values) -> Decision {
    let who = request["who"].as_str().unwrap();
    let id = id_of(who);
    let identity = Identity {
        id: id.as_str(),
        name: who,
        owns_bucket: who == "owner",
    };
    let at = request["at"].as_str().unwrap_or("2026-11-20");
    evaluate(
        policy,
        &Request {
            requester: match who {
                "anonymous" => Requester::Anonymous,
                _ => Requester::Subject(identity),
            },
            action: action(request["action"].as_str().unwrap()),
            resource: request["object"]
                .as_str()
                .map_or(Resource::Bucket, Resource::Object),
            time: Timestamp::parse(at).unwrap(),
            values,
        },
    )
}
