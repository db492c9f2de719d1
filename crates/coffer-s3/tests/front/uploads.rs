//! Uploads: chunked, checked, broken off, in parts.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;

use crate::front::{Answer, Ask, Front, assert_no_md5};

// CRC-32 and CRC-64/NVME of "123456789" (the CRC catalogue's check values), in Base64.
const DIGITS: &[u8] = b"123456789";
const CRC32: &str = "y/Q5Jg==";
const CRC64: &str = "rosUhgp5mIg=";

#[tokio::test]
async fn checksums_are_compared_stored_and_told() {
    let front = Front::with_bucket().await;
    let put = |checksum: &'static str| {
        front
            .ask("PUT", "/buc/k")
            .header("x-amz-checksum-crc32", checksum)
            .body(DIGITS)
            .send()
    };
    let wrong = put("AAAAAA==").await.refused(400, "BadDigest");
    assert!(wrong.text().contains("CRC32"), "{}", wrong.text());
    put("AAA=").await.refused(400, "InvalidRequest");
    front.read("k").await.expect(404);
    assert_eq!(
        put(CRC32).await.expect(200).header("x-amz-checksum-crc32"),
        CRC32
    );
    let told = front
        .ask("GET", "/buc/k")
        .header("x-amz-checksum-mode", "ENABLED")
        .send()
        .await;
    assert_eq!(told.header("x-amz-checksum-crc32"), CRC32);
    assert_eq!(told.header("x-amz-checksum-type"), "FULL_OBJECT");
    assert_eq!(front.read("k").await.header("x-amz-checksum-crc32"), "");
    // Without one, S3 forms its own.
    assert_eq!(
        front
            .put("k", DIGITS)
            .await
            .header("x-amz-checksum-crc64nvme"),
        CRC64
    );
    let md5 = front
        .ask("PUT", "/buc/k")
        .header("content-md5", "AAAA")
        .body(DIGITS);
    md5.send().await.refused(400, "InvalidDigest");
    let md5 = front
        .ask("PUT", "/buc/k")
        .header("content-md5", "kAFQmDzST7DWlj99KOF/cg==");
    md5.body(DIGITS).send().await.refused(400, "BadDigest");
    front.close().await;
}

