//! What holds of every policy and every request.

use std::cell::RefCell;

use coffer_policy::{Decision, Key, Policy, Value, Values, fuzzing, is_public};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::server::{BUCKET, Names, account, decide, decide_by, id_of, names, parse};

fn of(all: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(all).prop_map(str::to_owned)
}

fn principal() -> impl Strategy<Value = Json> {
    let arn = |name: &str| format!("arn:aws:iam::111122223333:user/{name}");
    prop_oneof![
        Just(json!("*")),
        Just(json!({"AWS": "111122223333"})),
        Just(json!({"AWS": [arn("ann"), arn("bob")]})),
        Just(json!({"AWS": arn("ann")})),
    ]
}

/// Resources that hold both the bucket and objects, so that every action applies.
fn resources() -> impl Strategy<Value = Json> {
    let objects = of(&["*", "a*", "a/?", "${aws:username}/*", "*/b"]);
    objects.prop_map(|objects| {
        json!([
            "arn:aws:s3:::films",
            format!("arn:aws:s3:::films/{objects}")
        ])
    })
}

fn condition() -> impl Strategy<Value = Json> {
    let texts = of(&[
        "StringEquals",
        "StringNotEquals",
        "StringLike",
        "StringEqualsIfExists",
    ]);
    let text_keys = of(&[
        "aws:username",
        "aws:Referer",
        "s3:x-amz-acl",
        "s3:ExistingObjectTag/t",
    ]);
    let values = of(&["ann", "a*", "${aws:username}", ""]);
    let addresses = of(&["IpAddress", "NotIpAddress", "IpAddressIfExists"]);
    let ranges = of(&["192.0.2.0/24", "0.0.0.0/0", "::/0"]);
    prop_oneof![
        Just(json!({})),
        (texts, text_keys, values)
            .prop_map(|(operator, key, value)| json!({operator: {key: value}})),
        (addresses, ranges)
            .prop_map(|(operator, range)| json!({operator: {"aws:SourceIp": range}})),
        Just(json!({"Null": {"aws:Referer": "true"}})),
        Just(json!({"StringEqualsIgnoreCase": {"aws:userid": ["Anonymous"]}})),
        Just(json!({"StringEquals": {"aws:userid": ["AIDAEXAMPLEOFANN0001"]}})),
        Just(json!({"ForAllValues:StringEquals": {"s3:RequestObjectTagKeys": ["a", "b"]}})),
        Just(json!({"ForAnyValue:StringNotEqualsIfExists": {"s3:RequestObjectTagKeys": "a"}})),
    ]
}

fn statement(effect: &'static str) -> impl Strategy<Value = Json> {
    let what = of(&["Action", "NotAction"]);
    let which = of(&["Resource", "NotResource"]);
    let actions = of(&["s3:Get*", "s3:GetObject", "s3:ListBucket", "s3:Put*"]);
    let negates = any::<bool>().prop_map(move |negates| negates && effect == "Deny");
    (
        negates,
        principal(),
        what,
        actions,
        which,
        resources(),
        condition(),
    )
        .prop_map(
            move |(negates, principal, what, action, which, resources, condition)| {
                let who = if negates { "NotPrincipal" } else { "Principal" };
                let actions = [action.as_str(), "s3:GetObjectTagging"];
                json!({"Effect": effect, who: principal, what: actions, which: resources,
                    "Condition": condition})
            },
        )
}

fn statements() -> impl Strategy<Value = Vec<Json>> {
    let statement = prop_oneof![statement("Allow"), statement("Allow"), statement("Deny")];
    prop::collection::vec(statement, 1..5)
}

/// The same statements twice.
fn in_two_orders() -> impl Strategy<Value = (Vec<Json>, Vec<Json>)> {
    statements().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
}

