//! The policy of a form: until when, and what its fields may be (Amazon S3 API Reference, "Creating
//! an HTML Form", "POST Policy").

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use s3s::{S3Error, S3Result, s3_error};
use serde::Deserialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::forms::fields::Fields;
use crate::forms::policy_json::plain_json;
use crate::parameters::customer_key::holds_a_key;

/// Fields that need no condition.
const FREE: [&str; 5] = [
    "policy",
    "signature",
    "awsaccesskeyid",
    "x-amz-signature",
    "file",
];

/// The file's length may be from the first number to the second.
pub(crate) type LengthRange = (u64, u64);

/// A policy whose signature is not looked at here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    expiration: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Condition {
    /// `{"field": "value"}`.
    Exactly(Map<String, Value>),
    /// `["eq", "$field", "value"]`, `["starts-with", "$field", "start"]`.
    Matches(String, String, String),
    /// `["content-length-range", 1, 10]`: numbers, also as text.
    Length(String, Value, Value),
}

impl Policy {
    /// Reads a policy as the form has it, in Base64.
    ///
    /// # Errors
    /// `InvalidPolicyDocument`.
    pub(crate) fn parse(text: &str) -> S3Result<Self> {
        let json = BASE64
            .decode(text.trim())
            .map_err(|_| invalid("it is no Base64"))?;
        let json = String::from_utf8(json).map_err(|_| invalid("it is no JSON"))?;
        serde_json::from_str(&plain_json(&json))
            .map_err(|_| invalid("it is no JSON of an expiration and conditions, and nothing else"))
    }

    /// Checks fields, the bucket and the key they make against it; the length that the file may
    /// have.
    ///
    /// # Errors
    /// As S3: `AccessDenied` for what does not hold, `InvalidPolicyDocument`.
    pub(crate) fn check(
        &self,
        fields: &Fields,
        bucket: &str,
        key: &str,
        now: OffsetDateTime,
    ) -> S3Result<Option<LengthRange>> {
        let until = OffsetDateTime::parse(&self.expiration, &Rfc3339);
        let until = until.map_err(|_| invalid("expiration is no time as in RFC 3339"))?;
        if until <= now {
            return Err(denied("Policy expired."));
        }
        let value = |name: &str| match name {
            "bucket" => Some(bucket),
            "key" => Some(key),
            name => fields.get(name),
        };
        let (mut named, mut range) = (Vec::new(), None);
        for condition in &self.conditions {
            let (name, operator, wanted) = match condition.read()? {
                Read::Length((least, most)) => {
                    let (before_least, before_most) = range.unwrap_or((0, u64::MAX));
                    range = Some((least.max(before_least), most.min(before_most)));
                    continue;
                }
                Read::Field(name, operator, wanted) => (name, operator, wanted),
            };
            let holds = value(&name).is_some_and(|value| operator.holds(&name, value, &wanted));
            if !holds {
                let field = format!("${name}");
                // A refusal is shown, kept and sent on, and a key is a secret.
                let wanted = if holds_a_key(&name) {
                    ""
                } else {
                    wanted.as_str()
                };
                let told = [operator.name(), field.as_str(), wanted].map(Value::from);
                let told = told.map(|text| text.to_string()).join(", ");
                return Err(denied(&format!("Policy Condition failed: [{told}]")));
            }
            named.push(name);
        }
        if !named.iter().any(|name| name == "bucket") {
            return Err(denied("Extra input fields: bucket"));
        }
        let extra = fields.each().map(|(name, _)| name).find(|name| {
            let is_free = FREE.contains(name) || name.starts_with("x-ignore-");
            !is_free && !named.iter().any(|other| other == name)
        });
        match extra {
            Some(name) => Err(denied(&format!("Extra input fields: {name}"))),
            None => Ok(range),
        }
    }
}

/// A condition, once it is clear what it says.
enum Read {
    Field(String, Operator, String),
    Length(LengthRange),
}

#[derive(Clone, Copy)]
enum Operator {
    Equals,
    StartsWith,
}

