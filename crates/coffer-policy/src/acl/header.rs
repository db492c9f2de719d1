//! Grants in the words of headers: `x-amz-grant-read: id="…", uri="…"`.

use std::borrow::Cow;

use crate::conditions::Value;

/// The value that a header of grants has for its condition key: as it was sent, and the same grants
/// as `id=…,uri=…`, with quotation marks and without, which all mean the same.
pub fn grants_in_header<'a>(sent: impl Into<Cow<'a, str>>) -> Value<'a> {
    let sent = sent.into();
    let written = written(&sent);
    let mut meant = vec![sent];
    meant.extend(written.into_iter().flatten().map(Cow::Owned));
    Value::Spelled {
        meant,
        also: Vec::new(),
    }
}

/// The other ways to write it; none where it can't be read, which the operation refuses.
fn written(sent: &str) -> Option<Vec<String>> {
    let named: Option<Vec<_>> = sent.split(',').map(grantee).collect();
    let named = named?;
    let marked = ["", "\""].map(|mark| {
        let one = |(kind, value): &(&str, &str)| format!("{kind}={mark}{value}{mark}");
        named.iter().map(one).collect::<Vec<_>>().join(",")
    });
    let others = marked.into_iter().filter(|written| written != sent);
    Some(others.collect())
}

fn grantee(text: &str) -> Option<(&'static str, &str)> {
    let (kind, value) = text.split_once('=')?;
    let kinds = ["id", "uri", "emailAddress"];
    let mut known = kinds.into_iter();
    let kind = known.find(|known| kind.trim().eq_ignore_ascii_case(known))?;
    let value = value.trim();
    let bare = value.strip_prefix('"').map(|rest| rest.strip_suffix('"'));
    Some((kind, bare.unwrap_or(Some(value))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_and_spaces_mean_nothing() {
        let spelled = |sent: &str| match grants_in_header(sent) {
            Value::Spelled { meant, .. } => meant.join(" | "),
            _ => panic!("it has one value"),
        };
        let bare = "id=a,uri=http://b";
        let marked = r#"id="a",uri="http://b""#;
        assert_eq!(spelled(bare), format!("{bare} | {marked}"));
        assert_eq!(spelled(marked), format!("{marked} | {bare}"));
        let other = r#" ID="a" , URI=http://b"#;
        assert_eq!(spelled(other), format!("{other} | {bare} | {marked}"));
        for none in ["", "id", "name=a", "id=\"a", "id=a,"] {
            assert_eq!(spelled(none), none);
        }
    }
}
