//! Each operator against values it holds for, values it doesn't, and none.

use super::*;
use crate::conditions::{Decimal, ListedValues, NoValues, Timestamp};

fn condition(operator: &str, key: &str, texts: &[&str]) -> Result<Condition, Fault> {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Condition::parse(operator, key, texts, true)
}

fn value_of<'a>(key: &Key, text: &'a str) -> Value<'a> {
    match key {
        Key::RequestObjectTagKeys => {
            let texts = text.split(',').filter(|text| !text.is_empty());
            Value::Texts(texts.map(Into::into).collect())
        }
        Key::SourceIp => Value::Address(text.parse().unwrap()),
        Key::MaxKeys | Key::TlsVersion => Value::Number(Decimal::parse(text).unwrap()),
        Key::CurrentTime | Key::EpochTime => Value::Date(Timestamp::parse(text).unwrap()),
        Key::SecureTransport => Value::Bool(text == "true"),
        _ => text.into(),
    }
}

/// Whether the condition holds where the key has this value.
fn holds(operator: &str, key: &str, texts: &[&str], value: &str) -> Truth {
    let condition = condition(operator, key, texts).unwrap();
    let mut values = ListedValues::default();
    values.insert(condition.key.clone(), value_of(&condition.key, value));
    condition.holds(&values)
}

fn without(operator: &str, key: &str, texts: &[&str]) -> Truth {
    condition(operator, key, texts).unwrap().holds(&NoValues)
}

/// Operator, key, the policy's values, a value for which it holds, one for which it doesn't.
const COMPARISONS: [(&str, &str, &[&str], &str, &str); 26] = [
    ("StringEquals", "s3:prefix", &["a", "b"], "b", "B"),
    ("StringNotEquals", "s3:prefix", &["a", "b"], "c", "b"),
    (
        "StringEqualsIgnoreCase",
        "s3:prefix",
        &["Straße"],
        "STRAßE",
        "strasse",
    ),
    ("StringNotEqualsIgnoreCase", "s3:prefix", &["a"], "b", "A"),
    ("StringEquals", "s3:prefix", &["a*"], "a*", "ab"),
    ("StringLike", "s3:prefix", &["a*", "?"], "ab", "ba"),
    ("StringNotLike", "s3:prefix", &["a*"], "b", "ab"),
    ("StringEquals", "s3:TlsVersion", &["1.2"], "1.20", "1.3"),
    (
        "StringEquals",
        "aws:SecureTransport",
        &["false"],
        "false",
        "true",
    ),
    ("NumericEquals", "s3:max-keys", &["10"], "10.0", "11"),
    ("NumericNotEquals", "s3:max-keys", &["10"], "11", "10"),
    ("NumericLessThan", "s3:TlsVersion", &["1.2"], "1.1", "1.2"),
    ("NumericLessThanEquals", "s3:max-keys", &["10"], "9", "11"),
    ("NumericGreaterThan", "s3:max-keys", &["10"], "100", "10"),
    (
        "NumericGreaterThanEquals",
        "s3:max-keys",
        &["10"],
        "10",
        "9",
    ),
    (
        "DateEquals",
        "aws:CurrentTime",
        &["2026-11-23"],
        "1795392000",
        "1795392001",
    ),
    (
        "DateNotEquals",
        "aws:CurrentTime",
        &["2026-11-23"],
        "1795392001",
        "1795392000",
    ),
    (
        "DateLessThan",
        "aws:CurrentTime",
        &["2026-11-23T00:00:00Z"],
        "2026-11-22",
        "2026-11-23",
    ),
    (
        "DateLessThanEquals",
        "aws:EpochTime",
        &["1795392000"],
        "2026-11-23",
        "2026-11-24",
    ),
    (
        "DateGreaterThan",
        "aws:CurrentTime",
        &["2026"],
        "2026-01-02",
        "2026-01-01",
    ),
    (
        "NumericGreaterThan",
        "aws:EpochTime",
        &["1795392000"],
        "2026-11-24",
        "2026-11-23",
    ),
    ("Bool", "aws:SecureTransport", &["True"], "true", "false"),
    ("BinaryEquals", "s3:prefix", &["YS9i"], "a/b", "YS9i"),
    (
        "IpAddress",
        "aws:SourceIp",
        &["192.0.2.9", "2001:db8::/32"],
        "2001:db8::1",
        "192.0.2.8",
    ),
    (
        "NotIpAddress",
        "aws:SourceIp",
        &["203.0.113.5/24"],
        "203.0.114.1",
        "203.0.113.77",
    ),
    (
        "ArnLike",
        "aws:PrincipalArn",
        &["arn:aws:iam::*:user/a*"],
        "arn:aws:iam::111122223333:user/ann",
        "arn:aws:iam::111122223333:user/bob",
    ),
];

