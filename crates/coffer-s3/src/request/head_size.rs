//! How long the head of a request may be. HTTP takes longer ones, so that clients hear of it in
//! S3's words; what HTTP does not take is refused in the same words.

use std::time::SystemTime;

use http::request::Parts;
use s3s::{S3Result, s3_error};

use crate::errors::details;
use crate::limits::HEAD_MAX_BYTES;
use crate::request::ids::RequestIds;

/// Refuses a head that is too long.
///
/// # Errors
/// As S3: `RequestHeaderSectionTooLarge`.
pub(crate) fn check(head: &Parts) -> S3Result {
    if bytes_of(head) <= HEAD_MAX_BYTES {
        return Ok(());
    }
    let error = s3_error!(
        RequestHeaderSectionTooLarge,
        "Your request header section exceeds the maximum allowed size."
    );
    let told = vec![("MaxSizeAllowed", HEAD_MAX_BYTES.to_string())];
    Err(details::with(error, told))
}

/// The answer to a head that HTTP has not read to its end, for it is far too long or has too many
/// lines: all of it, from its first line on. Nothing is known of the request, not even its method.
pub fn unread_head() -> Vec<u8> {
    let ids = RequestIds::draw();
    let (request_id, host_id) = (ids.request_id(), ids.host_id());
    let date = httpdate::fmt_http_date(SystemTime::now());
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error>\
         <Code>RequestHeaderSectionTooLarge</Code>\
         <Message>Your request header section exceeds the maximum allowed size, or has too many \
         headers.</Message><MaxSizeAllowed>{HEAD_MAX_BYTES}</MaxSizeAllowed>\
         <RequestId>{request_id}</RequestId><HostId>{host_id}</HostId></Error>"
    );
    let length = body.len();
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/xml\r\n\
         content-length: {length}\r\nserver: coffer\r\nx-amz-request-id: {request_id}\r\n\
         x-amz-id-2: {host_id}\r\nconnection: close\r\ndate: {date}\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// The length of a head as it is usually written: it comes with as little space as there must be.
fn bytes_of(head: &Parts) -> usize {
    const AROUND_TARGET: usize = "  HTTP/1.1\r\n".len();
    const AROUND_HEADER: usize = ": \r\n".len();
    const END: usize = "\r\n".len();
    let target = head.uri.path_and_query();
    let line = head.method.as_str().len() + target.map_or(1, |target| target.as_str().len());
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + AROUND_HEADER
    };
    let headers: usize = head.headers.iter().map(header).sum();
    line + AROUND_TARGET + headers + END
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(path: &str, value_bytes: usize) -> Parts {
        let request = Request::get(path)
            .header("host", "h")
            .header("x-amz-meta-a", "a".repeat(value_bytes));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_head_is_as_long_as_it_was_sent() {
        let sent = "GET /a?b=c HTTP/1.1\r\nhost: h\r\nx-amz-meta-a: aaa\r\n\r\n";
        assert_eq!(bytes_of(&head("/a?b=c", 3)), sent.len());
    }

    #[test]
    fn what_was_not_read_is_refused_by_a_whole_answer() {
        let answer = String::from_utf8(unread_head()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        let length = format!("\r\ncontent-length: {}\r\n", body.len());
        assert!(head.contains(&length), "{head}");
        let element = |name: &str| {
            let (_, rest) = body.split_once(&format!("<{name}>")).unwrap();
            rest.split_once('<').unwrap().0
        };
        assert_eq!(element("Code"), "RequestHeaderSectionTooLarge");
        assert_eq!(element("MaxSizeAllowed"), HEAD_MAX_BYTES.to_string());
        let id = format!("\r\nx-amz-request-id: {}\r\n", element("RequestId"));
        assert!(head.contains(&id), "{answer}");
    }

    #[test]
    fn no_head_is_longer_than_the_limit() {
        let rest = bytes_of(&head("/", 0));
        assert!(check(&head("/", HEAD_MAX_BYTES - rest)).is_ok());
        let refused = check(&head("/", HEAD_MAX_BYTES - rest + 1)).unwrap_err();
        assert_eq!(refused.code().as_str(), "RequestHeaderSectionTooLarge");
        let told = details::xml_of(&refused);
        assert_eq!(
            told.as_deref(),
            Some("<MaxSizeAllowed>32768</MaxSizeAllowed>")
        );
    }
}