impl Operator {
    fn name(self) -> &'static str {
        match self {
            Self::Equals => "eq",
            Self::StartsWith => "starts-with",
        }
    }

    fn holds(self, name: &str, value: &str, wanted: &str) -> bool {
        match self {
            Self::Equals => value == wanted,
            // A list of types holds when each of them does.
            Self::StartsWith if name == "content-type" => value
                .split(',')
                .all(|one| one.trim_start().starts_with(wanted)),
            Self::StartsWith => value.starts_with(wanted),
        }
    }
}

impl Condition {
    fn read(&self) -> S3Result<Read> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match self {
            Self::Exactly(map) => {
                let mut pairs = map.iter();
                let (Some((name, value)), None) = (pairs.next(), pairs.next()) else {
                    return Err(invalid("a simple condition has one field"));
                };
                let value = text(value).ok_or_else(|| invalid("a value is text"))?;
                Ok(Read::Field(
                    name.to_ascii_lowercase(),
                    Operator::Equals,
                    value,
                ))
            }
            Self::Matches(operator, field, value) => {
                if is_length(operator) {
                    return length(field.parse().ok(), value.parse().ok());
                }
                let operator = match operator.to_ascii_lowercase().as_str() {
                    "eq" => Operator::Equals,
                    "starts-with" => Operator::StartsWith,
                    _ => return Err(invalid("a condition is eq, starts-with or of a length")),
                };
                let name = field.strip_prefix('$');
                let name = name.ok_or_else(|| invalid("a field's name begins with $"))?;
                Ok(Read::Field(
                    name.to_ascii_lowercase(),
                    operator,
                    value.clone(),
                ))
            }
            Self::Length(operator, least, most) if is_length(operator) => {
                let number = |value: &Value| text(value)?.parse().ok();
                length(number(least), number(most))
            }
            Self::Length(..) => Err(invalid("a value is text")),
        }
    }
}

fn is_length(operator: &str) -> bool {
    operator.eq_ignore_ascii_case("content-length-range")
}

fn length(least: Option<u64>, most: Option<u64>) -> S3Result<Read> {
    match (least, most) {
        (Some(least), Some(most)) if least <= most => Ok(Read::Length((least, most))),
        _ => Err(invalid(
            "content-length-range has two numbers, the smaller first",
        )),
    }
}

fn invalid(why: &str) -> S3Error {
    s3_error!(InvalidPolicyDocument, "Invalid Policy: {why}")
}

