//! The administration API, `/v1/`: a module a resource, each with its routes and the types of their
//! JSON. How requests are signed, read and refused is in `http`.

use utoipa_axum::router::OpenApiRouter;

use crate::admin::Admin;

pub(crate) mod levels;

pub(crate) mod buckets;

pub(crate) mod uploads;

pub(crate) mod access_keys;

pub(crate) mod subjects;

pub(crate) mod rotation_progress;

pub(crate) mod root_rotation;

pub(crate) mod approvals;

pub(crate) mod rotations;

pub(crate) mod imports;

pub(crate) mod keystore;

pub(crate) mod receipts;

pub(crate) mod audit;

pub(crate) mod verify_report;

pub(crate) mod verification;

pub(crate) mod backups;

/// All of `/v1/`.
pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .merge(levels::routes())
        .merge(approvals::routes())
        .merge(rotations::routes())
        .merge(imports::routes())
        .merge(keystore::routes())
        .merge(approvals::lock_time::routes())
        .merge(receipts::routes())
        .merge(buckets::routes())
        .merge(buckets::quotas::routes())
        .merge(uploads::routes())
        .merge(subjects::routes())
        .merge(access_keys::routes())
        .merge(audit::routes())
        .merge(verification::routes())
        .merge(backups::routes())
        .merge(backups::replicas::routes())
        .merge(backups::standby::routes())
}
