//! The JSON of a form's policy, which has more than JSON has (Amazon S3 API Reference, "POST
//! Policy"): two more escapes, and in AWS's own examples commas before a bracket that closes.

/// The same document as JSON has it. What is no policy in either form is given as it is: the
/// reader of JSON refuses it.
pub(crate) fn plain_json(policy: &str) -> String {
    let mut plain = String::with_capacity(policy.len());
    let mut signs = policy.chars();
    let mut in_text = false;
    // Where a comma stands, and how long the text was up to it, until something follows.
    let mut comma = None;
    while let Some(sign) = signs.next() {
        if in_text {
            match sign {
                '\\' => push_escaped(&mut plain, signs.next()),
                _ => plain.push(sign),
            }
            in_text = sign != '"';
            continue;
        }
        match sign {
            ']' | '}' => {
                if let Some(place) = comma.take() {
                    plain.remove(place);
                }
            }
            // After an opening bracket or another comma it separates nothing.
            ',' if separates(&plain) => comma = Some(plain.len()),
            ' ' | '\t' | '\n' | '\r' => {}
            _ => comma = None,
        }
        in_text = sign == '"';
        plain.push(sign);
    }
    plain
}

/// Writes what follows a backslash in a text: `$`, and a vertical tab, for which JSON has a number
/// only.
fn push_escaped(plain: &mut String, sign: Option<char>) {
    match sign {
        Some('$') => plain.push('$'),
        Some('v') => plain.push_str("\\u000b"),
        other => {
            plain.push('\\');
            plain.extend(other);
        }
    }
}

/// Whether a comma that comes next has something before it.
fn separates(plain: &str) -> bool {
    let before = plain.trim_end_matches([' ', '\t', '\n', '\r']);
    !before.is_empty() && !before.ends_with(['[', '{', ',', ':'])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(policy: &str) -> Option<Value> {
        serde_json::from_str(&plain_json(policy)).ok()
    }

    #[test]
    fn json_stays_what_it_is() {
        for text in [
            r#"{"a": ["b", 1, {"c": null}], "d": ""}"#,
            r#"["a\"],b", "\\", "\\\"]", ",]", "{,}", "\u0024\n"]"#,
            "[]",
            "",
        ] {
            assert_eq!(plain_json(text), text);
        }
    }

    #[test]
    fn both_escapes_are_read_in_texts_alone() {
        assert_eq!(
            read(r#"["\$foo", "a\vb"]"#),
            Some(json!(["$foo", "a\u{b}b"]))
        );
        // A backslash that is escaped escapes nothing.
        let escaped = json!(["\\$", "\\v"]);
        assert_eq!(read(r#"["\\$", "\\v"]"#), Some(escaped));
        assert_eq!(read(r#"["\x"]"#), None);
        assert_eq!(read(r#"[\$]"#), None);
        assert_eq!(read(r#"["a\"#), None);
    }

    #[test]
    fn a_comma_may_stand_before_a_bracket_that_closes() {
        let expected = json!({"a": ["b", "c"], "d": {"e": "f"}});
        let text = "{\"a\": [\"b\", \"c\",\n ], \"d\": {\"e\": \"f\" , },}";
        assert_eq!(read(text), Some(expected));
        assert_eq!(read(r#"["a,", ",]",]"#), Some(json!(["a,", ",]"])));
        assert_eq!(read(r#"[{"a": "b"},]"#), Some(json!([{"a": "b"}])));
        for wrong in ["[,]", "{,}", "[1,,]", "[1,,2]", "[1],", "{\"a\":,}", ","] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
