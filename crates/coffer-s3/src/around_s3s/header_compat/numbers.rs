//! Numbers in queries.

use http::Uri;
use s3s::{S3Result, s3_error};

use crate::http::percent::form_pairs;

/// Parameters that are numbers: all that s3s reads.
pub(in crate::around_s3s) const NUMBERS: [&str; 6] = [
    "max-buckets",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
];

/// Those that are none where they have no value: of ListParts, as on S3.
const EMPTY_NUMBERS: [&str; 2] = ["max-parts", "part-number-marker"];

/// Refuses numbers with a `+` before them, which s3s would take, as it refuses what is none. A `+`
/// that stands in the query as such is a space.
///
/// # Errors
/// `InvalidArgument`.
pub(super) fn refuse_plus(uri: &Uri) -> S3Result {
    let query = uri.query().unwrap_or("");
    if !query.contains("=%2B") && !query.contains("=%2b") {
        return Ok(());
    }
    let is_signed = |(name, value): &(String, String)| {
        value.starts_with('+') && NUMBERS.contains(&name.as_str())
    };
    match form_pairs(query)
        .unwrap_or_default()
        .into_iter()
        .find(is_signed)
    {
        Some((name, value)) => Err(s3_error!(InvalidArgument, "invalid query: {name}: {value}")),
        None => Ok(()),
    }
}

/// The address without numbers that have no value, where it has such.
pub(super) fn without_empty_numbers(uri: &Uri) -> S3Result<Option<Uri>> {
    let query = uri.query().unwrap_or("");
    if !query.split('&').any(is_empty_number) {
        return Ok(None);
    }
    let kept = query.split('&').filter(|pair| !is_empty_number(pair));
    let kept: Vec<_> = kept.collect();
    let text = format!("{}?{}", uri.path(), kept.join("&"));
    text.parse().map(Some).map_err(|_| s3_error!(InvalidURI))
}

fn is_empty_number(pair: &str) -> bool {
    EMPTY_NUMBERS.contains(&pair.strip_suffix('=').unwrap_or(pair))
}
