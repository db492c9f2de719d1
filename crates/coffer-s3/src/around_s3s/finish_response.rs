//! What every answer still needs: ids, S3's messages where s3s gives none, and XML that carries any
//! name.

use std::fmt::Write;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER, SERVER};
use http::{HeaderValue, StatusCode};
use s3s::{Body, HttpResponse};

use crate::around_s3s::answer_xml::Written;
use crate::around_s3s::error_words::{UnreadArgument, element, message, without_promise};
use crate::around_s3s::namespace::with_namespace;
use crate::checksums::fields::{uncover_elements, uncover_header};
use crate::errors::details::{self, is_unwritable};
use crate::errors::mismatches;
use crate::request::context::RequestContext;
use crate::signature::requirements::REGION;

/// Marks an answer whose status is another than s3s gives it: HEAD of a range has 206, not 200.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusInstead(pub(crate) StatusCode);

/// Marks an answer whose entity tag has no quotation marks, which s3s writes around all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareEtag;

/// Marks an answer that has more than s3s writes: XML that stands before the first `end`.
#[derive(Clone, Debug)]
pub(crate) struct BeforeEnd {
    pub(crate) end: &'static str,
    pub(crate) xml: String,
}

/// What an error ends with.
pub(crate) const ERROR_END: &str = "</Error>";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
const HOST_ID: HeaderName = HeaderName::from_static("x-amz-id-2");

/// Completes an answer. Gives the error's code as well, for the log.
pub(crate) fn complete(response: &mut HttpResponse, context: &RequestContext) -> Option<String> {
    if let Some(StatusInstead(status)) = response.extensions().get().copied() {
        *response.status_mut() = status;
    }
    uncover_header(response.headers_mut());
    let mut code = None;
    if let Some(Written(body)) = response.extensions_mut().remove() {
        *response.body_mut() = Body::from(body);
    } else if response.status() == StatusCode::NOT_MODIFIED {
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
    } else if response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/xml")
        && let Some(body) = response.body().bytes()
    {
        if response.status().is_success() {
            complete_document(response, body);
        } else {
            code = complete_error(response, context, body);
        }
    }
    let headers = response.headers_mut();
    if context.body_withheld() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(SERVER, HeaderValue::from_static("coffer"));
    // Digits and Base64 are always valid in a header.
    if let Some([request, host]) = context.ids().header_values() {
        headers.insert(REQUEST_ID, request);
        headers.insert(HOST_ID, host);
    }
    code
}

/// Has a document say what s3s could not write.
fn complete_document(response: &mut HttpResponse, body: Bytes) {
    let mut body = body;
    if let Some(uncovered) = uncover_elements(&body) {
        body = Bytes::from(uncovered);
        *response.body_mut() = Body::from(body.clone());
    }
    if let Some(named) = with_namespace(&body) {
        body = Bytes::from(named);
        *response.body_mut() = Body::from(body.clone());
    }
    if let Some(BeforeEnd { end, xml }) = response.extensions().get() {
        let text = String::from_utf8_lossy(&body);
        let whole = text.replacen(end, &format!("{xml}{end}"), 1);
        *response.body_mut() = Body::from(whole);
    } else if response.extensions().get::<BareEtag>().is_some() {
        *response.body_mut() = Body::from(bare_etag(&body));
    } else if let Some(escaped) = escape_controls(&body) {
        *response.body_mut() = Body::from(escaped);
    }
}

