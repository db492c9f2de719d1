//! Requests that ask for as little as they can.

use coffer_vault::record::{Details, Precondition, Tags};
use coffer_vault::version::Which;
use coffer_vault::{Conditions, CopySource, CopyTarget, NewUpload};

use crate::world::{bucket_name, object_name};

/// To copy an object of a bucket to this name.
pub(crate) fn copy((from, object): (usize, usize), name: usize) -> (CopySource, CopyTarget) {
    let source = CopySource {
        customer_key: None,
        bucket: bucket_name(from),
        name: object_name(object),
        which: Which::Current,
        conditions: Conditions::default(),
    };
    let target = CopyTarget {
        redirect: None,
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        name: object_name(name),
        details: None,
        tags: None,
        checksum: None,
        precondition: Precondition::None,
    };
    (source, target)
}

/// To begin a multipart upload of object 0.
pub(crate) fn upload() -> NewUpload {
    NewUpload {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        acl_sent: Default::default(),
        name: object_name(0),
        details: Details::default(),
        tags: Tags::new(),
        checksum: None,
    }
}
