//! Sealed blobs and catalogs on disk.
