//! Bodies of the fuzz targets: whatever is parsed here by hand, with what must hold.

mod configurations;

pub use self::configurations::{acl, cors, lifecycle, tag_set};

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use coffer_vault::version::Which;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use time::OffsetDateTime;

use crate::around_s3s::header_compat;
use crate::around_s3s::xml::canonical;
use crate::forms::fields::Form;
use crate::forms::policy::Policy;
use crate::http::conditions;
use crate::http::encoded_words;
use crate::http::hosts::Domains;
use crate::http::percent::{self, form_pairs};
use crate::http::ranges;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::continuation_tokens;
use crate::parameters::copy_source;
use crate::parameters::tags;
use crate::request::aws_chunked::{ChunkFault, ChunkReader};
use crate::signature::claimed_key::ClaimedKey;
use crate::signature::requirements;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// The head of a request: the first line is its query, the others are headers.
fn head(data: &[u8]) -> Option<Parts> {
    let mut lines = text(data)?.lines();
    let mut request = Request::builder()
        .method("PUT")
        .uri(format!("/b/k?{}", lines.next()?));
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        request = request.header(name, value.trim());
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// A range that is taken can be told to s3s.
pub fn range(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(range) = ranges::parse(text) {
        let header = ranges::to_header(range).expect("a parsed range is written");
        assert!(s3s::dto::Range::parse(&header).is_ok(), "{header}");
    }
    let _ = ranges::copy_source(Some(text));
}

/// A token that is taken is the one that would be given, and every text makes one.
pub fn continuation_token(data: &[u8]) {
    let Some(text) = text(data) else { return };
    assert_eq!(
        continuation_tokens::decode(&continuation_tokens::encode(text))
            .ok()
            .as_deref(),
        Some(text)
    );
    if let Ok(after) = continuation_tokens::decode(text) {
        assert_eq!(continuation_tokens::encode(&after), text);
    }
}

/// Tags that are taken keep their limits.
pub fn tagging_header(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(tags) = tags::from_header(Some(text), OBJECT_TAGS_MAX) {
        assert!(tags.len() <= OBJECT_TAGS_MAX);
        let form = tags
            .iter()
            .map(|(key, value)| format!("{}={}", percent::encode(key), percent::encode(value)))
            .collect::<Vec<_>>()
            .join("&");
        assert_eq!(
            tags::from_header(Some(&form), OBJECT_TAGS_MAX).ok(),
            Some(tags)
        );
    }
}

/// A copy source that is taken names what it names when it is encoded.
pub fn copy_source(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok((bucket, name, which)) = copy_source::locate(text) {
        let version = match which {
            Which::Current => String::new(),
            Which::Version(version) => format!("?versionId={version}"),
        };
        let again = format!("{bucket}/{}{version}", percent::encode(name.expose()));
        let same = Some((bucket, name, which));
        assert_eq!(copy_source::locate(&again).ok(), same);
    }
}

/// A document that is taken keeps its limit, says the same when it is written anew once more, and
/// holds nothing but elements, attributes and text.
pub fn document(data: &[u8]) {
    const LIMIT_BYTES: usize = 1 << 16;
    let Ok(written) = canonical(data, LIMIT_BYTES) else {
        return;
    };
    assert!(written.len() <= LIMIT_BYTES);
    assert!(
        !written.contains("<!") && !written.contains("<?"),
        "{written}"
    );
    let again = canonical(written.as_bytes(), LIMIT_BYTES);
    assert_eq!(again.as_deref(), Ok(written.as_str()));
}

/// Entity tags of any list are read, and the reading ends.
pub fn etags(data: &[u8]) {
    if let Some(text) = text(data) {
        let items = conditions::etag_list(text);
        assert!(items.len() <= text.len());
    }
}

/// A body in chunks is read as one, however it is cut; the first byte says how.
pub fn chunks(data: &[u8]) {
    let Some((&cut, body)) = data.split_first() else {
        return;
    };
    let read = |cut: usize| {
        let mut reader = ChunkReader::new(None);
        let mut queue = VecDeque::new();
        for piece in body.chunks(cut) {
            reader.push(Bytes::copy_from_slice(piece), &mut queue)?;
        }
        let trailers = reader.end(&mut queue)?;
        let payload: Vec<u8> = queue.into_iter().flatten().collect();
        Ok::<_, ChunkFault>((payload, trailers))
    };
    let whole = read(body.len().max(1));
    assert_eq!(read(usize::from(cut).max(1)).ok(), whole.ok());
}

/// Whatever is no encoded word stays as it is, and what is encoded comes back.
pub fn words(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let decoded = encoded_words::decode(text);
    if !encoded_words::may_hold(text.as_bytes()) {
        assert_eq!(decoded, text.trim_matches([' ', '\t']));
    }
    let word = format!("=?UTF-8?B?{}?=", BASE64.encode(text));
    assert_eq!(encoded_words::decode(&word), text);
}

/// A request that passes has one signature at most, and that covers every header that counts; one
/// without claims no access key.
pub fn signature(data: &[u8]) {
    let Some(head) = head(data) else { return };
    let claimed = ClaimedKey::of(&head).access_key_id();
    let query = head.uri.query().unwrap_or("");
    if requirements::check(query, &head.headers).is_err() {
        return;
    }
    let pairs = form_pairs(query).expect("what passed is UTF-8");
    let of_query = |name: &str| pairs.iter().find(|(key, _)| key == name);
    let header = head.headers.get(AUTHORIZATION);
    let signatures = [of_query("X-Amz-Signature"), of_query("Signature")];
    let count = signatures.iter().flatten().count() + usize::from(header.is_some());
    assert!(count <= 1, "{count} signatures");
    assert!(
        count == 1 || claimed.is_none(),
        "{claimed:?} signed nothing"
    );
    let signed = match (header, of_query("X-Amz-SignedHeaders")) {
        (Some(header), _) => {
            let said = requirements::Authorization::parse(header.to_str().unwrap_or(""));
            said.expect("what passed is a signature").signed_headers
        }
        (None, Some((_, signed))) if signatures[0].is_some() => signed,
        _ => return,
    };
    for name in ["x-amz-acl", "x-amz-copy-source", "x-amz-meta-a"] {
        let is_signed = signed.split(';').any(|one| one == name);
        assert!(is_signed || !head.headers.contains_key(name), "{name}");
    }
}

/// Headers that were made plain once need it no more, and only headers of S3 move.
pub fn headers(data: &[u8]) {
    let Some(head) = head(data) else { return };
    let mut all = head.headers;
    let Ok(moved) = header_compat::moved_headers(&head.uri, &all) else {
        return;
    };
    for (name, value) in moved {
        assert!(name.as_str().starts_with("x-amz-"), "{name}");
        all.insert(name, value);
    }
    let odd = header_compat::odd_headers(&header_compat::plain(
        &all,
        header_compat::odd_headers(&all),
    ));
    assert!(odd.is_empty(), "{odd:?}");
}

/// A form is read or refused, and its policy with it: what passes has a condition for each field.
pub fn form(data: &[u8]) {
    let mut headers = HeaderMap::new();
    let kind = HeaderValue::from_static("multipart/form-data; boundary=x");
    headers.insert(CONTENT_TYPE, kind);
    let pieces: Vec<_> = data.chunks(9).map(Bytes::copy_from_slice).collect();
    let body = futures::stream::iter(pieces.into_iter().map(Ok));
    let Ok(Form { fields, file }) = futures::executor::block_on(Form::read(&headers, body)) else {
        return;
    };
    let _ = fields.headers();
    let key = fields.key(&file).unwrap_or_default();
    let json = fields.get("policy").unwrap_or_default();
    let Ok(policy) = Policy::parse(&BASE64.encode(json)) else {
        return;
    };
    if policy
        .check(&fields, "b", &key, OffsetDateTime::UNIX_EPOCH)
        .is_ok()
    {
        for (name, _) in fields
            .each()
            .filter(|(name, _)| name.starts_with("x-amz-meta-"))
        {
            // Names may be written with escapes.
            let read: serde_json::Value = serde_json::from_str(json).expect("it was read");
            let plain = read.to_string().to_ascii_lowercase();
            assert!(plain.contains(name), "{name}");
        }
    }
}

/// The bucket that a host names has a host of its own.
pub fn hosts(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let domains = Domains::new(&["s3.test".to_owned(), "test".to_owned()]);
    if let Some(bucket) = domains.bucket(text) {
        let host = format!("{bucket}.s3.test:9000");
        assert_eq!(domains.bucket(&host), Some(bucket));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_must_hold_holds_for_texts(text in "[ -~\\PC]{0,60}") {
            for target in [
                range,
                continuation_token,
                tagging_header,
                copy_source,
                document,
                etags,
                chunks,
                words,
                signature,
                headers,
                hosts,
            ] {
                target(text.as_bytes());
            }
        }

        #[test]
        fn what_must_hold_holds_for_requests(
            words in "((=\\?|\\?=|\\?|UTF-8|B|Q|w6Q=|[ a-c])){0,12}",
            query in "(X-Amz-(Signature|SignedHeaders|Meta-A)=(host|x-amz-acl|%3B){0,3}&){0,3}",
            header in "((range|x-amz-(acl|meta-a|copy-source)|if-match): [-a-c/=?0-9]{0,9}\n){0,4}",
            host in "([a-c.:0-9]{0,5}[.])?(s3[.])?test(:[0-9]{0,3})?",
        ) {
            super::words(words.as_bytes());
            hosts(host.as_bytes());
            let request = format!("{query}\nx-amz-meta-b: {words}\n{header}");
            signature(request.as_bytes());
            headers(request.as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_forms(
            fields in concat!(
                "(--x\r\n(Content-Disposition: form-data; name=\"(key|policy|x-amz-meta-a|file)\"",
                "(; filename=\"[a/]{0,3}\")?\r\n)?\r\n",
                "(a|\\{\"expiration\": \"2030-01-01T00:00:00Z\", ",
                "\"conditions\": \\[(\\{\"key\": \"a\"\\})?\\]\\})\r\n){0,5}(--x--)?"
            ),
        ) {
            form(fields.as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_documents(
            inside in concat!(
                "(<[ab]( [cd]='[&lt; \r\n]{0,6}')?>|</[ab]>|<b/>|[ab ]|&(#13|#x1|lt|b);",
                "|<!\\[CDATA\\[[<&\\]\r]{0,3}\\]\\]>|<!--a-->|\r){0,9}"
            ),
        ) {
            document(format!("<a>{inside}</a>").as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_texts_of_the_kind(
            number in "[bB]ytes=[0-9]{0,22}-[0-9]{0,22}",
            tags in "([a-c%+]{0,3}=[0-9%+]{0,4}&?){0,4}",
            source in "/?[a-c]{2,4}/[a-z%/?=0-9]{0,20}",
            list in "((W/)?\"?[a-c*,]{0,3}\"?,? ?){0,5}",
            body in "([0-9a-f]{1,2}(;chunk-signature=[0-9]{0,3})?\r\n.{0,20}\r\n){0,4}",
        ) {
            range(number.as_bytes());
            tagging_header(tags.as_bytes());
            copy_source(source.as_bytes());
            etags(list.as_bytes());
            chunks(body.as_bytes());
        }
    }
}
