//! Where a blob's file lies: `blobs/ab/cdef…`, the id's 32 hexadecimal digits cut after two.

use std::path::{Path, PathBuf};

use coffer_seal::BlobId;

/// The folder of blobs within a bucket's.
pub(crate) const BLOBS_DIR: &str = "blobs";

/// A blob's file within `blobs_dir`.
pub(crate) fn path_of(blobs_dir: &Path, id: BlobId) -> PathBuf {
    let digits = id.to_string();
    let (folder, file) = digits.split_at(2);
    blobs_dir.join(folder).join(file)
}

/// The id that a folder's and a file's name make, if they are a blob's.
pub(crate) fn id_of(folder: &str, file: &str) -> Option<BlobId> {
    if folder.len() != 2 {
        return None;
    }
    BlobId::from_hex(&format!("{folder}{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_id_are_one() {
        let id = BlobId(std::array::from_fn(|index| index as u8 * 17));
        let path = path_of(Path::new("b"), id);
        assert_eq!(path, Path::new("b/00/112233445566778899aabbccddeeff"));
        assert_eq!(id_of("00", "112233445566778899aabbccddeeff"), Some(id));
    }

    #[test]
    fn other_names_are_no_blobs() {
        let file = "112233445566778899aabbccddeeff";
        for (folder, file) in [
            ("0", file),
            ("001", &file[1..]),
            ("00", &file[1..]),
            ("0G", file),
            ("", ""),
            ("AA", file),
        ] {
            assert_eq!(id_of(folder, file), None, "{folder}/{file}");
        }
    }
}
