//! Bodies that the server holds in memory whole, and that it can't read.

use std::io::{Error, ErrorKind};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::front::{Ask, Front};

const MIB: usize = 1 << 20;

fn delete(front: &Front, body: impl Into<Vec<u8>>) -> Ask<'_> {
    front.ask("POST", "/buc").deletes(body)
}

fn tagging(front: &Front, body: impl Into<Vec<u8>>) -> Ask<'_> {
    front.ask("PUT", "/buc").query("tagging", "").body(body)
}

#[tokio::test]
async fn xml_is_as_long_as_its_operation_needs() {
    let front = Front::with_bucket().await;
    front.put("k", "x").await;
    // The longest that S3's own limits allow.
    let name = "&quot;".repeat(1_024);
    let object = format!("<Object><Key>{name}</Key><VersionId>null</VersionId></Object>");
    let body = format!("<Delete>{}</Delete>", object.repeat(1_000));
    delete(&front, body).send().await.expect(200);
    let tag = |number: usize| {
        let (key, value) = (format!("{number:0>128}"), "&#x65E5;".repeat(256));
        format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>")
    };
    let tags: String = (0..50).map(tag).collect();
    let body = format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
    tagging(&front, body).send().await.expect(204);

    for (ask, bytes) in [
        (delete as fn(&Front, Vec<u8>) -> Ask<'_>, 9 * MIB),
        (tagging, MIB),
    ] {
        let answer = ask(&front, vec![b' '; bytes]).send().await;
        let answer = answer.refused(400, "MaxMessageLengthExceeded");
        assert_eq!(answer.element("Message"), "Your request was too large.");
    }
    front.read("k").await.expect(200);
    front.close().await;
}

#[tokio::test]
async fn who_holds_large_bodies_open_leaves_room_for_small_ones() {
    let front = Front::with_bucket().await;
    let hold = || {
        let start = Bytes::from(vec![b' '; 6 * MIB]);
        let start = stream::iter([Ok::<_, Error>(Frame::data(start))]);
        let body = StreamBody::new(start.chain(stream::pending()));
        let ask = delete(&front, vec![b' '; 6 * MIB + 1]).payload("UNSIGNED-PAYLOAD");
        Box::pin(ask.send_body(body))
    };
    let mut held: Vec<_> = (0..8).map(|_| hold()).collect();
    let all = futures::future::select_all(held.iter_mut());
    let (answer, _, _) = all.await;
    let answer = answer.refused(503, "SlowDown");
    assert_eq!(answer.header("retry-after"), "1");
    let body = "<Delete><Object><Key>k</Key></Object></Delete>";
    delete(&front, body).send().await.expect(200);
    drop(held);
    delete(&front, vec![b' '; 6 * MIB])
        .send()
        .await
        .refused(400, "MalformedXML");
    front.close().await;
}

#[tokio::test]
async fn a_body_that_stops_is_told_from_one_that_is_forged() {
    let front = Front::with_bucket().await;
    for (kind, code) in [
        (ErrorKind::TimedOut, "RequestTimeout"),
        (ErrorKind::ConnectionReset, "IncompleteBody"),
    ] {
        let pieces = [
            Ok(Frame::data(Bytes::from_static(b"<Delete>"))),
            Err(kind.into()),
        ];
        let body = StreamBody::new(stream::iter::<[Result<_, Error>; 2]>(pieces));
        let ask = delete(&front, vec![b' '; 100]);
        ask.send_body(body).await.refused(400, code);
        let pieces = [Err(Error::from(kind))];
        let body = StreamBody::new(stream::iter::<[Result<Frame<Bytes>, _>; 1]>(pieces));
        let ask = front
            .ask("POST", "/buc/k")
            .query("uploadId", &"0".repeat(32));
        let ask = ask.body(vec![b' '; 100]);
        ask.send_body(body).await.refused(400, code);
    }
    let forged = delete(&front, "<Delete/>").payload(&"0".repeat(64));
    let forged = forged.send().await;
    forged.refused(400, "XAmzContentSHA256Mismatch");
    front.close().await;
}
