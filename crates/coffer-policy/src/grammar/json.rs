//! JSON as it was written: fields in their order, none twice, numbers as text.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserializer, Serialize, Serializer};

use crate::error::{Element, Fault, PolicyError, Quoted};
use crate::limits::{DEPTH, FIELDS, NUMBER_CHARS, POLICY_BYTES, TEXT_BYTES};

/// A value of JSON.
#[cfg_attr(test, derive(Debug))]
#[derive(Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Reads a policy's text, which is bounded in length and in depth.
pub(crate) fn parse(text: &[u8]) -> Result<Json, Fault> {
    if text.len() > TEXT_BYTES {
        let text_bytes = text.len();
        return Err(Fault::TextTooLong { text_bytes });
    }
    let invalid = |error: serde_json::Error| Fault::Json {
        reason: error.to_string(),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let json = Nested { left: DEPTH }.deserialize(&mut deserializer);
    let json = json.map_err(invalid)?;
    deserializer.end().map_err(invalid)?;
    Ok(json)
}

/// Sees that what a client sent is no longer than AWS allows. What is stored may be: it has ids in
/// place of names, and quotes numbers.
pub(crate) fn check_length(text: &[u8]) -> Result<(), Fault> {
    let policy_bytes = bytes_without_white_space(text);
    if policy_bytes > POLICY_BYTES {
        return Err(Fault::TooLong { policy_bytes });
    }
    Ok(())
}

/// The length of JSON without the white space between its parts, in bytes.
fn bytes_without_white_space(text: &[u8]) -> usize {
    let mut in_text = false;
    let mut is_escaped = false;
    let counts = |byte: &&u8| {
        let is_white_space = !in_text && byte.is_ascii_whitespace();
        if **byte == b'"' && !is_escaped {
            in_text = !in_text;
        }
        is_escaped = in_text && **byte == b'\\' && !is_escaped;
        !is_white_space
    };
    text.iter().filter(counts).count()
}

impl Json {
    /// The text, where it is one.
    pub(crate) fn text(&self, element: Element) -> Result<&str, PolicyError> {
        let expected = "a text";
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(Fault::Type { expected }.at(element)),
        }
    }

    /// The fields, where it is an object.
    pub(crate) fn object(&self, element: Element) -> Result<&[(String, Json)], PolicyError> {
        let expected = "an object";
        match self {
            Self::Object(fields) => Ok(fields),
            _ => Err(Fault::Type { expected }.at(element)),
        }
    }

    /// The values of a list that isn't empty, or the one value that stands for it.
    pub(crate) fn list(&self, element: Element) -> Result<&[Json], PolicyError> {
        match self {
            Self::List(values) if values.is_empty() => Err(Fault::Empty(element).at(element)),
            Self::List(values) => Ok(values),
            value => Ok(std::slice::from_ref(value)),
        }
    }

    /// The texts of a list, or the one text that stands for it.
    pub(crate) fn texts(&self, element: Element) -> Result<Vec<String>, PolicyError> {
        let values = self.list(element)?.iter();
        values
            .map(|value| value.text(element).map(str::to_owned))
            .collect()
    }

    /// One text, or the list of several.
    pub(crate) fn from_texts(texts: impl IntoIterator<Item = String>) -> Self {
        let mut texts: Vec<Self> = texts.into_iter().map(Self::Text).collect();
        match texts.pop() {
            Some(text) if texts.is_empty() => text,
            last => {
                texts.extend(last);
                Self::List(texts)
            }
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(text) | Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                values
                    .iter()
                    .try_for_each(|value| list.serialize_element(value))?;
                list.end()
            }
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// Reads a value that may hold so many lists and objects in each other.
#[derive(Clone, Copy)]
struct Nested {
    left: usize,
}

impl Nested {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        let nested = left.map(|left| Self { left });
        nested.ok_or_else(|| E::custom("nested deeper than a policy is"))
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        // `1e300` would be written with 301 digits.
        let text = value.to_string();
        if text.len() > NUMBER_CHARS {
            return Err(E::custom("a number has too many digits"));
        }
        Ok(Json::Number(text))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(name) = access.next_key::<String>()? {
            if fields.iter().any(|(known, _)| *known == name) {
                let name = Quoted::from(name.as_str());
                return Err(A::Error::custom(format_args!(
                    "field `{name}` stands twice"
                )));
            }
            if fields.len() == FIELDS {
                return Err(A::Error::custom("an object has too many fields"));
            }
            fields.push((name, access.next_value_seed(inner)?));
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_doubtful_is_refused() {
        assert!(reason(r#"{"a": 1, "a": 1}"#).contains("field `a` stands twice"));
        assert!(reason(r#"{"a": [{"b": 1, "b": 1}]}"#).contains("stands twice"));
        assert!(reason("{} {}").contains("trailing"));
        assert!(reason("").contains("EOF"));
        assert!(reason("[1e300]").contains("too many digits"));
        assert!(reason("{\"a\": \"\u{1}\"}").contains("control character"));
    }

    #[test]
    fn depth_and_sizes_are_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(nested(DEPTH).as_bytes()).is_ok());
        assert!(reason(&nested(DEPTH + 1)).contains("nested deeper"));
        assert!(reason(&"[".repeat(TEXT_BYTES)).contains("nested deeper"));
        let fields: Vec<String> = (0..=FIELDS).map(|at| format!("\"{at}\":1")).collect();
        assert!(reason(&format!("{{{}}}", fields.join(","))).contains("too many fields"));
        let long = format!("\"{}\"", "x".repeat(POLICY_BYTES - 2));
        assert_eq!(check_length(long.as_bytes()), Ok(()));
        let spaced = format!(" {long}\n\t ");
        assert_eq!(
            check_length(spaced.as_bytes()),
            Ok(()),
            "white space is free"
        );
        let longer = format!("[\"{}\"]", " ".repeat(POLICY_BYTES - 3));
        assert_eq!(
            check_length(longer.as_bytes()),
            Err(Fault::TooLong {
                policy_bytes: POLICY_BYTES + 1
            })
        );
        let text_bytes = TEXT_BYTES + 1;
        let spaces = " ".repeat(text_bytes);
        assert_eq!(
            parse(spaces.as_bytes()),
            Err(Fault::TextTooLong { text_bytes })
        );
    }

    #[test]
    fn white_space_counts_within_texts_alone() {
        for (text, bytes) in [
            ("{ \"a b\" : 1 }", 9),
            ("\" \\\" \"", 6),
            ("\" \\\\\" ", 5),
            ("[\n]\t", 2),
        ] {
            assert_eq!(bytes_without_white_space(text.as_bytes()), bytes, "{text}");
        }
    }
}
