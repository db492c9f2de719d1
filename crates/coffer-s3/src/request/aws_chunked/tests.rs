//! Of bodies in chunks, signed or not.

use proptest::prelude::*;

use super::*;
use crate::signature::signer::tests::example_chunks;

fn read(
    signatures: Option<ChunkSignatures>,
    body: &[u8],
    piece: usize,
) -> Result<(Vec<Bytes>, HeaderMap), ChunkFault> {
    let mut reader = ChunkReader::new(signatures);
    let mut queue = VecDeque::new();
    for piece in body.chunks(piece) {
        reader.push(Bytes::copy_from_slice(piece), &mut queue)?;
    }
    let trailers = reader.end(&mut queue)?;
    Ok((queue.into(), trailers))
}

/// The body of AWS's example.
fn example(payload: u8) -> Vec<u8> {
    let chunk = |length: usize, signature: &str| {
        let line = format!("{length:x};chunk-signature={signature}\r\n");
        [line.as_bytes(), &vec![payload; length], b"\r\n"].concat()
    };
    [
        chunk(
            65_536,
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        ),
        chunk(
            1_024,
            "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        ),
        chunk(
            0,
            "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        ),
    ]
    .concat()
}

#[test]
fn signed_chunks_are_checked() {
    let body = example(b'a');
    for piece in [1, 1_000, body.len()] {
        let (pieces, trailers) = read(Some(example_chunks()), &body, piece).unwrap();
        assert_eq!(pieces.concat(), vec![b'a'; 66_560]);
        assert!(trailers.is_empty());
    }
    let fault = |body: &[u8]| read(Some(example_chunks()), body, 4_096).err();
    assert_eq!(fault(&example(b'b')), Some(ChunkFault::Signature));
    let short = &body[..body.len() - 88];
    assert_eq!(fault(short), Some(ChunkFault::Incomplete));
    let unsigned_trailer = [&body[..body.len() - 2], b"x-amz-a:1\r\n\r\n"].concat();
    assert_eq!(fault(&unsigned_trailer), Some(ChunkFault::Trailers));
    let zeros = "0".repeat(64);
    let wrong = format!("x-amz-a:1\r\nx-amz-trailer-signature:{zeros}\r\n\r\n");
    let wrong = [&body[..body.len() - 2], wrong.as_bytes()].concat();
    assert_eq!(fault(&wrong), Some(ChunkFault::Signature));
    assert_eq!(fault(b"1\r\na\r\n0\r\n\r\n"), Some(ChunkFault::Malformed));
}

#[test]
fn a_signed_chunk_is_passed_on_but_for_what_waits_for_its_signature() {
    for (payload, passed) in [(b'a', 65_536), (b'b', 60_000)] {
        let body = example(payload);
        let mut reader = ChunkReader::new(Some(example_chunks()));
        let mut queue = VecDeque::new();
        let line = "10000;chunk-signature=".len() + 64 + 2;
        let mut push = |range: std::ops::Range<usize>| {
            let piece = Bytes::copy_from_slice(&body[range]);
            let pushed = reader.push(piece, &mut queue);
            (pushed, queue.iter().map(Bytes::len).sum::<usize>())
        };
        assert_eq!(push(0..line + 60_000), (Ok(()), 60_000));
        let (pushed, bytes) = push(line + 60_000..line + 65_536);
        assert_eq!(pushed.is_ok(), payload == b'a');
        assert_eq!(bytes, passed);
    }
}

#[test]
fn what_is_no_framing_is_refused() {
    let long = vec![b'1'; CHUNK_LINE_MAX_BYTES + 1];
    let tail = [b"0\r\n".to_vec(), vec![b'a'; TRAILERS_MAX_BYTES + 1]].concat();
    let bodies: [&[u8]; 6] = [
        b"\r\n",
        b"1\na\n",
        b"xyz\r\n",
        b"100000000\r\n",
        b"1\r\nab\r\n",
        &long,
    ];
    for body in bodies {
        for signatures in [None, Some(example_chunks())] {
            let refused = read(signatures, body, 7);
            assert_eq!(refused, Err(ChunkFault::Malformed), "{body:?}");
        }
    }
    for body in [&b"0\r\nno trailer\r\n"[..], &tail] {
        assert_eq!(read(None, body, 7), Err(ChunkFault::Trailers), "{body:?}");
    }
}

#[test]
fn many_small_chunks_become_few() {
    let body = [b"1\r\na\r\n".repeat(100_000), b"0\r\n\r\n".to_vec()].concat();
    let (pieces, _) = read(None, &body, 50_000).unwrap();
    assert_eq!(pieces.concat(), vec![b'a'; 100_000]);
    assert!(pieces.len() < 100, "{}", pieces.len());
}

proptest! {
    #[test]
    fn unsigned_bodies_give_payload_and_trailers(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
        piece in 1usize..60,
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            body.extend(format!("{:X}\r\n", chunk.len()).as_bytes());
            body.extend(chunk);
            body.extend(b"\r\n");
        }
        body.extend(b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
        let (pieces, trailers) = read(None, &body, piece).unwrap();
        prop_assert_eq!(pieces.concat(), chunks.concat());
        prop_assert_eq!(&trailers["x-amz-checksum-crc32"], "AAAAAA==");
    }

    #[test]
    fn nothing_that_arrives_breaks_it(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(None, &body, 13);
        let _ = read(Some(example_chunks()), &body, 13);
    }
}
