//! Whom a bucket policy speaks of. Accounts, users and roles of another service are none of the
//! target's, whatever they are called: a policy that names one is not brought over.

use serde_json::{Map, Value};

/// The principals of a policy but *everyone*, each once, and what else does not translate.
///
/// # Errors
/// When that is no policy.
pub(super) fn strangers(policy: &[u8]) -> Result<Vec<String>, String> {
    let policy: Value =
        serde_json::from_slice(policy).map_err(|_| "the source's policy is no JSON".to_owned())?;
    let statements = match policy.get("Statement") {
        Some(Value::Array(statements)) => statements.iter().collect(),
        Some(statement) => vec![statement],
        None => Vec::new(),
    };
    let mut found = Vec::new();
    for statement in statements {
        for part in ["Principal", "NotPrincipal"] {
            if let Some(principal) = statement.get(part) {
                named(principal, &mut found);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether two policies are the same: lists in them are sets, and some servers tell them in another
/// order each time they are asked.
pub(super) fn are_same(one: &[u8], other: &[u8]) -> bool {
    let read = |policy| serde_json::from_slice(policy).map(ordered);
    match (read(one), read(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// The same, its lists of strings in order, and what is in a list alone without it.
fn ordered(value: Value) -> Value {
    match value {
        Value::Array(all) if all.iter().all(Value::is_string) => {
            let mut texts: Vec<_> = all.iter().filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts.dedup();
            match texts.as_slice() {
                [one] => (*one).into(),
                _ => texts.into(),
            }
        }
        Value::Array(all) => all.into_iter().map(ordered).collect(),
        Value::Object(members) => {
            let ordered = |(name, value)| (name, ordered(value));
            let members: Map<_, _> = members.into_iter().map(ordered).collect();
            // All accounts are everyone.
            match members.get("AWS") {
                Some(all) if all == "*" && members.len() == 1 => "*".into(),
                _ => Value::Object(members),
            }
        }
        other => other,
    }
}

fn named(principal: &Value, found: &mut Vec<String>) {
    match principal {
        Value::String(text) if text == "*" => {}
        Value::String(text) => found.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| named(one, found)),
        Value::Object(kinds) => kinds.values().for_each(|of_kind| named(of_kind, found)),
        other => found.push(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_is_no_stranger_and_all_others_are_named() {
        let of = |text: &str| strangers(text.as_bytes());
        let all = r#"{"Statement":[{"Principal":"*"},{"Principal":{"AWS":["*"]}}]}"#;
        assert_eq!(of(all), Ok(vec![]));
        let some = r#"{"Statement":{"Principal":{"AWS":["arn:b","*","arn:a"],"Service":"s"},
                       "NotPrincipal":{"AWS":"arn:a"}}}"#;
        assert_eq!(
            of(some),
            Ok(["arn:a", "arn:b", "s"].map(str::to_owned).to_vec())
        );
        assert!(of("<html/>").is_err());
    }

    #[test]
    fn lists_are_sets() {
        let same = |one: &str, other: &str| are_same(one.as_bytes(), other.as_bytes());
        let one = r#"{"Statement":[{"Action":["a","b"],"Principal":{"AWS":["*"]}},{"Sid":"x"}]}"#;
        let other = r#"{"Statement": [{"Principal":"*","Action":["b","a"]},{"Sid":"x"}]}"#;
        assert!(same(one, other));
        for changed in [
            r#"{"Statement":[{"Action":["a"],"Principal":{"AWS":["*"]}},{"Sid":"x"}]}"#,
            r#"{"Statement":[{"Action":["a","b"],"Principal":{"AWS":["*"]}}]}"#,
            "no policy",
        ] {
            assert!(!same(one, changed), "{changed}");
        }
        assert!(same("no policy", "no policy") && !same("no policy", "none"));
    }
}
