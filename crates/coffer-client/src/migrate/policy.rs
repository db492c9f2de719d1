//! Whom a bucket policy speaks of. Accounts, users and roles of another service are none of the
//! target's, whatever they are called: a policy that names one is not brought over.

use serde_json::Value;

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
}