fn request() -> impl Strategy<Value = Json> {
    let who = of(&["anonymous", "ann", "bob", "owner"]);
    let objects = of(&["GetObject", "PutObject", "DeleteObject"]);
    let names = of(&["a", "a/b", "ann/x", "c"]);
    let on_objects = (objects, names).prop_map(|(action, name)| (action, json!(name)));
    let on_bucket = of(&["ListBucket", "PutBucketPolicy"]).prop_map(|name| (name, Json::Null));
    let values = prop_oneof![
        Just(json!({})),
        Just(json!({"aws:SourceIp": "192.0.2.7", "aws:Referer": "ann"})),
        Just(json!({"s3:RequestObjectTagKeys": ["a", "c"], "s3:ExistingObjectTag/t": "ann"})),
        Just(json!({"aws:SourceIp": "2001:db8::1", "s3:x-amz-acl": "a*"})),
    ];
    (who, prop_oneof![on_objects, on_bucket], values).prop_map(|(who, (action, name), values)| {
        json!({"who": who, "action": action, "object": name, "values": values})
    })
}

fn policy(statements: &[Json]) -> Policy {
    let policy = json!({"Version": "2012-10-17", "Statement": statements});
    parse(&policy).unwrap_or_else(|error| panic!("{error}: {policy}"))
}

/// Has no values, and notes for which keys it was asked.
#[derive(Default)]
struct Noting(RefCell<Vec<Key>>);

impl Values for Noting {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        self.0.borrow_mut().push(key.clone());
        None
    }
}

fn is_allowed(decision: Decision) -> bool {
    matches!(decision, Decision::Allow { .. } | Decision::Delegate { .. })
}

fn is_denied(decision: Decision) -> bool {
    matches!(decision, Decision::Deny { .. })
}

proptest! {
    #[test]
    fn a_deny_never_allows_more(
        before in statements(),
        deny in statement("Deny"),
        at in any::<prop::sample::Index>(),
        request in request(),
    ) {
        let mut after = before.clone();
        after.insert(at.index(before.len() + 1), deny);
        let (before, after) = (policy(&before), policy(&after));
        let (was, is) = (decide(&before, &request), decide(&after, &request));
        prop_assert!(is_allowed(was) || !is_allowed(is));
        prop_assert!(is_denied(is) || !is_denied(was));
        prop_assert_eq!(is_public(&before), is_public(&after));
    }

    #[test]
    fn an_allow_never_denies_more(
        before in statements(),
        allow in statement("Allow"),
        request in request(),
    ) {
        let mut after = before.clone();
        after.push(allow);
        let (was, is) = (decide(&policy(&before), &request), decide(&policy(&after), &request));
        prop_assert_eq!(is_denied(was), is_denied(is));
        prop_assert!(is_allowed(is) || !is_allowed(was));
    }

    #[test]
    fn who_is_anonymous_is_allowed_by_public_policies_alone(
        statements in statements(),
        request in request(),
    ) {
        let policy = policy(&statements);
        let mut request = request;
        request["who"] = json!("anonymous");
        // A narrow range of addresses is not the public.
        request["values"].as_object_mut().map(|values| values.remove("aws:SourceIp"));
        prop_assert!(is_public(&policy) || !is_allowed(decide(&policy, &request)));
    }

    #[test]
    fn order_does_not_matter(
        (one, other) in in_two_orders(),
        request in request(),
    ) {
        let (one, other) = (policy(&one), policy(&other));
        let kind = |policy| std::mem::discriminant(&decide(policy, &request));
        prop_assert_eq!(kind(&one), kind(&other));
    }

    #[test]
    fn no_key_is_asked_for_but_those_that_are_told(
        statements in statements(),
        request in request(),
    ) {
        let (policy, asked) = (policy(&statements), Noting::default());
        decide_by(&policy, &request, &asked);
        let told = policy.keys();
        for key in asked.0.into_inner() {
            prop_assert!(told.contains(&key), "{key}");
        }
    }

    #[test]
    fn what_is_stored_and_shown_is_the_same(statements in statements()) {
        let policy = policy(&statements);
        let stored = policy.to_stored();
        let again = Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap();
        prop_assert!(again == policy);
        prop_assert_eq!(again.to_stored(), stored);
        let shown = policy.shown(&names());
        let again = Policy::parse(shown.as_bytes(), BUCKET, &account(), &names()).unwrap();
        prop_assert!(again == policy);
    }

    #[test]
    fn no_input_panics(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::fuzz_policy(&data);
    }

    #[test]
    fn no_broken_policy_panics(
        statements in statements(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let policy = json!({"Version": "2012-10-17", "Statement": statements});
        let mut text = policy.to_string().replace("films", "bucket").into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        fuzzing::fuzz_policy(&text);
    }
}

#[test]
fn the_keys_of_variables_are_told_as_well() {
    let policy = policy(&[
        json!({"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::films/${aws:Referer}/*",
            "Condition": {
                "StringLike": {"aws:UserAgent": "${s3:ExistingObjectTag/t}*"},
                "ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/${aws:username}"}}}),
        json!({"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::films/*",
            "Condition": {"Null": {"aws:Referer": "true"}}}),
    ]);
    let told: Vec<String> = policy.keys().iter().map(ToString::to_string).collect();
    let keys = [
        "aws:PrincipalArn",
        "aws:Referer",
        "aws:UserAgent",
        "aws:username",
        "s3:ExistingObjectTag/t",
    ];
    assert_eq!(told, keys);
}

