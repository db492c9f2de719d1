//! Contexts: the public bytes that bind a message to its place.

/// Public bytes that go into a message's key derivation: the message opens with the same context
/// only, so a sealed thing that was moved elsewhere does not open.
///
/// The kinds can't be taken for one another: each begins with its own name and a zero byte, and
/// what follows has a fixed width.
///
/// ```
/// use coffer_seal::{Context, KeyKind};
///
/// let context = Context::key(KeyKind::Data, &[0xAB; 16], 7);
/// assert_eq!(&context.as_bytes()[..15], b"coffer key v1\0\x03");
/// assert_eq!(context.as_bytes()[31..], [0, 0, 0, 7]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context(Vec<u8>);

/// What a wrapped key is for; one byte of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum KeyKind {
    /// A level's key; the owner is the level.
    Level = 1,
    /// A bucket's key; the owner is the bucket.
    Bucket = 2,
    /// A blob's data key; the owner is the blob, the generation that of the bucket key.
    Data = 3,
    /// The key of the server's own database; the owner is the keystore.
    System = 4,
    /// The seed of the key that signs receipts; the owner is the keystore.
    Receipt = 5,
    /// A root key that a passphrase wraps; the owner is the salt it is derived with, the generation
    /// 1.
    Root = 6,
    /// The key of a bucket's catalog; the owner is the bucket, the generation that of the bucket
    /// key.
    Catalog = 7,
}

impl Context {
    /// A blob: `"coffer blob v1" 0x00 bucket-id(16) blob-id(16)`.
    pub fn blob(bucket_id: &[u8; 16], blob_id: &[u8; 16]) -> Self {
        Self::of(b"coffer blob v1\0", &[bucket_id, blob_id])
    }

    /// A wrapped key: `"coffer key v1" 0x00 kind(1) owner-id(16) generation(4, big-endian)`.
    pub fn key(kind: KeyKind, owner_id: &[u8; 16], generation: u32) -> Self {
        Self::of(
            b"coffer key v1\0",
            &[&[kind as u8], owner_id, &generation.to_be_bytes()],
        )
    }

    /// A keystore's body: `"coffer keystore v1" 0x00 keystore-id(16) generation(8, big-endian)`.
    pub fn keystore(keystore_id: &[u8; 16], generation: u64) -> Self {
        Self::of(
            b"coffer keystore v1\0",
            &[keystore_id, &generation.to_be_bytes()],
        )
    }

    /// A record of the audit log: `"coffer audit v1" 0x00 keystore-id(16) sequence(8, big-endian)`.
    pub fn audit(keystore_id: &[u8; 16], sequence: u64) -> Self {
        Self::of(
            b"coffer audit v1\0",
            &[keystore_id, &sequence.to_be_bytes()],
        )
    }

    /// The audit log's head: `"coffer audit head v1" 0x00 keystore-id(16)`.
    pub fn audit_head(keystore_id: &[u8; 16]) -> Self {
        Self::of(b"coffer audit head v1\0", &[keystore_id])
    }

    /// The anchor: `"coffer anchor v1" 0x00 keystore-id(16) number(8, big-endian)`.
    pub fn anchor(keystore_id: &[u8; 16], number: u64) -> Self {
        Self::of(b"coffer anchor v1\0", &[keystore_id, &number.to_be_bytes()])
    }

    /// An object's name in a record of the audit log: `"coffer audit name v1" 0x00 bucket-id(16)`.
    pub fn audit_name(bucket_id: &[u8; 16]) -> Self {
        Self::of(b"coffer audit name v1\0", &[bucket_id])
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
            Context::blob(&[1; 16], &[2; 16]).as_bytes(),
            [&b"coffer blob v1\0"[..], &[1; 16], &[2; 16]].concat()
        );
        assert_eq!(
            Context::key(KeyKind::Bucket, &[3; 16], 0x0102_0304).as_bytes(),
            [&b"coffer key v1\0\x02"[..], &[3; 16], &[1, 2, 3, 4]].concat()
        );
        assert_eq!(
            Context::keystore(&[4; 16], 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer keystore v1\0"[..],
                &[4; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit(&[5; 16], 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer audit v1\0"[..],
                &[5; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit_head(&[6; 16]).as_bytes(),
            [&b"coffer audit head v1\0"[..], &[6; 16]].concat()
        );
        assert_eq!(
            Context::anchor(&[8; 16], 0x0102_0304_0506_0708).as_bytes(),
            [
                &b"coffer anchor v1\0"[..],
                &[8; 16],
                &[1, 2, 3, 4, 5, 6, 7, 8]
            ]
            .concat()
        );
        assert_eq!(
            Context::audit_name(&[7; 16]).as_bytes(),
            [&b"coffer audit name v1\0"[..], &[7; 16]].concat()
        );
    }
}
