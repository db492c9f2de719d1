//! Policies as AWS documents them, each with requests and what is decided: a file a policy, in
//! `documents/`. `source` is the page, below `docs.aws.amazon.com`.

use std::fs;
use std::path::Path;

use coffer_policy::{Decision, Policy, is_public};
use serde_json::Value as Json;

use crate::server::{BUCKET, account, decide, names, parse};

fn examples() -> Vec<(String, Json)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies/documents");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let example = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let json = serde_json::from_slice(&fs::read(&path).unwrap());
        (
            name,
            json.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        )
    };
    files.map(example).collect()
}

fn text(decision: Decision) -> String {
    match decision {
        Decision::Allow { statement } => format!("allow {statement}"),
        Decision::Deny { statement } => format!("deny {statement}"),
        Decision::Delegate { statement } => format!("delegate {statement}"),
        Decision::NoMatch => "none".to_owned(),
    }
}

#[test]
fn examples_are_decided_as_documented() {
    let examples = examples();
    assert!(examples.len() >= 40, "{} examples", examples.len());
    for (name, example) in examples {
        let policy = parse(&example["policy"]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            is_public(&policy),
            example["public"].as_bool().unwrap(),
            "{name}: public"
        );
        for request in example["requests"].as_array().unwrap() {
            let decision = text(decide(&policy, request));
            assert_eq!(
                decision,
                request["expect"].as_str().unwrap(),
                "{name}: {request}"
            );
        }
    }
}

#[test]
fn examples_come_back_from_what_is_stored_and_shown() {
    for (name, example) in examples() {
        let policy = parse(&example["policy"]).unwrap();
        let stored = policy.to_stored();
        let json: Json = serde_json::from_str(&stored).unwrap();
        for statement in json["Statement"].as_array().unwrap() {
            let who = format!("{}{}", statement["Principal"], statement["NotPrincipal"]);
            assert!(!who.contains("user/"), "{name}: ids alone: {who}");
        }
        let again = Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap();
        assert!(again == policy, "{name}: stored");
        let shown = policy.shown(&names());
        let again = Policy::parse(shown.as_bytes(), BUCKET, &account(), &names()).unwrap();
        assert!(again == policy, "{name}: shown");
    }
}

#[test]
fn the_order_of_statements_does_not_matter() {
    for (name, example) in examples() {
        let policy = parse(&example["policy"]).unwrap();
        let mut turned = example["policy"].clone();
        if let Some(statements) = turned["Statement"].as_array_mut() {
            statements.reverse();
        }
        let turned = parse(&turned).unwrap();
        assert_eq!(is_public(&turned), is_public(&policy), "{name}");
        for request in example["requests"].as_array().unwrap() {
            let kind = |policy| std::mem::discriminant(&decide(policy, request));
            assert_eq!(kind(&turned), kind(&policy), "{name}: {request}");
        }
    }
}