fn denied(why: &str) -> S3Error {
    s3_error!(AccessDenied, "Invalid according to Policy: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(conditions: &str, fields: &[(&str, &str)]) -> Result<Option<LengthRange>, String> {
        let comma = if conditions.is_empty() { "" } else { ", " };
        let bucket = "{\"bucket\": \"mine\"}";
        let json = format!(
            "{{\"expiration\": \"2030-01-01T00:00:00.000Z\", \
             \"conditions\": [{bucket}{comma}{conditions}]}}"
        );
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        Policy::parse(&BASE64.encode(json))
            .and_then(|policy| policy.check(&Fields::of(fields), "mine", "in/a", now))
            .map_err(|error| format!("{} {}", error.code().as_str(), error.message().unwrap()))
    }

    #[test]
    fn conditions_hold_or_do_not() {
        let key = ("key", "in/${filename}");
        assert_eq!(
            checked("[\"starts-with\", \"$key\", \"in/\"]", &[key]),
            Ok(None)
        );
        assert_eq!(
            checked(
                "[\"eq\", \"$Key\", \"in/a\"], {\"bucket\": \"mine\"}",
                &[key]
            ),
            Ok(None)
        );
        assert_eq!(
            checked(
                "{\"key\": \"in/a\"}, [\"content-length-range\", 1, \"10\"]",
                &[key]
            ),
            Ok(Some((1, 10)))
        );
        assert_eq!(
            checked(
                "{\"key\": \"in/a\"}, [\"content-length-range\", \"1\", \"10\"]",
                &[key]
            ),
            Ok(Some((1, 10)))
        );
        let types = |value| {
            checked(
                "{\"key\": \"in/a\"}, [\"starts-with\", \"$Content-Type\", \"image/\"]",
                &[key, ("content-type", value)],
            )
        };
        assert_eq!(types("image/png, image/gif"), Ok(None));
        for (conditions, told) in [
            ("", "Extra input fields: key"),
            (
                "{\"key\": \"in/b\"}",
                "Condition failed: [\"eq\", \"$key\", \"in/b\"]",
            ),
            (
                "{\"key\": \"in/a\"}, {\"bucket\": \"other\"}",
                "Condition failed",
            ),
            (
                "{\"key\": \"in/a\"}, [\"eq\", \"$acl\", \"private\"]",
                "Condition failed",
            ),
        ] {
            let refused = checked(conditions, &[key]).unwrap_err();
            assert!(
                refused.starts_with("AccessDenied") && refused.contains(told),
                "{refused}"
            );
        }
        assert!(
            types("image/png, text/html")
                .unwrap_err()
                .contains("failed")
        );
        let free = [
            ("x-ignore-a", "1"),
            ("policy", "2"),
            ("x-amz-signature", "3"),
        ];
        assert_eq!(
            checked("{\"key\": \"in/a\"}", &[&[key], &free[..]].concat()),
            Ok(None)
        );
    }

    #[test]
    fn a_refusal_does_not_repeat_a_key_of_the_client() {
        let start = "x-amz-server-side-encryption-customer-key";
        for (condition, told) in [
            (format!("{{\"{start}\": \"c2VjcmV0\"}}"), "\"eq\""),
            (
                format!("[\"starts-with\", \"${start}\", \"c2VjcmV0\"]"),
                "\"starts-with\"",
            ),
        ] {
            let refused = checked(&condition, &[(start, "b3RoZXI=")]).unwrap_err();
            let told = format!("Condition failed: [{told}, \"${start}\", \"\"]");
            assert!(refused.ends_with(&told), "{refused}");
        }
        let md5 = checked(&format!("{{\"{start}-md5\": \"abc\"}}"), &[]).unwrap_err();
        assert!(md5.contains("abc"), "{md5}");
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for conditions in [
            "[\"like\", \"$key\", \"a\"]",
            "[\"eq\", \"key\", \"a\"]",
            "[\"eq\", \"$key\", 1]",
            "{\"a\": \"b\", \"c\": \"d\"}",
            "{\"a\": [\"b\"]}",
            "[\"content-length-range\", 10, 1]",
            "[\"content-length-range\", -1, 1]",
            "[\"content-length-range\", \"a\", 1]",
            "1",
        ] {
            let refused = checked(conditions, &[]).unwrap_err();
            assert!(
                refused.starts_with("InvalidPolicyDocument"),
                "{conditions}: {refused}"
            );
        }
        for text in ["", "!", "e30=", "W10=", "/w=="] {
            let refused = Policy::parse(text).unwrap_err();
            let told = refused.message().unwrap();
            let is_ours = !told.contains("struct") && !told.contains("line");
            assert!(
                told.starts_with("Invalid Policy: it is no") && is_ours,
                "{told}"
            );
        }
        let refused = checked("1", &[]).unwrap_err();
        assert!(!refused.contains("enum"), "{refused}");
    }

    #[test]
    fn what_the_policies_of_aws_have_besides_is_read() {
        let key = [("key", "in/a")];
        let foo = [("key", "in/a"), ("x-amz-meta-a", "$foo\u{b}")];
        assert_eq!(
            checked("[\"starts-with\", \"$key\", \"in/\"],", &key),
            Ok(None)
        );
        let escaped = "{\"key\": \"in/a\"}, [\"eq\", \"\\$x-amz-meta-a\", \"\\$foo\\v\"]";
        assert_eq!(checked(escaped, &foo), Ok(None));
    }

    #[test]
    fn a_policy_ends() {
        let json =
            b"{\"expiration\": \"2026-01-01T00:00:00Z\", \"conditions\": [{\"bucket\": \"mine\"}]}";
        let policy = Policy::parse(&BASE64.encode(json)).unwrap();
        let at = |seconds| {
            let now = OffsetDateTime::from_unix_timestamp(seconds).unwrap();
            policy.check(&Fields::default(), "mine", "", now).is_ok()
        };
        let end = 1_767_225_600;
        assert!(at(end - 1) && !at(end) && !at(end + 1));
    }
}
