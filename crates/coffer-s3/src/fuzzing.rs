//! Bodies of the fuzz targets: whatever is parsed here by hand, with what must hold.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::chunks::{ChunkGuard, ChunkStyle};
use crate::conditions;
use crate::copying;
use crate::limits::{OBJECT_TAGS_MAX, SIGNED_CHUNK_MAX_BYTES};
use crate::percent;
use crate::ranges;
use crate::tags;
use crate::tokens;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
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
        tokens::decode(&tokens::encode(text)).ok().as_deref(),
        Some(text)
    );
    if let Ok(after) = tokens::decode(text) {
        assert_eq!(tokens::encode(&after), text);
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
    if let Some((bucket, name)) = copying::parse(text) {
        let again = format!("{bucket}/{}", percent::encode(name.expose()));
        assert_eq!(copying::parse(&again), Some((bucket, name)));
    }
}

/// Entity tags of any list are read, and the reading ends.
pub fn etags(data: &[u8]) {
    if let Some(text) = text(data) {
        let items = conditions::etag_list(text);
        assert!(items.len() <= text.len());
    }
}

/// Unsigned chunks come out as small as they arrive, signed ones unchanged, however the body is
/// cut. The first byte says how.
pub fn chunks(data: &[u8]) {
    let Some((&cut, body)) = data.split_first() else {
        return;
    };
    let cut = usize::from(cut).max(1);
    for style in [ChunkStyle::Signed, ChunkStyle::Unsigned] {
        let mut guard = ChunkGuard::new(style);
        let mut queue = VecDeque::new();
        let passed = body.chunks(cut).all(|piece| {
            guard
                .push(Bytes::copy_from_slice(piece), &mut queue)
                .is_ok()
        });
        let seen: Vec<u8> = queue.into_iter().flatten().collect();
        if style == ChunkStyle::Signed {
            assert!(body.starts_with(&seen));
            assert!(!passed || body.len() - seen.len() <= SIGNED_CHUNK_MAX_BYTES as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_must_hold_holds_for_texts(text in "[ -~\\PC]{0,60}") {
            for target in [range, continuation_token, tagging_header, copy_source, etags, chunks] {
                target(text.as_bytes());
            }
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
