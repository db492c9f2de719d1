//! Contexts: the public bytes that bind a message to its place.

use crate::ids::{BlobId, BucketId, KeystoreId, LevelId};

/// Public bytes that go into a message's key derivation: the message opens with the same context
/// only, so a sealed thing that was moved elsewhere does not open.
///
/// The kinds can't be taken for one another: each begins with its own name and a zero byte, and
/// what follows has a fixed width.
///
/// ```
/// use coffer_seal::{BlobId, Context, KeyKind};
///
/// let context = Context::key(KeyKind::Data(BlobId([0xAB; 16])), 7);
/// assert_eq!(&context.as_bytes()[..15], b"coffer key v1\0\x03");
/// assert_eq!(context.as_bytes()[31..], [0, 0, 0, 7]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context(Vec<u8>);

/// What a wrapped key is for, one byte of its context, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A level's key.
    Level(LevelId),
    /// A bucket's key.
    Bucket(BucketId),
    /// A blob's data key; the generation is that of the bucket key.
    Data(BlobId),
    /// The key of the server's own database.
    System(KeystoreId),
    /// The seed of the key that signs receipts.
    Receipt(KeystoreId),
    /// A root key that a passphrase wraps; the owner is the salt it is derived with, the generation
    /// 1.
    Root([u8; 16]),
    /// The key of a bucket's catalog; the generation is that of the bucket key.
    Catalog(BucketId),
    /// A blob's data key that a client's key wraps; the generation is 1.
    Customer(BlobId),
    /// A blob's data key that a client's key has wrapped; the generation is that of the bucket key.
    CustomerData(BlobId),
}

impl Context {
    /// A blob: `"coffer blob v1" 0x00 bucket-id(16) blob-id(16)`.
    pub fn blob(bucket_id: BucketId, blob_id: BlobId) -> Self {
        Self::of(b"coffer blob v1\0", &[&bucket_id.0, &blob_id.0])
    }

    /// A wrapped key: `"coffer key v1" 0x00 kind(1) owner-id(16) generation(4, big-endian)`.
    pub fn key(kind: KeyKind, generation: u32) -> Self {
        let (kind, owner_id) = match kind {
            KeyKind::Level(LevelId(id)) => (1, id),
            KeyKind::Bucket(BucketId(id)) => (2, id),
            KeyKind::Data(BlobId(id)) => (3, id),
            KeyKind::System(KeystoreId(id)) => (4, id),
            KeyKind::Receipt(KeystoreId(id)) => (5, id),
            KeyKind::Root(salt) => (6, salt),
            KeyKind::Catalog(BucketId(id)) => (7, id),
            KeyKind::Customer(BlobId(id)) => (8, id),
            KeyKind::CustomerData(BlobId(id)) => (9, id),
        };
        Self::of(
            b"coffer key v1\0",
            &[&[kind], &owner_id, &generation.to_be_bytes()],
        )
    }

    /// A keystore's body: `"coffer keystore v1" 0x00 keystore-id(16) generation(8, big-endian)`.
    pub fn keystore(keystore_id: KeystoreId, generation: u64) -> Self {
        Self::of(
            b"coffer keystore v1\0",
            &[&keystore_id.0, &generation.to_be_bytes()],
        )
    }

    /// A record of the audit log: `"coffer audit v1" 0x00 keystore-id(16) sequence(8, big-endian)`.
    pub fn audit(keystore_id: KeystoreId, sequence: u64) -> Self {
        Self::of(
            b"coffer audit v1\0",
            &[&keystore_id.0, &sequence.to_be_bytes()],
        )
    }

    /// The audit log's head: `"coffer audit head v1" 0x00 keystore-id(16)`.
    pub fn audit_head(keystore_id: KeystoreId) -> Self {
        Self::of(b"coffer audit head v1\0", &[&keystore_id.0])
    }

    /// The anchor: `"coffer anchor v1" 0x00 keystore-id(16) number(8, big-endian)`.
    pub fn anchor(keystore_id: KeystoreId, number: u64) -> Self {
        Self::of(
            b"coffer anchor v1\0",
            &[&keystore_id.0, &number.to_be_bytes()],
        )
    }

    /// An object's name in a record of the audit log: `"coffer audit name v1" 0x00 bucket-id(16)`.
    pub fn audit_name(bucket_id: BucketId) -> Self {
        Self::of(b"coffer audit name v1\0", &[&bucket_id.0])
    }

    /// Any bytes: for messages that are not coffer's, such as test vectors.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes as they enter the derivation.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn of(name: &[u8], fields: &[&[u8]]) -> Self {
        Self([name, &fields.concat()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_format() {
        assert_eq!(
            Context::blob(BucketId([1; 16]), BlobId([2; 16])).as_bytes(),
            [&b"coffer blob v1\0"[..], &[1; 16], &[2; 16]].concat()
        );
        assert_eq!(
            Context::key(KeyKind::Bucket(BucketId([3; 16])), 0x0102_0304).as_bytes(),
            [&b"coffer key v1\0\x02"[..], &[3; 16], &[1, 2, 3, 4]].concat()
        );
        for (kind, number) in [
            (KeyKind::Customer(BlobId([9; 16])), 8),
            (KeyKind::CustomerData(BlobId([9; 16])), 9),
        ] {
            assert_eq!(
                Context::key(kind, 1).as_bytes(),
                [&b"coffer key v1\0"[..], &[number], &[9; 16], &[0, 0, 0, 1]].concat()
            );
        }
        assert_eq!(
            Context::keystore(KeystoreId([4; 16]), 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer keystore v1\0"[..],
                &[4; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit(KeystoreId([5; 16]), 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer audit v1\0"[..],
                &[5; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit_head(KeystoreId([6; 16])).as_bytes(),
            [&b"coffer audit head v1\0"[..], &[6; 16]].concat()
        );
        assert_eq!(
            Context::anchor(KeystoreId([8; 16]), 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer anchor v1\0"[..],
                &[8; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit_name(BucketId([7; 16])).as_bytes(),
            [&b"coffer audit name v1\0"[..], &[7; 16]].concat()
        );
    }
}