#[test]
fn principals_are_bound_to_ids() {
    let ann = json!({"AWS": "arn:aws:iam::111122223333:user/ann"});
    let policy = policy(&[
        json!({"Effect": "Allow", "Principal": ann, "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::films/*"}),
    ]);
    let request = json!({"who": "ann", "action": "GetObject", "object": "a"});
    assert_eq!(decide(&policy, &request), Decision::Allow { statement: 1 });

    // She is called otherwise now: shown so, and still meant.
    struct Renamed;
    impl coffer_policy::Subjects for Renamed {
        fn id_of_name(&self, name: &str) -> Option<coffer_policy::SubjectId> {
            (name == "anna").then(|| id_of("ann"))
        }
        fn name_of_id(&self, id: &coffer_policy::SubjectId) -> Option<String> {
            (*id == id_of("ann")).then(|| "anna".to_owned())
        }
    }
    let shown = policy.shown(&Renamed);
    assert!(shown.contains(":user/anna\""), "{shown}");
    let again = Policy::parse(shown.as_bytes(), BUCKET, &account(), &Renamed).unwrap();
    assert!(again == policy);

    // She is gone, and another has her name: shown by the id, and the other isn't meant.
    let without = Names(vec!["bob"]);
    let shown = policy.shown(&without);
    assert!(
        shown.contains("\"AWS\":\"AIDAEXAMPLEOFANN0001\""),
        "{shown}"
    );
    let error = Policy::parse(shown.as_bytes(), BUCKET, &account(), &without).unwrap_err();
    assert!(
        error.to_string().starts_with("Invalid principal in policy"),
        "{error}"
    );
    // Where ids are taken of all, what was shown can be put again.
    struct AllIds;
    impl coffer_policy::Subjects for AllIds {
        fn id_of_name(&self, _: &str) -> Option<coffer_policy::SubjectId> {
            None
        }
        fn name_of_id(&self, _: &coffer_policy::SubjectId) -> Option<String> {
            None
        }
        fn is_id(&self, _: &coffer_policy::SubjectId) -> bool {
            true
        }
    }
    let again = Policy::parse(shown.as_bytes(), BUCKET, &account(), &AllIds).unwrap();
    assert!(again == policy);
    let stored = policy.to_stored();
    let again = Policy::from_stored(stored.as_bytes(), BUCKET, &account()).unwrap();
    assert!(again == policy);
    let other = json!({"who": "bob", "action": "GetObject", "object": "a"});
    assert_eq!(decide(&again, &other), Decision::NoMatch);
}
