//! Access control lists: who is granted what on a bucket or an object. A list only ever grants;
//! whether lists count at all is said by the ownership of objects.
//!
//! *Amazon S3 User Guide*, Access control list (ACL) overview
//! (`AmazonS3/latest/userguide/acl-overview.html`).

mod grants;

mod header;

mod canned;

mod permissions;

mod ownership;

pub use canned::CannedAcl;
pub use grants::{Acl, Grant, Grantee, Group, NO_GRANTS, Permission, TooManyGrants};
pub use header::grants_in_header;
pub use ownership::{AclRefusal, ObjectOwnership};
pub(crate) use permissions::is_granted;