#[test]
fn operators_compare_as_documented() {
    for (operator, key, texts, hit, miss) in COMPARISONS {
        assert_eq!(
            holds(operator, key, texts, hit),
            Truth::Yes,
            "{operator} {key} {hit}"
        );
        assert_eq!(
            holds(operator, key, texts, miss),
            Truth::No,
            "{operator} {key} {miss}"
        );
        let if_exists = format!("{operator}IfExists");
        assert_eq!(
            holds(&if_exists, key, texts, hit),
            Truth::Yes,
            "{if_exists}"
        );
        assert_eq!(
            holds(&if_exists, key, texts, miss),
            Truth::No,
            "{if_exists}"
        );
    }
}

#[test]
fn a_missing_key_matches_nothing() {
    for (operator, key, texts, ..) in COMPARISONS {
        let negated = Truth::from(operator.contains("Not"));
        assert_eq!(without(operator, key, texts), negated, "{operator}");
        let if_exists = format!("{operator}IfExists");
        assert_eq!(without(&if_exists, key, texts), Truth::Yes, "{if_exists}");
        let all = format!("ForAllValues:{operator}");
        assert_eq!(without(&all, key, texts), Truth::Yes, "{all}");
        let any = format!("ForAnyValue:{operator}");
        assert_eq!(without(&any, key, texts), Truth::No, "{any}");
        let either = format!("ForAnyValue:{operator}IfExists");
        assert_eq!(without(&either, key, texts), Truth::Unknown, "{either}");
    }
}

#[test]
fn another_spelling_allows_nothing_and_denies() {
    let key = "s3:x-amz-copy-source";
    let holds = |operator: &str, pattern: &str| {
        let mut values = ListedValues::default();
        let texts = |text: &str| vec![text.to_owned().into()];
        let (meant, also) = (texts("b/open d"), texts("b/open+d"));
        values.insert(Key::CopySource, Value::Spelled { meant, also });
        let condition = condition(operator, key, &[pattern]).unwrap();
        condition.holds(&values)
    };
    // Meant, only as it was sent, not at all.
    for (pattern, truth) in [
        ("b/open d", Truth::Yes),
        ("b/open+d", Truth::Unknown),
        ("b/other", Truth::No),
    ] {
        for qualifier in ["", "ForAnyValue:", "ForAllValues:"] {
            for name in ["StringEquals", "StringLike", "StringEqualsIgnoreCase"] {
                let told = holds(&format!("{qualifier}{name}"), pattern);
                assert_eq!(told, truth, "{qualifier}{name} {pattern}");
                let negated = name.replace("String", "StringNot");
                let told = holds(&format!("{qualifier}{negated}IfExists"), pattern);
                assert_eq!(told, truth.not(), "{qualifier}{negated} {pattern}");
            }
        }
    }
    assert_eq!(holds("StringLike", "b/open*"), Truth::Yes);
    assert_eq!(holds("StringNotLike", "b/open*"), Truth::No);
    assert_eq!(holds("Null", "true"), Truth::No);
}

#[test]
fn null_asks_whether_the_key_is_there() {
    let prefix = "s3:prefix";
    assert_eq!(without("Null", prefix, &["true"]), Truth::Yes);
    assert_eq!(without("Null", prefix, &["false"]), Truth::No);
    assert_eq!(holds("Null", prefix, &["true"], "a"), Truth::No);
    assert_eq!(
        holds("Null", prefix, &["false"], ""),
        Truth::Yes,
        "an empty text is one"
    );
    let keys = "s3:RequestObjectTagKeys";
    assert_eq!(
        holds("Null", keys, &["true"], ""),
        Truth::Yes,
        "an empty set is none"
    );
}

