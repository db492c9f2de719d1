//! What can be wrong with checksums, of parts above all, in the words of S3.

use coffer_store::record::ChecksumAlgorithm;

/// Why bytes or parts don't fit the checksums that came with them, or these are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChecksumError {
    /// A part came with a checksum of another algorithm than its upload's, or with none where there
    /// must be one.
    #[error(
        "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
        announced.word(),
        sent.map_or("null", ChecksumAlgorithm::word)
    )]
    OtherAlgorithm {
        /// What the upload was begun with.
        announced: ChecksumAlgorithm,
        /// What came with the part.
        sent: Option<ChecksumAlgorithm>,
    },
    /// Bytes that are to be locked came without anything to compare them with.
    #[error(
        "Content-MD5 OR x-amz-checksum- HTTP header is required for what is to be locked: a \
         checksum in a trailer will do as well"
    )]
    MissingForLock,
    /// The bytes that came have another MD5 than was sent with them.
    #[error("The Content-MD5 you specified did not match what we received.")]
    OtherMd5 {
        /// What was sent.
        sent: [u8; 16],
        /// What the bytes have.
        computed: [u8; 16],
    },
    /// What the parts make up has another checksum than was sent with their completion.
    #[error(
        "The {} you specified did not match the calculated checksum.",
        algorithm.word().to_ascii_uppercase()
    )]
    OtherOfWhole {
        /// Of which algorithm.
        algorithm: ChecksumAlgorithm,
    },
    /// A completion names a part by a checksum of another algorithm than the upload's.
    #[error(
        "The {} you specified for part {number} did not match what we received.",
        sent.word()
    )]
    OtherOfPart {
        /// The part's number.
        number: u32,
        /// What the upload was begun with.
        announced: ChecksumAlgorithm,
        /// What the completion has.
        sent: ChecksumAlgorithm,
    },
    /// A completion names a part without the checksum that it must name it by.
    #[error(
        "The upload was created using a {} checksum. The complete request must include the \
         checksum for each part. It was missing for part {number} in the request.",
        announced.word()
    )]
    MissingOfPart {
        /// The part's number.
        number: u32,
        /// What the upload was begun with.
        announced: ChecksumAlgorithm,
    },
}
