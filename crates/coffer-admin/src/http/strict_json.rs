//! Objects of JSON, and nothing that only looks like them: serde takes a list for a struct, too, by
//! the order of its fields.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A value that was written as an object.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfMap(PhantomData)).map(Self)
    }
}

struct OfMap<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// For `#[serde(deserialize_with)]`: a list of objects.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

/// For `#[serde(deserialize_with)]`: a list of objects, or null.
pub(crate) fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(objects.map(|objects| objects.into_iter().map(|Object(value)| value).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        a: u8,
        #[serde(default, deserialize_with = "list")]
        more: Vec<Pair>,
    }

    #[test]
    fn lists_are_no_objects() {
        let read = serde_json::from_str::<Object<Pair>>;
        let Object(pair) = read(r#"{"a":1,"more":[{"a":2}]}"#).unwrap();
        assert_eq!((pair.a, pair.more[0].a), (1, 2));
        for wrong in [
            "[1]",
            "[]",
            "null",
            r#"{"a":1,"more":[[2]]}"#,
            r#"{"a":1,"b":2}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