#[tokio::test]
async fn unsigned_chunks_with_trailers_are_decoded_and_checked() {
    let front = Front::with_bucket().await;
    let chunked = |body: String| {
        let ask = front
            .ask("PUT", "/buc/k")
            .payload("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
        ask.header("content-encoding", "aws-chunked")
            .header("x-amz-decoded-content-length", "9")
            .body(body)
    };
    let put = |body: String| {
        chunked(body)
            .header("x-amz-trailer", "x-amz-checksum-crc32")
            .send()
    };
    let trailer = format!("x-amz-checksum-crc32:{CRC32}\r\n\r\n");
    for (body, code) in [
        (
            "9\r\n123456789\r\n0\r\n\r\n".to_owned(),
            "MalformedTrailerError",
        ),
        ("9\r\n123456789\r\n".to_owned(), "IncompleteBody"),
        ("9\r\n123456780\r\n0\r\n".to_owned() + &trailer, "BadDigest"),
        (
            "8\r\n12345678\r\n0\r\n".to_owned() + &trailer,
            "IncompleteBody",
        ),
        (
            "A\r\n1234567890\r\n0\r\n".to_owned() + &trailer,
            "IncompleteBody",
        ),
        ("9;\r\n".to_owned(), "IncompleteBody"),
        ("no chunks\r\n".to_owned(), "IncompleteBody"),
    ] {
        put(body).await.refused(400, code);
        front.read("k").await.expect(404);
    }
    // Where no trailer is announced, none may come.
    let unannounced = "9\r\n123456789\r\n0\r\n".to_owned() + &trailer;
    let refused = chunked(unannounced).send().await;
    refused.refused(400, "MalformedTrailerError");
    let without = chunked("9\r\n123456789\r\n0\r\n\r\n".to_owned());
    without.send().await.expect(200);
    let done = put("4\r\n1234\r\n5\r\n56789\r\n0\r\n".to_owned() + &trailer)
        .await
        .expect(200);
    assert_eq!(done.header("x-amz-checksum-crc32"), CRC32);
    let got = front.read("k").await;
    assert_eq!(
        (&got.body[..], got.header("content-encoding")),
        (DIGITS, "")
    );
    front.close().await;
}

#[tokio::test]
async fn signed_chunks_of_any_length_are_checked() {
    let front = Front::with_bucket().await;
    let large = vec![7u8; 5 << 20];
    let put = async |chunks: &[&[u8]], forged: Option<usize>| {
        let object = chunks.concat();
        let ask = front
            .ask("PUT", "/buc/k")
            .payload("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
        let ask = ask
            .header("x-amz-decoded-content-length", &object.len().to_string())
            .body("counted");
        ask.send_chunks(|key, time, signature| {
            let mut body = Vec::new();
            let mut previous = signature.to_owned();
            for (number, &chunk) in chunks.iter().chain([&&b""[..]]).enumerate() {
                previous = key.sign_chunk(time, &previous, chunk);
                let sent = match forged {
                    Some(forged) if forged == number => "0".repeat(64),
                    _ => previous.clone(),
                };
                body.extend(format!("{:x};chunk-signature={sent}\r\n", chunk.len()).as_bytes());
                body.extend([chunk, b"\r\n"].concat());
            }
            body
        })
        .await
    };
    // None but the last may be shorter.
    let small = [b'1'; 8 << 10];
    for chunks in [&[&small[..], b"56789"][..], &[&large], &[&large, b"1"]] {
        for forged in 0..=chunks.len() {
            let refused = put(chunks, Some(forged)).await;
            refused.refused(403, "SignatureDoesNotMatch");
            front.read("k").await.expect(404);
        }
        put(chunks, None).await.expect(200);
        assert_eq!(front.read("k").await.body, chunks.concat());
        front.ask("DELETE", "/buc/k").send().await.expect(204);
    }
    front.close().await;
}

#[tokio::test]
async fn what_breaks_off_or_is_not_what_was_signed_leaves_nothing() {
    let front = Front::with_bucket().await;
    let large = vec![7u8; 100_000];
    let short = front
        .ask("PUT", "/buc/k")
        .payload("UNSIGNED-PAYLOAD")
        .body(large.clone());
    let pieces = [
        Ok(Frame::data(Bytes::from_static(b"half"))),
        Err(std::io::Error::other("reset")),
    ];
    let broken = short.send_body(StreamBody::new(stream::iter(pieces))).await;
    broken.refused(400, "IncompleteBody");
    let short = front
        .ask("PUT", "/buc/k")
        .payload("UNSIGNED-PAYLOAD")
        .body(large.clone());
    let pieces = [Ok::<_, Infallible>(Frame::data(Bytes::from_static(
        b"half",
    )))];
    let ended = short.send_body(StreamBody::new(stream::iter(pieces))).await;
    ended.refused(400, "IncompleteBody");
    let other = front
        .ask("PUT", "/buc/k")
        .payload(&"0".repeat(64))
        .body(large)
        .send()
        .await;
    other.refused(400, "XAmzContentSHA256Mismatch");
    front.read("k").await.expect(404);
    front.close().await;
}

/// A multipart upload under way.
struct Upload<'a> {
    front: &'a Front,
    id: String,
}

impl<'a> Upload<'a> {
    async fn begin(front: &'a Front) -> Self {
        let ask = front
            .ask("POST", "/buc/k")
            .query("uploads", "")
            .header("x-amz-meta-a", "1");
        Self {
            front,
            id: ask.send().await.expect(200).element("UploadId"),
        }
    }

    fn part(&self, number: &str, body: impl Into<Vec<u8>>) -> Ask<'a> {
        let ask = self.front.ask("PUT", "/buc/k").query("partNumber", number);
        ask.query("uploadId", &self.id).body(body)
    }

    async fn complete(&self, parts: [(u8, &str); 2]) -> Answer {
        let parts = parts.map(|(number, etag)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        });
        let parts = parts.concat().replace('"', "&quot;");
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let ask = self.front.ask("POST", "/buc/k").query("uploadId", &self.id);
        ask.body(body).send().await
    }
}

