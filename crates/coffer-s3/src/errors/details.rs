//! What an error tells in elements of its own, for which s3s has no room: such as when a presigned
//! URL expired.

use quick_xml::escape::escape;
use s3s::S3Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Elements and their texts, in their order.
#[derive(Debug, thiserror::Error)]
#[error("an error with details")]
struct Details(Vec<(&'static str, String)>);

/// The same error with elements of its own.
pub(crate) fn with(mut error: S3Error, details: Vec<(&'static str, String)>) -> S3Error {
    error.set_source(Box::new(Details(details)));
    error
}

/// The elements of an error, as XML.
pub(crate) fn xml_of(error: &S3Error) -> Option<String> {
    let source: &(dyn std::error::Error + 'static) = error.source()?;
    let Details(details) = source.downcast_ref()?;
    let element = |(name, text): &(&str, String)| format!("<{name}>{}</{name}>", escape(text));
    Some(details.iter().map(element).collect())
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
        let told = with(plain, vec![("A", "x&y".into()), ("B", written(0))]);
        assert_eq!(
            xml_of(&told).unwrap(),
            "<A>x&amp;y</A><B>1970-01-01T00:00:00Z</B>"
        );
    }
}