#[test]
fn sets_hold_for_all_or_for_any_of_their_values() {
    let check = |operator: &str, value: &str| {
        holds(operator, "s3:RequestObjectTagKeys", &["a", "b"], value)
    };
    for (operator, value, expected) in [
        ("ForAllValues:StringEquals", "a,b", Truth::Yes),
        ("ForAllValues:StringEquals", "a,c", Truth::No),
        ("ForAllValues:StringEquals", "", Truth::Yes),
        ("ForAnyValue:StringEquals", "a,c", Truth::Yes),
        ("ForAnyValue:StringEquals", "c,d", Truth::No),
        ("ForAnyValue:StringEquals", "", Truth::No),
        ("ForAllValues:StringNotEquals", "c,d", Truth::Yes),
        ("ForAllValues:StringNotEquals", "a,c", Truth::No),
        ("ForAnyValue:StringNotEquals", "a,c", Truth::Yes),
        ("ForAnyValue:StringNotEquals", "a,b", Truth::No),
        ("StringEquals", "c,a", Truth::Yes),
        ("StringNotEquals", "c,a", Truth::No),
        ("StringNotEquals", "c,d", Truth::Yes),
    ] {
        assert_eq!(check(operator, value), expected, "{operator} {value}");
    }
}

#[test]
fn ipv4_within_ipv6_is_ipv4() {
    let range = ["203.0.113.0/24"];
    assert_eq!(
        holds("IpAddress", "aws:SourceIp", &range, "::ffff:203.0.113.7"),
        Truth::Yes
    );
    assert_eq!(
        holds("IpAddress", "aws:SourceIp", &range, "::203.0.113.7"),
        Truth::No
    );
    assert_eq!(
        holds("IpAddress", "aws:SourceIp", &["::/0"], "203.0.113.7"),
        Truth::No
    );
    assert_eq!(
        holds("IpAddress", "aws:SourceIp", &["0.0.0.0/0"], "203.0.113.7"),
        Truth::Yes
    );
}

#[test]
fn a_value_of_another_kind_is_not_compared() {
    let condition = condition("IpAddress", "aws:SourceIp", &["0.0.0.0/0"]).unwrap();
    let mut values = ListedValues::default();
    values.insert(Key::SourceIp, "203.0.113.7");
    assert_eq!(condition.holds(&values), Truth::Unknown);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (operator, key, text) in [
        ("StringEqual", "s3:prefix", "a"),
        ("stringequals", "s3:prefix", "a"),
        ("NullIfExists", "s3:prefix", "true"),
        ("ForAnyValue:Null", "s3:prefix", "true"),
        ("ForSomeValues:StringEquals", "s3:prefix", "a"),
        ("StringEquals", "aws:SourceVpc", "a"),
        ("StringEquals", "aws:SourceIp", "192.0.2.1"),
        ("IpAddress", "s3:prefix", "192.0.2.1"),
        ("NumericEquals", "s3:prefix", "1"),
        ("Bool", "s3:prefix", "true"),
        ("ArnLike", "s3:prefix", "arn:aws:s3:::a"),
        ("NumericEquals", "aws:CurrentTime", "1"),
        ("NumericEquals", "s3:max-keys", "ten"),
        ("NumericEquals", "s3:max-keys", "${aws:username}"),
        ("DateLessThan", "aws:CurrentTime", "tomorrow"),
        ("Bool", "aws:SecureTransport", "yes"),
        ("BinaryEquals", "s3:prefix", "***"),
        ("IpAddress", "aws:SourceIp", "192.0.2.0/33"),
        ("IpAddress", "aws:SourceIp", "192.0.2"),
        ("ArnEquals", "aws:PrincipalArn", "ann"),
        ("Null", "s3:prefix", "a"),
        ("StringEquals", "s3:prefix", "${aws:nothing}"),
    ] {
        assert!(
            condition(operator, key, &[text]).is_err(),
            "{operator} {key} {text}"
        );
    }
}