#[tokio::test]
async fn parts_become_an_object() {
    let front = Front::with_bucket().await;
    let upload = Upload::begin(&front).await;
    let large = vec![1u8; 5 << 20];
    let second = upload.part("2", DIGITS).send().await.expect(200);
    let first = upload.part("1", large.clone()).send().await.expect(200);
    let (first, second) = (first.header("etag"), second.header("etag"));
    assert_no_md5(first);
    upload
        .part("0", "")
        .send()
        .await
        .refused(400, "InvalidArgument");
    let listed = front
        .ask("GET", "/buc/k")
        .query("uploadId", &upload.id)
        .query("max-parts", "1");
    let listed = listed.send().await.expect(200);
    assert_eq!(listed.element("NextPartNumberMarker"), "1");
    assert_eq!(listed.element("Size"), "5242880");

    upload
        .complete([(2, second), (1, first)])
        .await
        .refused(400, "InvalidPartOrder");
    upload
        .complete([(1, second), (2, first)])
        .await
        .refused(400, "InvalidPart");
    let done = upload.complete([(1, first), (2, second)]).await.expect(200);
    assert!(done.element("ETag").ends_with("-2\""), "{}", done.text());
    assert_no_md5(&done.element("ETag"));
    let again = upload.complete([(1, first), (2, second)]).await.expect(200);
    assert_eq!(again.element("ETag"), done.element("ETag"));
    let got = front.read("k").await;
    assert_eq!(got.body, [large, DIGITS.to_vec()].concat());
    assert_eq!(got.header("x-amz-meta-a"), "1");
    let part = front
        .ask("GET", "/buc/k")
        .query("partNumber", "2")
        .send()
        .await
        .expect(206);
    assert_eq!(
        (&part.body[..], part.header("x-amz-mp-parts-count")),
        (DIGITS, "2")
    );
    let other = front.ask("GET", "/buc/k").query("partNumber", "2");
    let other = other.header("if-match", "\"other\"").send().await;
    other.refused(412, "PreconditionFailed");
    let third = front.ask("GET", "/buc/k").query("partNumber", "3");
    third.send().await.refused(416, "InvalidPartNumber");
    front.close().await;
}

#[tokio::test]
async fn parts_of_an_upload_without_a_checksum_may_have_any() {
    let front = Front::with_bucket().await;
    let upload = Upload::begin(&front).await;
    let wrong = upload
        .part("1", DIGITS)
        .header("x-amz-checksum-crc32", "AAAAAA==");
    wrong.send().await.refused(400, "BadDigest");
    let part = upload
        .part("1", vec![0u8; 5 << 20])
        .send()
        .await
        .expect(200);
    let other = upload
        .part("2", DIGITS)
        .header("x-amz-checksum-crc32", CRC32);
    let other = other.send().await.expect(200);
    let parts = [(1, part.header("etag")), (2, other.header("etag"))];
    let done = upload.complete(parts).await.expect(200);
    assert!(
        !done.element("ChecksumCRC64NVME").is_empty(),
        "{}",
        done.text()
    );
    front.close().await;
}

#[tokio::test]
async fn parts_may_be_copied_and_completions_may_have_conditions() {
    let front = Front::with_bucket().await;
    let etag = front.put("from", DIGITS).await.header("etag").to_owned();
    let upload = Upload::begin(&front).await;
    let copy = upload
        .part("1", "")
        .header("x-amz-copy-source", "/buc/from");
    let copied = copy.send().await.expect(200).element("ETag");
    assert_no_md5(&copied);
    let complete = |name: &'static str, value: &str| {
        let part = format!("<Part><PartNumber>1</PartNumber><ETag>{copied}</ETag></Part>");
        let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
        let ask = front.ask("POST", "/buc/k").query("uploadId", &upload.id);
        ask.header(name, value).body(body).send()
    };
    let missing = complete("if-match", &etag).await;
    missing.refused(404, "NoSuchKey");
    let there = front.put("k", "x").await.header("etag").to_owned();
    let other = complete("if-match", &etag).await;
    other.refused(412, "PreconditionFailed");
    let taken = complete("if-none-match", "*").await;
    taken.refused(412, "PreconditionFailed");
    complete("if-match", &there).await.expect(200);
    assert_eq!(front.read("k").await.body, DIGITS);
    front.close().await;
}
