//! Objects and multipart uploads: what front doors ask of them, and how their bytes come in and go
//! out.
//!
//! Whether a subject may is decided in `acts`; catalogs and blobs are `coffer-store`'s.

mod asked;

mod ingest;

mod body;

mod conditions;

mod read;

mod acl;

mod write;

mod delete;

mod rename;

mod upload_ids;

mod multipart;

mod list_uploads;

mod complete_upload;

mod release;

mod announce;

pub use self::acl::ObjectAcl;
pub(crate) use self::acl::entries;
pub use self::announce::{Announcement, SealedUpload};
pub use self::asked::{AskedEncryption, check_customer_key};
pub(crate) use self::body::Keys;
pub use self::body::ObjectBody;
pub use self::complete_upload::{CompleteUpload, CompletedPart};
pub use self::conditions::{Conditions, EtagMatch, RangeRequest, ReadOptions};
pub use self::delete::{DeleteObject, Deleted};
pub use self::ingest::{ArrivedBytes, Body, CheckDigests, Incoming};
pub use self::list_uploads::PartsPage;
pub use self::multipart::{CopyPart, NewUpload, PutPart, StartedUpload};
pub(crate) use self::read::look_through;
pub use self::read::{ObjectInfo, ObjectParts, ObjectRead};
pub use self::release::{Released, ReleasedSegment, SealedObject};
pub use self::rename::RenameObject;
pub use self::write::{CopySource, CopyTarget, PutObject, Stored};
