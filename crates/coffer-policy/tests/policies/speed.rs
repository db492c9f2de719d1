//! How long a decision takes. Printed, for machines differ.

use std::hint::black_box;
use std::time::Instant;

use coffer_policy::{
    Action, Decision, Identity, Key, ListedValues, Request, Requester, Resource, Timestamp, Value,
    evaluate,
};
use serde_json::{Value as Json, json};

use crate::server::{id_of, parse};

/// Twenty statements that all have to be looked at, as those of a tenant's bucket.
fn statements() -> Vec<Json> {
    let deny = |condition: Json| {
        json!({"Effect": "Deny", "Principal": "*", "Action": "s3:*",
            "Resource": ["arn:aws:s3:::films", "arn:aws:s3:::films/*"], "Condition": condition})
    };
    let mut statements = vec![
        deny(json!({"Bool": {"aws:SecureTransport": "false"}})),
        deny(json!({"NumericLessThan": {"s3:TlsVersion": "1.2"}})),
        deny(json!({"NotIpAddress": {"aws:SourceIp": ["192.0.2.0/24", "2001:db8::/32"]}})),
        deny(json!({"StringEquals": {"s3:x-amz-acl": ["public-read", "public-read-write"]}})),
    ];
    statements.extend((4..19).map(|number| {
        json!({"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:user/ann"},
            "Action": ["s3:GetObject", "s3:PutObject"],
            "Resource": format!("arn:aws:s3:::films/*/{number}-${{aws:username}}/*.mkv")})
    }));
    statements.push(
        json!({"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::films/recordings/*"}),
    );
    statements
}

#[test]
#[ignore = "prints how long a decision takes, and asserts no time"]
fn twenty_statements() {
    let policy = parse(&json!({"Version": "2012-10-17", "Statement": statements()})).unwrap();
    let mut values = ListedValues::default();
    values.insert(Key::SecureTransport, Value::Bool(true));
    values.insert(Key::SourceIp, Value::Address([192, 0, 2, 7].into()));
    let id = id_of("ann");
    let request = Request {
        requester: Requester::Subject(Identity {
            id: id.as_str(),
            name: "ann",
            owns_bucket: false,
        }),
        action: Action::GetObject,
        resource: Resource::Object("recordings/2026/11/23/camera-7/from-the-first-hour.mkv"),
        time: Timestamp::from_seconds(1_795_446_245),
        values: &values,
    };
    // The fastest of many: the machine does other things, too.
    let rounds = 2_000;
    let batch = || {
        let begin = Instant::now();
        for _ in 0..rounds {
            let decision = evaluate(black_box(&policy), black_box(&request));
            assert_eq!(decision, Decision::Allow { statement: 20 });
        }
        begin.elapsed() / rounds
    };
    let fastest = (0..50).map(|_| batch()).min().unwrap();
    println!("a decision on twenty statements takes {fastest:?}");
}

#[test]
#[ignore = "prints how long the worst decision takes, and asserts no time"]
fn as_many_question_marks_as_a_policy_holds() {
    let pattern = format!("arn:aws:s3:::films/*{}b*", "a?".repeat(256));
    let denies = json!({"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject",
        "Resource": vec![pattern; 36]});
    let policy = parse(&json!({"Statement": denies})).unwrap();
    let name = "a".repeat(1024);
    let request = Request {
        requester: Requester::Anonymous,
        action: Action::GetObject,
        resource: Resource::Object(&name),
        time: Timestamp::from_seconds(0),
        values: &ListedValues::default(),
    };
    let begin = Instant::now();
    assert_eq!(evaluate(&policy, &request), Decision::NoMatch);
    println!("the worst patterns take {:?}", begin.elapsed());
}
