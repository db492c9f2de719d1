//! The S3 front door.
