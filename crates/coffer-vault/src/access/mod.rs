//! Who asks, and what they may do: subjects, actors, roles, rights, and the monitor's questions.
//!
//! What is done once it is allowed is in `acts` and the rooms above it; how subjects are made and
//! changed is in `admin`.

mod account;

mod act;

mod bucket_name;

mod access_key;

mod roles;

mod rights;

mod read_mark;

mod acl;

mod own_values;

mod sharing;

mod asked;

mod subject;

mod maker;

mod monitor;

mod actor;

pub use self::access_key::looks_like_access_key_id;
pub use self::access_key::{AccessKey, NewAccessKey};
#[cfg(test)]
pub(crate) use self::access_key::{random_access_key_id, random_secret_access_key};
pub(crate) use self::account::account_id;
pub use self::acl::{AskedAcl, AskedGrant, AskedGrantee, ListAsSent};
pub(crate) use self::acl::{
    access_of_upload, acl_of, counted, kept_grants, kept_with_upload, list_sent_with_upload,
    ownership_document, ownership_of,
};
pub(crate) use self::act::{ACT_NAMES, Act};
pub use self::actor::Actor;
pub(crate) use self::actor::AuditIdentity;
pub use self::asked::{Asked, AskedAction, AskedOf, Asks};
pub(crate) use self::asked::{
    AskedEach, Single, WithObject, is_of_object_owner, is_of_owner, rights_for, tags_copied,
};
pub use self::bucket_name::BucketName;
pub(crate) use self::maker::maker;
pub(crate) use self::monitor::{
    is_marked_by, may_copy, may_know, may_know_subject, may_read, may_use, may_use_by_label,
    may_write, may_write_after_reading,
};
pub(crate) use self::own_values::OwnValues;
pub(crate) use self::read_mark::{Mark, Reading};
pub use self::rights::{Right, Rights};
pub use self::roles::{Role, Roles};
pub(crate) use self::sharing::{Lists, Sharing, SharingDocuments, block_document, block_of};
pub(crate) use self::subject::Grants;
pub use self::subject::Subject;
