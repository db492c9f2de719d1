//! Byte ranges (RFC 9110, section 14).

use coffer_vault::RangeRequest;
use s3s::dto::Range;
use s3s::{S3Result, s3_error};

/// What a `Range` header asks for; `None` where it is to be ignored: another unit, more than one
/// range, or nothing that the grammar knows. S3 answers those with the whole object.
pub(crate) fn parse(header: &str) -> Option<RangeRequest> {
    let (unit, set) = header.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.split_once('-')?;
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Some(RangeRequest::FromTo {
            first,
            last: Some(last),
        }),
        (Some(first), None) if last.is_empty() => Some(RangeRequest::FromTo { first, last: None }),
        (None, Some(length_bytes)) if first.is_empty() => {
            Some(RangeRequest::Suffix { length_bytes })
        }
        _ => None,
    }
}

/// A number of any length: what does not fit is beyond every object, as the largest number is.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// The header as s3s reads it: it takes positions up to `i64::MAX` only.
pub(crate) fn to_header(range: RangeRequest) -> Option<String> {
    let within = |position: u64| position.min(i64::MAX as u64);
    match range {
        RangeRequest::FromTo {
            first,
            last: Some(last),
        } => Some(format!("bytes={}-{}", within(first), within(last))),
        RangeRequest::FromTo { first, last: None } => Some(format!("bytes={}-", within(first))),
        RangeRequest::Suffix { length_bytes } => Some(format!("bytes=-{}", within(length_bytes))),
        RangeRequest::All | RangeRequest::Part(_) => None,
    }
}

/// A range that s3s has read, or a part number; S3 refuses both at once.
pub(crate) fn requested(range: Option<Range>, part: Option<i32>) -> S3Result<RangeRequest> {
    match (range, part) {
        (None, None) => Ok(RangeRequest::All),
        (Some(Range::Int { first, last }), None) => Ok(RangeRequest::FromTo { first, last }),
        (Some(Range::Suffix { length }), None) => Ok(RangeRequest::Suffix {
            length_bytes: length,
        }),
        (None, Some(number)) => Ok(RangeRequest::Part(part_number(number)?)),
        (Some(_), Some(_)) => Err(s3_error!(
            InvalidRequest,
            "Cannot specify both Range header and partNumber query parameter"
        )),
    }
}

/// A part number, from 1 to 10,000.
pub(crate) fn part_number(number: i32) -> S3Result<u32> {
    match u32::try_from(number) {
        Ok(number) if (1..=coffer_vault::limits::PART_NUMBER_MAX).contains(&number) => Ok(number),
        _ => Err(s3_error!(
            InvalidArgument,
            "Part number must be an integer between 1 and 10000, inclusive"
        )),
    }
}

/// `x-amz-copy-source-range`: both ends, nothing else.
pub(crate) fn copy_source(header: Option<&str>) -> S3Result<RangeRequest> {
    let Some(header) = header else {
        return Ok(RangeRequest::All);
    };
    match parse(header) {
        Some(range @ RangeRequest::FromTo { last: Some(_), .. }) => Ok(range),
        _ => Err(s3_error!(
            InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first \
             and last are the zero-based offsets of the first and last bytes to copy"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_as_http_says() {
        let from_to = |first, last| Some(RangeRequest::FromTo { first, last });
        assert_eq!(parse("bytes=0-0"), from_to(0, Some(0)));
        assert_eq!(parse("Bytes=5-"), from_to(5, None));
        assert_eq!(
            parse("bytes=-7"),
            Some(RangeRequest::Suffix { length_bytes: 7 })
        );
        assert_eq!(
            parse("bytes=9-99999999999999999999"),
            from_to(9, Some(u64::MAX))
        );
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1-2-3",
            "items=0-1",
            "bytes=0x1-2",
            "bytes= -1",
            "bytes =0-1",
            "bytes=0 -1",
        ] {
            assert_eq!(parse(ignored), None, "{ignored}");
        }
    }

    #[test]
    fn copies_need_both_ends() {
        assert_eq!(copy_source(None).unwrap(), RangeRequest::All);
        assert!(copy_source(Some("bytes=0-9")).is_ok());
        for bad in ["bytes=-9", "bytes=9-", "0-9", "bytes=9-0"] {
            assert!(copy_source(Some(bad)).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(first in 0..=i64::MAX as u64, more in 0u64..1 << 40) {
            let range = RangeRequest::FromTo { first, last: Some(first.saturating_add(more)) };
            let header = to_header(range).unwrap();
            prop_assert!(s3s::dto::Range::parse(&header).is_ok());
            prop_assert!(parse(&header).is_some());
        }

        #[test]
        fn s3s_reads_whatever_we_rewrite(header in "[bB]ytes=[0-9]{0,25}-[0-9]{0,25}") {
            if let Some(range) = parse(&header) {
                let rewritten = to_header(range).unwrap();
                prop_assert!(s3s::dto::Range::parse(&rewritten).is_ok(), "{rewritten}");
            }
        }
    }
}
