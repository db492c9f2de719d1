//! S3 as a client speaks it, to coffer and to other servers: one request at a time, signed in its
//! headers, sent again where that may help; objects, lists, uploads in parts, checksums.
//!
//! What files become of it is in [`mover`](crate::mover). Paths name buckets (path style): all
//! servers take that.

mod endpoint;

mod xml;

mod error;

pub mod checksum;

mod composite;

mod body;
mod request;
mod wire;

mod retry;

mod client;

mod listing;

mod objects;

mod since;

mod store;

mod multipart;

#[cfg(test)]
mod tests;

pub use self::body::{Answer, Sent};
pub(crate) use self::body::{bare, strong};
pub use self::client::{Client, ClientOptions, Retrying};
pub use self::composite::{Composite, RunningComposite};
pub use self::endpoint::Endpoint;
pub use self::error::{Outcome, S3Error};
pub(crate) use self::error::{advice_of_lock, date_of, without_bucket};
pub use self::listing::{BucketEntry, ListedObject, ListedVersion, Page, Paging, VersionsPage};
pub(crate) use self::listing::{objects_page, versions_page};
pub use self::multipart::{DonePart, ListedPart, UploadStart};
pub(crate) use self::multipart::{etag_of_parts, is_ended};
pub use self::objects::{Deleted, ObjectHead, ObjectName, Stored};
pub(crate) use self::objects::{EARLY, LONGER, UNMARKED, Wanted, tags_of};
pub use self::request::Request;
pub(crate) use self::since::{KeptTime, Since};
pub(crate) use self::store::{Awaited, Doubted};
pub use self::wire::Wire;
pub use self::xml::{Element, XmlFault};
