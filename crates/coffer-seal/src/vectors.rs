//! Every vector of `tests/vectors`: what opens, what fails and why, and that sealing with the same
//! salt makes the same bytes. `tests/interop` puts the same files before Python.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::limits::{HEADER_BYTES, KEY_BYTES, SALT_BYTES};
use crate::sealer::Sealer;
use crate::whole::seal_with;
use crate::{Context, OpenError, SecretKey, open};

/// One file. `tests/interop/make_vectors.py` writes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    about: String,
    #[serde(rename = "made_by")]
    _made_by: String,
    key: String,
    context: String,
    message: Vec<Piece>,
    /// The plaintext, in hexadecimal …
    plaintext: Option<String>,
    /// … or its length, when byte i is i mod 251 …
    counting_bytes: Option<usize>,
    /// … or why it does not open.
    failure: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Bytes { hex: String },
    Of { vector: String, bytes: [usize; 2] },
}

type Vectors = HashMap<String, Vector>;

#[test]
fn every_vector_has_the_result_it_names() {
    let vectors = load();
    let (mut opened, mut failed) = (0, 0);
    for (name, vector) in &vectors {
        let (key, context) = (vector.key(), vector.context());
        let message = vector.message(&vectors);
        let result = open(&key, &context, &message);
        match (&vector.failure, vector.plaintext()) {
            (Some(failure), None) => {
                let error = result.expect_err(&vector.about);
                assert_eq!(&named(error), failure, "{name}: {}", vector.about);
                failed += 1;
            }
            (None, Some(plaintext)) => {
                let result = result.unwrap_or_else(|error| panic!("{name}: {error:?}"));
                assert_eq!(*result, plaintext, "{name}: {}", vector.about);
                let salt = message.first_chunk::<SALT_BYTES>().unwrap();
                let again = seal_with(Sealer::with_salt(&key, &context, salt), &plaintext);
                assert_eq!(again, message, "{name}: sealed again");
                opened += 1;
            }
            _ => panic!("{name} names no result, or two"),
        }
    }
    assert!(
        opened >= 10 && failed >= 20,
        "{opened} and {failed} vectors"
    );
}

#[test]
fn the_failures_cover_every_cause() {
    let vectors = load();
    let failures: Vec<_> = vectors
        .values()
        .filter_map(|one| one.failure.as_deref())
        .collect();
    for cause in [
        "length",
        "truncated",
        "commitment",
        "chunk 0",
        "chunk 1",
        "chunk 2",
    ] {
        assert!(failures.contains(&cause), "no vector fails with {cause}");
    }
}

/// The texts that vectors name failures by.
fn named(error: OpenError) -> String {
    match error {
        OpenError::Length { .. } => "length".to_owned(),
        OpenError::Truncated { .. } => "truncated".to_owned(),
        OpenError::Commitment => "commitment".to_owned(),
        OpenError::Chunk { index } => format!("chunk {index}"),
        other => panic!("opening a whole message makes no such mistake: {other}"),
    }
}

fn load() -> Vectors {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let vector = serde_json::from_slice(&fs::read(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (
                path.file_stem().unwrap().to_str().unwrap().to_owned(),
                vector,
            )
        })
        .collect()
}

impl Vector {
    fn key(&self) -> SecretKey {
        let bytes: [u8; KEY_BYTES] = hex::decode(&self.key).unwrap().try_into().unwrap();
        SecretKey::from_bytes(bytes)
    }

    fn context(&self) -> Context {
        Context::raw(hex::decode(&self.context).unwrap())
    }

    fn plaintext(&self) -> Option<Vec<u8>> {
        let counting = |length| (0..length).map(|i| (i % 251) as u8).collect();
        match (&self.plaintext, self.counting_bytes) {
            (Some(digits), None) => Some(hex::decode(digits).unwrap()),
            (None, length) => length.map(counting),
            (Some(_), Some(_)) => panic!("{} has two plaintexts", self.about),
        }
    }

    fn message(&self, vectors: &Vectors) -> Vec<u8> {
        let bytes_of = |piece: &Piece| match piece {
            Piece::Bytes { hex } => hex::decode(hex).unwrap(),
            Piece::Of { vector, bytes } => {
                vectors[vector].message(vectors)[bytes[0]..bytes[1]].to_vec()
            }
        };
        self.message.iter().flat_map(bytes_of).collect()
    }
}

#[test]
fn the_worked_example_is_that_of_the_format() {
    let vectors = load();
    let message = vectors["worked-example"].message(&vectors);
    let format = include_str!("../../../docs/FORMAT.md");
    let (header, chunk) = message.split_at(HEADER_BYTES);
    for piece in [&header[..SALT_BYTES], &header[SALT_BYTES..], chunk] {
        assert!(
            format.contains(&hex::encode(piece)),
            "{}",
            hex::encode(piece)
        );
    }
}