/// Adds ids, and a message where there is none, to an error; gives its code.
fn complete_error(
    response: &mut HttpResponse,
    context: &RequestContext,
    body: Bytes,
) -> Option<String> {
    let mut body = without_controls(body);
    let code = element(&body, "Code").unwrap_or("").to_owned();
    let has_message = element(&body, "Message").is_some();
    if matches!(&*code, "SlowDown" | "ServiceUnavailable") {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    let mut more = String::new();
    if let (false, Some(message)) = (has_message, message(&code)) {
        let _ = write!(more, "<Message>{message}</Message>");
    }
    if code == "AuthorizationHeaderMalformed" {
        let _ = write!(more, "<Region>{REGION}</Region>");
    }
    if let Some(BeforeEnd {
        end: ERROR_END,
        xml,
    }) = response.extensions().get()
    {
        more.push_str(xml);
    }
    if let Some(xml) = details::taken(response.headers_mut()) {
        more.push_str(&xml);
    }
    if let ("XAmzContentSHA256Mismatch", Some(hashes)) = (&*code, context.other_sha256()) {
        more.push_str(&mismatches::of_sha256(hashes));
    }
    if code == "InvalidArgument"
        && let Some(unread) = UnreadArgument::of(&body)
    {
        more.push_str(&unread.elements());
        if let Some(whole) = unread.in_the_words_of_s3(&body) {
            body = Bytes::from(whole);
        }
    }
    if code == "NotImplemented"
        && let Some(said) = without_promise(&body)
    {
        body = Bytes::from(said);
    }
    if let Some(echo) = context.echo() {
        more.push_str(&details::xml(&echo.elements(&code, response.headers())));
    }
    let (request_id, host_id) = (context.request_id(), context.host_id());
    let _ = write!(
        more,
        "<RequestId>{request_id}</RequestId><HostId>{host_id}</HostId>"
    );
    if let Some(start) = body.strip_suffix(ERROR_END.as_bytes()) {
        *response.body_mut() = Body::from([start, more.as_bytes(), ERROR_END.as_bytes()].concat());
    }
    (!code.is_empty()).then_some(code)
}

/// Takes the quotation marks from the only entity tag of an answer.
fn bare_etag(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let bare = |mark: &str| {
        text.replace(&format!("<ETag>{mark}"), "<ETag>")
            .replace(&format!("{mark}</ETag>"), "</ETag>")
    };
    let mark = if text.contains("<ETag>&quot;") {
        "&quot;"
    } else {
        "\""
    };
    bare(mark).into_bytes()
}

/// s3s writes control characters as they are. A carriage return would reach the client as a line
/// feed, and the others make the document unreadable for many; S3 writes them as references. Tabs
/// and line feeds survive as they are.
fn escape_controls(body: &[u8]) -> Option<Vec<u8>> {
    /// Looked at as one, by the processor's vectors.
    const PIECE_BYTES: usize = 256;
    let is_control = |byte: &u8| *byte < 0x20 && *byte != b'\t' && *byte != b'\n';
    // Without a branch a byte, which would be a tenth of what a long list costs.
    let has_control = |piece: &[u8]| piece.iter().fold(false, |has, byte| has | is_control(byte));
    if !body.chunks(PIECE_BYTES).any(has_control) {
        return None;
    }
    let mut escaped = Vec::with_capacity(body.len() + 64);
    for byte in body {
        if is_control(byte) {
            escaped.extend_from_slice(format!("&#x{byte:X};").as_bytes());
        } else {
            escaped.push(*byte);
        }
    }
    Some(escaped)
}

/// s3s repeats what was sent as it is, and some of that XML has no way to write: no client would
/// find the code.
fn without_controls(body: Bytes) -> Bytes {
    match std::str::from_utf8(&body) {
        Ok(text) if text.contains(is_unwritable) => Bytes::from(
            text.replace(is_unwritable, "\u{fffd}")
                .replace('\r', "&#13;"),
        ),
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use s3s::{S3Error, S3ErrorCode, s3_error};

    use super::*;
    use crate::http::hosts::Domains;
    use crate::request::echo::Echo;
    use crate::request::memory_budget::MemoryBudget;

    fn completed(error: S3Error) -> (u16, String, Option<String>) {
        let mut response = error.to_http_response().unwrap();
        let context = RequestContext::new(&MemoryBudget::answers());
        let code = complete(&mut response, &context);
        assert_eq!(response.headers()[REQUEST_ID], context.request_id());
        assert_eq!(response.headers()[HOST_ID], context.host_id());
        let body = response.body().bytes().unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        if !text.is_empty() {
            assert_eq!(
                element(text.as_bytes(), "RequestId"),
                Some(&*context.request_id())
            );
        }
        (response.status().as_u16(), text, code)
    }

    #[test]
    fn errors_carry_ids_and_messages() {
        let (status, text, code) = completed(S3Error::new(S3ErrorCode::InvalidBucketName));
        assert_eq!((status, code.as_deref()), (400, Some("InvalidBucketName")));
        assert!(text.contains("<Message>The specified bucket"), "{text}");
        let (_, text, _) = completed(s3_error!(NoSuchKey, "Gone & <lost>"));
        assert!(
            text.contains("<Message>Gone &amp; &lt;lost&gt;</Message>"),
            "{text}"
        );
        assert_eq!(text.matches("<Message>").count(), 1);
    }

    #[test]
    fn parameters_that_s3s_can_not_read_are_told_by_name() {
        let (_, text, _) = completed(s3_error!(InvalidArgument, "invalid query: max-keys: a<b"));
        let told = "<ArgumentName>max-keys</ArgumentName><ArgumentValue>a&lt;b</ArgumentValue>";
        assert!(text.contains(told), "{text}");
        let words = "<Message>Provided max-keys not an integer or within integer range</Message>";
        assert!(text.contains(words), "{text}");
        let (_, text, _) = completed(s3_error!(InvalidArgument, "invalid query: fetch-owner: y"));
        assert!(
            text.contains("<ArgumentName>fetch-owner</ArgumentName>"),
            "{text}"
        );
        let (_, text, _) = completed(s3_error!(InvalidArgument, "Invalid id"));
        assert!(!text.contains("<ArgumentName>"), "{text}");
    }

    #[test]
    fn what_is_refused_for_good_is_not_promised() {
        let (_, text, _) = completed(s3_error!(NotImplemented, "A is not implemented yet"));
        assert_eq!(
            element(text.as_bytes(), "Message"),
            Some("A is not implemented")
        );
        let (_, text, _) = completed(s3_error!(NotImplemented, "An A is not implemented"));
        assert!(
            text.contains("<Message>An A is not implemented</Message>"),
            "{text}"
        );
    }

    #[test]
    fn no_error_has_characters_that_xml_has_not() {
        let (_, text, code) =
            completed(s3_error!(InvalidArgument, "invalid query: a: \u{1}\u{b}b"));
        assert_eq!(code.as_deref(), Some("InvalidArgument"));
        let told = "<ArgumentName>a</ArgumentName><ArgumentValue>\u{fffd}\u{fffd}b</ArgumentValue>";
        assert!(text.contains(told), "{text}");
        assert!(!text.contains(['\u{1}', '\u{b}']), "{text}");
    }

    #[test]
    fn no_name_that_an_error_repeats_has_them_either() {
        let uri = "/b%01/%01k%EF%BF%BE%0D%3C?versionId=%0B%EF%BF%BF";
        let parts = http::Request::get(uri).body(()).unwrap().into_parts().0;
        for (code, name) in [
            (S3ErrorCode::NoSuchVersion, "Key"),
            (S3ErrorCode::NoSuchKey, "Key"),
            (S3ErrorCode::NoSuchBucket, "BucketName"),
        ] {
            let context = RequestContext::new(&MemoryBudget::answers());
            context.set_echo(Echo::of(&parts, &Domains::new(&[])));
            let mut response = S3Error::new(code).to_http_response().unwrap();
            complete(&mut response, &context);
            let body = response.body().bytes().unwrap();
            let text = std::str::from_utf8(&body).unwrap();
            assert!(element(&body, name).unwrap().contains('\u{fffd}'), "{text}");
            let key = "\u{fffd}k\u{fffd}&#xD;&lt;";
            let resource = format!("/b\u{fffd}/{key}");
            assert_eq!(element(&body, "Resource"), Some(&*resource), "{text}");
            assert!(
                !text.contains(is_unwritable) && !text.contains("&#x1;"),
                "{text}"
            );
        }
    }

    #[test]
    fn details_that_an_operation_gives_are_in_the_body_alone() {
        let refused = s3_error!(InvalidPart, "no");
        let refused = details::carried(refused, &[("PartNumber", "7".to_owned())]);
        let mut response = refused.to_http_response().unwrap();
        complete(
            &mut response,
            &RequestContext::new(&MemoryBudget::answers()),
        );
        let body = response.body().bytes().unwrap();
        assert_eq!(element(&body, "PartNumber"), Some("7"));
        let own = |name: &&HeaderName| name.as_str().starts_with("x-coffer-");
        assert_eq!(response.headers().keys().find(own), None);
    }

    #[test]
    fn control_characters_become_references() {
        assert_eq!(escape_controls(b"<Key>a\tb\n</Key>"), None);
        assert_eq!(escape_controls(b"a\rb\x01").unwrap(), b"a&#xD;b&#x1;");
    }
}
