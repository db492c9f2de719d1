//! What is no policy, and how the answer says so: `malformed.json` has one fault each.

use coffer_policy::{Policy, limits};
use serde_json::{Value as Json, json};

use crate::server::{BUCKET, account, names, parse};

fn error_of(text: &str) -> String {
    let parsed = Policy::parse(text.as_bytes(), BUCKET, &account(), &names());
    parsed.expect_err(text).to_string()
}

#[test]
fn faults_are_named_with_their_place() {
    let cases: Json = serde_json::from_str(include_str!("malformed.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let error = match parse(&case["policy"]) {
            Ok(_) => panic!("{} is a policy", case["about"]),
            Err(error) => error.to_string(),
        };
        let expected = case["error"].as_str().unwrap();
        assert!(error.contains(expected), "{}: {error}", case["about"]);
    }
}

#[test]
fn json_leaves_no_doubt() {
    let twice = r#"{"Version": "2012-10-17", "Version": "2008-10-17", "Statement": []}"#;
    assert!(error_of(twice).contains("field `Version` stands twice at line 1"));
    let statement = r#""Effect": "Deny", "Principal": "*", "Action": "s3:*""#;
    let resource = r#""Resource": "arn:aws:s3:::films""#;
    let twice = format!(r#"{{"Statement": {{{statement}, {resource}, {resource}}}}}"#);
    assert!(error_of(&twice).contains("field `Resource` stands twice"));
    for text in ["{", "{}{}", "{\"Statement\": [}"] {
        let error = error_of(text);
        assert!(error.contains("invalid Json"), "{error}");
    }
    for text in ["", "null", "x", "\u{feff}{}"] {
        assert_eq!(
            error_of(text),
            "Policies must be valid JSON and the first byte must be '{'"
        );
    }
}

#[test]
fn lengths_are_bounded() {
    let statement = |name: &str| {
        json!({"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject",
            "Resource": format!("arn:aws:s3:::films/{name}")})
    };
    let most = limits::PATTERN_BYTES;
    assert!(parse(&json!({"Statement": statement(&"x".repeat(most))})).is_ok());
    let error = parse(&json!({"Statement": statement(&"x".repeat(most + 1))}));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("has 2049 bytes, more than 2048")
    );

    let policy = |id_bytes: usize| json!({"Id": "x".repeat(id_bytes), "Statement": statement("a")});
    let rest = serde_json::to_vec(&policy(0)).unwrap().len();
    let longest = policy(limits::POLICY_BYTES - rest);
    let longest = parse(&longest).unwrap();
    let stored = longest.to_stored();
    assert!(Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap() == longest);
    let error = parse(&policy(limits::POLICY_BYTES - rest + 1)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("maximum allowed size of 20480 bytes"),
        "{error}"
    );
    let spaces = " ".repeat(limits::TEXT_BYTES);
    assert!(error_of(&format!("{spaces}{{}}")).contains("maximum allowed document size"));
}

#[test]
fn as_many_statements_are_taken_as_the_length_allows() {
    let statement = json!({"Effect": "Deny", "Principal": "*", "Action": "*",
        "Resource": "arn:aws:s3:::films"});
    let of = |count: usize| json!({"Statement": vec![statement.clone(); count]});
    let length = |count: usize| serde_json::to_vec(&of(count)).unwrap().len();
    let (empty, each) = (length(0), length(2) - length(1));
    let most = (limits::POLICY_BYTES - empty) / each;
    assert!(most > 256, "{most}");
    let policy = parse(&of(most)).unwrap();
    let stored = policy.to_stored();
    assert!(Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap() == policy);
}

#[test]
fn what_is_stored_of_the_longest_policies_can_be_read() {
    // What grows most: accounts, which are written as ARNs, and numbers, which are quoted.
    let statement = |principals: Vec<&str>, values: Vec<Json>| {
        json!({"Statement": {"Effect": "Deny", "Principal": {"AWS": principals},
            "Action": "s3:GetObject", "Resource": "arn:aws:s3:::films/*",
            "Condition": {"StringEquals": {"aws:Referer": values}}}})
    };
    for policy in [
        statement(vec!["111122223333"; 1300], vec![json!("a")]),
        statement(vec!["*"], vec![json!(1); 10_000]),
    ] {
        let policy = parse(&policy).unwrap();
        let stored = policy.to_stored();
        assert!(stored.len() > limits::POLICY_BYTES);
        assert!(Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap() == policy);
    }
}

#[test]
fn neither_errors_nor_debug_tell_names_of_objects() {
    let secret = "the-secret-name";
    let statement = json!({"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
        "Resource": format!("arn:aws:s3:::films/{secret}")});
    let policy = parse(&json!({"Statement": statement})).unwrap();
    assert!(!format!("{policy:?}").contains(secret));
    assert!(!format!("{:?}", coffer_policy::Value::from(secret)).contains(secret));
    let mut other = statement.clone();
    other["Resource"] = json!(format!("arn:aws:s3:::other/{secret}"));
    let error = parse(&json!({"Statement": other})).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret));
    let mut condition = statement;
    condition["Condition"] = json!({"NumericEquals": {"s3:signatureAge": secret}});
    let error = parse(&json!({"Statement": condition})).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret));
}
