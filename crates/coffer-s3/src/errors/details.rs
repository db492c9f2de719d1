//! What an error tells in elements of its own, for which s3s has no room: such as when a presigned
//! URL expired.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use quick_xml::escape::escape;
use s3s::S3Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::limits::ECHO_MAX_BYTES;

/// Takes elements through s3s, which keeps of an operation's error the code, the message and the
/// headers. No answer has it in the end.
const CARRIED: HeaderName = HeaderName::from_static("x-coffer-error-details");

/// Elements and their texts, in their order. They may hold names, so none of them is logged.
#[derive(thiserror::Error)]
#[error("an error with details")]
struct Details(Vec<(&'static str, String)>);

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Details")
    }
}

/// The same error with elements of its own, where s3s has no part in it.
pub(crate) fn with(mut error: S3Error, details: Vec<(&'static str, String)>) -> S3Error {
    error.set_source(Box::new(Details(details)));
    error
}

/// The elements of an error, as XML.
pub(crate) fn xml_of(error: &S3Error) -> Option<String> {
    let source: &(dyn std::error::Error + 'static) = error.source()?;
    let Details(details) = source.downcast_ref()?;
    Some(xml(details))
}

/// The same error with elements of its own, behind those that it has, also where an operation gives
/// it to s3s.
pub(crate) fn carried(mut error: S3Error, details: &[(&'static str, String)]) -> S3Error {
    let mut headers = error.headers().cloned().unwrap_or_default();
    let before = taken(&mut headers).unwrap_or_default();
    let whole = HeaderValue::try_from(format!("{before}{}", xml(details)));
    // What no header can hold is left out.
    if let Ok(mut value) = whole.or_else(|_| HeaderValue::try_from(before)) {
        value.set_sensitive(true);
        headers.insert(CARRIED, value);
    }
    // s3s lets headers of an error replace its own.
    let kind = HeaderValue::from_static("application/xml");
    headers.insert(header::CONTENT_TYPE, kind);
    error.set_headers(headers);
    error
}

/// Takes off an answer what it carries.
pub(crate) fn taken(headers: &mut HeaderMap) -> Option<String> {
    let value = headers.remove(CARRIED)?;
    std::str::from_utf8(value.as_bytes())
        .map(str::to_owned)
        .ok()
}

/// The refusal of an argument with its name and, unless that is long, what was sent.
pub(crate) fn of_argument(error: S3Error, name: &str, sent: &str) -> S3Error {
    let mut told = vec![("ArgumentName", name.to_owned())];
    if sent.len() <= ECHO_MAX_BYTES {
        told.push(("ArgumentValue", sent.to_owned()));
    }
    carried(error, &told)
}

/// Elements as XML, in which any text is readable.
pub(crate) fn xml(details: &[(&'static str, String)]) -> String {
    let element = |(name, text): &(&str, String)| format!("<{name}>{}</{name}>", escaped(text));
    details.iter().map(element).collect()
}

/// XML has no way to write most control characters; a carriage return is a reference, for as it is
/// it would be read as the end of a line.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in escape(text).chars() {
        match character {
            '\r' => written.push_str("&#xD;"),
            _ if is_unwritable(character) => written.push(char::REPLACEMENT_CHARACTER),
            _ => written.push(character),
        }
    }
    written
}

/// Whether XML has no way to write it (XML 1.0, section 2.2).
pub(crate) fn is_unwritable(character: char) -> bool {
    matches!(character, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}')
        || matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// A time as S3 writes it in errors.
pub(crate) fn written(unix_seconds: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(unix_seconds);
    let text = time.ok().and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use s3s::s3_error;

    use super::*;

    #[test]
    fn details_are_elements() {
        let plain = s3_error!(AccessDenied, "no");
        assert_eq!(xml_of(&plain), None);
        let told = with(plain, vec![("A", "x&y\r".into()), ("B", written(0))]);
        assert_eq!(
            xml_of(&told).unwrap(),
            "<A>x&amp;y&#xD;</A><B>1970-01-01T00:00:00Z</B>"
        );
    }

    #[test]
    fn details_go_through_s3s_and_no_further() {
        let refused = s3_error!(InvalidArgument, "no");
        let refused = of_argument(refused, "versionId", "<\u{e4}>\r");
        let mut headers = refused.headers().unwrap().clone();
        assert_eq!(headers[header::CONTENT_TYPE], "application/xml");
        assert!(!format!("{refused:?}").contains("ArgumentName"));
        assert_eq!(
            taken(&mut headers).unwrap(),
            "<ArgumentName>versionId</ArgumentName>\
             <ArgumentValue>&lt;\u{e4}&gt;&#xD;</ArgumentValue>"
        );
        assert_eq!(headers.len(), 1);
        let long = "x".repeat(ECHO_MAX_BYTES + 1);
        let refused = of_argument(s3_error!(InvalidArgument, "no"), "versionId", &long);
        let mut headers = refused.headers().unwrap().clone();
        let told = taken(&mut headers);
        assert_eq!(
            told.as_deref(),
            Some("<ArgumentName>versionId</ArgumentName>")
        );
    }
}
