//! What a user of sealing relies on, at every length and edit where it could go wrong.

use coffer_seal::fuzzing::{fuzz_edit, fuzz_open};
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES};
use coffer_seal::{
    BlobId, BucketId, Context, KeyKind, KeystoreId, LevelId, OpenError, Opener, SealError, Sealer,
    SecretKey, open, seal, sealed_bytes, unwrap_key, wrap_key,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn plaintext(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

fn key_and_context() -> (SecretKey, Context) {
    (SecretKey::generate(), Context::raw(*b"properties"))
}

fn header_of(message: &[u8]) -> &[u8; HEADER_BYTES] {
    message.first_chunk().expect("a message has a header")
}

/// All lengths within 40 bytes of a border, which covers a cipher block and a tag on both sides.
fn lengths_around_borders() -> impl Iterator<Item = usize> {
    let near = |border: usize| border.saturating_sub(40)..border + 40;
    (0..4).flat_map(move |chunks| near(chunks * CHUNK_BYTES))
}

#[test]
fn every_length_around_a_border_comes_back() {
    let (key, context) = key_and_context();
    for length in lengths_around_borders() {
        let plaintext = plaintext(length);
        let message = seal(&key, &context, &plaintext);
        assert_eq!(Some(message.len() as u64), sealed_bytes(length as u64));
        assert_eq!(
            *open(&key, &context, &message).unwrap(),
            plaintext,
            "{length}"
        );
    }
}

#[test]
fn chunks_open_in_any_order_and_by_many_threads() {
    let (key, context) = key_and_context();
    let plaintext = plaintext(5 * CHUNK_BYTES + 77);
    let message = seal(&key, &context, &plaintext);
    let opener = Opener::new(&key, &context, header_of(&message), message.len() as u64).unwrap();
    assert_eq!(opener.plaintext_bytes(), plaintext.len() as u64);
    assert_eq!(opener.chunk_count(), 6);
    std::thread::scope(|threads| {
        for index in [3, 0, 5, 1, 4, 2, 5, 0] {
            let (opener, message, plaintext) = (&opener, &message, &plaintext);
            threads.spawn(move || {
                let range = opener.chunk_range(index);
                let sealed = &message[range.start as usize..range.end as usize];
                let mut out = vec![0xAA; CHUNK_BYTES + 10];
                let opened = opener.open_chunk(index, sealed, &mut out).unwrap();
                let start = index as usize * CHUNK_BYTES;
                assert_eq!(out[..opened], plaintext[start..start + opened]);
                assert!(out[opened..].iter().all(|byte| *byte == 0xAA));
            });
        }
    });
}

#[test]
fn every_truncation_fails() {
    let (key, context) = key_and_context();
    let message = seal(&key, &context, &plaintext(CHUNK_BYTES + 100));
    for length in 0..message.len() {
        let error = open(&key, &context, &message[..length]).unwrap_err();
        let expected = match length {
            0..HEADER_BYTES => OpenError::Length {
                sealed_bytes: length as u64,
            },
            _ => match (length - HEADER_BYTES) % SEALED_CHUNK_BYTES {
                0 => OpenError::Truncated {
                    sealed_bytes: length as u64,
                },
                1..TAG_BYTES => OpenError::Length {
                    sealed_bytes: length as u64,
                },
                _ => OpenError::Chunk {
                    index: ((length - HEADER_BYTES) / SEALED_CHUNK_BYTES) as u64,
                },
            },
        };
        assert_eq!(error, expected, "{length} bytes");
    }
}

#[test]
fn every_flipped_bit_of_a_short_message_fails() {
    let (key, context) = key_and_context();
    let message = seal(&key, &context, &plaintext(100));
    for bit in 0..message.len() * 8 {
        let mut flipped = message.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&key, &context, &flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn a_flip_in_any_byte_of_a_long_message_fails_in_its_own_chunk() {
    let (key, context) = key_and_context();
    let mut message = seal(&key, &context, &plaintext(2 * CHUNK_BYTES + 5));
    for offset in (0..message.len()).step_by(7) {
        message[offset] ^= 0x80;
        let expected = match offset.checked_sub(HEADER_BYTES) {
            None => OpenError::Commitment,
            Some(body) => OpenError::Chunk {
                index: (body / SEALED_CHUNK_BYTES) as u64,
            },
        };
        assert_eq!(
            open(&key, &context, &message).unwrap_err(),
            expected,
            "{offset}"
        );
        message[offset] ^= 0x80;
    }
}

#[test]
fn chunks_in_any_other_arrangement_fail() {
    let (key, context) = key_and_context();
    let message = seal(&key, &context, &plaintext(3 * CHUNK_BYTES + 9));
    let (header, body) = message.split_at(HEADER_BYTES);
    let chunks: Vec<&[u8]> = body.chunks(SEALED_CHUNK_BYTES).collect();
    // All sequences of up to five of the four chunks.
    for length in 0..=5u32 {
        for sequence in 0..4u32.pow(length) {
            let order: Vec<usize> = (0..length)
                .map(|place| (sequence / 4u32.pow(place) % 4) as usize)
                .collect();
            let pieces: Vec<u8> = order
                .iter()
                .flat_map(|index| chunks[*index])
                .copied()
                .collect();
            let opened = open(&key, &context, &[header, &pieces].concat());
            assert_eq!(opened.is_ok(), order == [0, 1, 2, 3], "{order:?}");
        }
    }
}

#[test]
fn another_key_or_context_fails() {
    let key = SecretKey::generate();
    let places = [
        Context::blob(BucketId([1; 16]), BlobId([2; 16])),
        Context::blob(BucketId([2; 16]), BlobId([1; 16])),
        Context::key(KeyKind::Level(LevelId([1; 16])), 1),
        Context::key(KeyKind::Bucket(BucketId([1; 16])), 1),
        Context::key(KeyKind::Bucket(BucketId([1; 16])), 2),
        Context::keystore(KeystoreId([1; 16]), 1),
        Context::keystore(KeystoreId([1; 16]), 2),
        Context::raw(*b""),
    ];
    for place in &places {
        let message = seal(&key, place, b"secret");
        for elsewhere in &places {
            let opened = open(&key, elsewhere, &message);
            assert_eq!(
                opened.is_ok(),
                elsewhere == place,
                "{place:?} in {elsewhere:?}"
            );
        }
        let other = open(&SecretKey::generate(), place, &message);
        assert_eq!(other.unwrap_err(), OpenError::Commitment);
    }
}

#[test]
fn what_did_not_verify_is_not_given_out() {
    let (key, context) = key_and_context();
    let message = seal(&key, &context, &plaintext(CHUNK_BYTES + 100));
    let opener = Opener::new(&key, &context, header_of(&message), message.len() as u64).unwrap();
    for index in [0, 1] {
        let range = opener.chunk_range(index);
        let mut sealed = message[range.start as usize..range.end as usize].to_vec();
        *sealed.last_mut().unwrap() ^= 1;
        let mut out = vec![0xAA; CHUNK_BYTES];
        let error = opener.open_chunk(index, &sealed, &mut out).unwrap_err();
        assert_eq!(error, OpenError::Chunk { index });
        let (chunk, behind) = out.split_at(sealed.len() - TAG_BYTES);
        assert!(
            chunk.iter().all(|byte| *byte == 0),
            "chunk {index} left plaintext"
        );
        assert!(behind.iter().all(|byte| *byte == 0xAA));
    }
}

#[test]
fn opening_is_refused_where_it_makes_no_sense() {
    let (key, context) = key_and_context();
    let message = seal(&key, &context, &plaintext(CHUNK_BYTES + 100));
    let opener = Opener::new(&key, &context, header_of(&message), message.len() as u64).unwrap();
    let mut out = vec![0xAA; CHUNK_BYTES];
    let full = &message[HEADER_BYTES..HEADER_BYTES + SEALED_CHUNK_BYTES];
    assert_eq!(
        opener.open_chunk(2, full, &mut out).unwrap_err(),
        OpenError::NoSuchChunk {
            index: 2,
            chunk_count: 2
        }
    );
    assert_eq!(
        opener.open_chunk(0, full, &mut out[1..]).unwrap_err(),
        OpenError::Buffer {
            chunk_bytes: CHUNK_BYTES,
            out_bytes: CHUNK_BYTES - 1
        }
    );
    // A chunk as long as it is, but told to be the other.
    assert_eq!(
        opener.open_chunk(1, full, &mut out).unwrap_err(),
        OpenError::Chunk { index: 1 }
    );
    assert!(out.iter().all(|byte| *byte == 0xAA));
    // A length that the storage made up shows at the last chunk.
    let shorter = message.len() as u64 - 1;
    let opener = Opener::new(&key, &context, header_of(&message), shorter).unwrap();
    let range = opener.chunk_range(1);
    let last = &message[range.start as usize..range.end as usize];
    assert!(opener.open_chunk(0, full, &mut out).is_ok());
    assert!(opener.open_chunk(1, last, &mut out).is_err());
}

#[test]
fn failures_look_the_same_from_outside() {
    let errors = [
        OpenError::Length { sealed_bytes: 3 },
        OpenError::Truncated { sealed_bytes: 56 },
        OpenError::Commitment,
        OpenError::Chunk { index: 9 },
    ];
    for error in errors {
        assert_eq!(error.to_string(), "the sealed bytes did not open");
    }
}

#[test]
fn sealing_refuses_buffers_of_other_sizes() {
    let (key, context) = key_and_context();
    let mut sealer = Sealer::new(&key, &context);
    let (chunk, mut out) = (vec![1; CHUNK_BYTES], vec![0; SEALED_CHUNK_BYTES]);
    for length in [0, 1, CHUNK_BYTES - 1] {
        let error = sealer.seal_chunk(&chunk[..length], &mut out).unwrap_err();
        assert_eq!(
            error,
            SealError::ChunkLength {
                plaintext_bytes: length
            }
        );
    }
    let error = sealer.seal_chunk(&chunk, &mut out[1..]).unwrap_err();
    assert_eq!(
        error,
        SealError::Buffer {
            sealed_bytes: SEALED_CHUNK_BYTES,
            out_bytes: SEALED_CHUNK_BYTES - 1
        }
    );
    assert!(out.iter().all(|byte| *byte == 0), "nothing was sealed");
    // What was refused didn't count: the message is as if it had never been tried.
    let mut message = sealer.header().to_vec();
    sealer.seal_chunk(&chunk, &mut out).unwrap();
    message.extend_from_slice(&out);
    sealer.seal_last(b"end", &mut out[..3 + TAG_BYTES]).unwrap();
    message.extend_from_slice(&out[..3 + TAG_BYTES]);
    assert_eq!(
        *open(&key, &context, &message).unwrap(),
        [&chunk[..], b"end"].concat()
    );
    // A full chunk can't be a last one.
    let error = Sealer::new(&key, &context)
        .seal_last(&chunk, &mut out)
        .unwrap_err();
    assert!(matches!(error, SealError::ChunkLength { .. }));
}

#[test]
fn salts_are_fresh() {
    let (key, context) = key_and_context();
    let (one, two) = (seal(&key, &context, b"same"), seal(&key, &context, b"same"));
    assert!(one.iter().zip(&two).filter(|(a, b)| a == b).count() < 16);
}

#[test]
fn a_wrapped_key_opens_in_its_place_only() {
    let (wrapping, key) = (SecretKey::generate(), SecretKey::generate());
    let place = Context::key(KeyKind::Data(BlobId([1; 16])), 3);
    let wrapped = wrap_key(&wrapping, &place, &key);
    assert_eq!(unwrap_key(&wrapping, &place, &wrapped).unwrap(), key);
    // A wrapped key is a message like any other.
    assert_eq!(
        open(&wrapping, &place, &wrapped).unwrap().as_slice(),
        key.expose()
    );

    let other = Context::key(KeyKind::Data(BlobId([1; 16])), 4);
    assert!(unwrap_key(&wrapping, &other, &wrapped).is_err());
    assert!(unwrap_key(&key, &place, &wrapped).is_err());
    for offset in 0..wrapped.len() {
        let mut changed = wrapped;
        changed[offset] ^= 1;
        assert!(unwrap_key(&wrapping, &place, &changed).is_err(), "{offset}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_plaintext_comes_back(
        plaintext in vec(any::<u8>(), 0..40_000),
        context in vec(any::<u8>(), 0..600),
    ) {
        let (key, context) = (SecretKey::generate(), Context::raw(context));
        let message = seal(&key, &context, &plaintext);
        prop_assert_eq!(&*open(&key, &context, &message).unwrap(), &plaintext);
    }

    #[test]
    fn edited_messages_never_open(data in vec(any::<u8>(), 8..40)) {
        fuzz_edit(&data);
    }

    #[test]
    fn forgeries_never_open(data in vec(any::<u8>(), 0..200)) {
        fuzz_open(&data);
    }
}

/// Openers are shared between threads, and so are errors.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Opener>();
    shared::<Sealer>();
    shared::<SecretKey>();
    shared::<OpenError>();
};
