//! `/v1/quotas`: how much buckets, levels and subjects may hold.

use axum::Json;
use axum::extract::State;
use coffer_vault::{Quota, QuotaInfo, QuotaUsage};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::refusal::{About, Refusal};

/// How much there may be; what is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = QuotaLimits)]
pub struct QuotaLimits {
    /// Bytes of objects, and of parts of uploads under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 10_000_000_000_u64)]
    pub bytes: Option<u64>,
    /// Objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Multipart uploads under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploads: Option<u64>,
    /// Buckets, of a level or a subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u64>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaUsed {
    /// Bytes of objects, and of parts of uploads under way.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Multipart uploads under way.
    pub uploads: u64,
    /// Buckets.
    pub buckets: u64,
}

/// A quota, and what is used of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Quota)]
pub struct QuotaRow {
    /// What it is of: `bucket`, `level`, or `subject` for all buckets that it has made.
    #[schema(example = "bucket")]
    pub kind: String,
    /// The name of that.
    pub name: String,
    /// Its id, by which metrics tell it.
    pub id: String,
    /// How much there may be.
    pub limits: QuotaLimits,
    /// How much there is, with what is being written.
    pub used: QuotaUsed,
}

impl From<QuotaInfo> for QuotaRow {
    fn from(info: QuotaInfo) -> Self {
        let QuotaInfo {
            of,
            name,
            quota,
            used,
        } = info;
        let Quota {
            bytes,
            objects,
            uploads,
            buckets,
        } = quota;
        let limits = QuotaLimits {
            bytes,
            objects,
            uploads,
            buckets,
        };
        let QuotaUsage {
            bytes,
            objects,
            uploads,
            buckets,
        } = used;
        Self {
            kind: of.kind().to_owned(),
            name,
            id: of.id_text(),
            limits,
            used: QuotaUsed {
                bytes,
                objects,
                uploads,
                buckets,
            },
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_quotas))
        .routes(routes!(set_quota, remove_quota))
}

/// List quotas
///
/// A system administrator's: those of what it may know of, with what is used of them.
#[utoipa::path(
    get,
    path = "/v1/quotas",
    tag = "buckets",
    responses((status = OK, description = "By kind and name", body = Vec<QuotaRow>))
)]
async fn list_quotas(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<QuotaRow>>, Refusal> {
    let all = admin.vault.quotas(&actor).await?;
    Ok(Json(all.into_iter().map(QuotaRow::from).collect()))
}

/// Set a quota
///
/// A system administrator's. It takes the place of the one there was; what is stored already stays,
/// however much it is.
#[utoipa::path(
    put,
    path = "/v1/quotas/{kind}/{name}",
    tag = "buckets",
    params(
        ("kind" = String, Path, description = "`bucket`, `level` or `subject`"),
        ("name" = String, Path, description = "The name of that"),
    ),
    request_body = QuotaLimits,
    responses((status = OK, description = "The quota, and what is used of it", body = QuotaRow))
)]
async fn set_quota(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath((kind, name)): InPath<(String, String)>,
    Input(limits): Input<QuotaLimits>,
) -> Result<Json<QuotaRow>, Refusal> {
    let QuotaLimits {
        bytes,
        objects,
        uploads,
        buckets,
    } = limits;
    let quota = Quota {
        bytes,
        objects,
        uploads,
        buckets,
    };
    let set = admin.vault.set_quota(&actor, &kind, &name, quota).await;
    Ok(Json(set.about(&name)?.into()))
}

/// Remove a quota
///
/// A system administrator's. Where there is none, that is told, as by other removals.
#[utoipa::path(
    delete,
    path = "/v1/quotas/{kind}/{name}",
    tag = "buckets",
    params(
        ("kind" = String, Path, description = "`bucket`, `level` or `subject`"),
        ("name" = String, Path, description = "The name of that"),
    ),
    responses((status = NO_CONTENT, description = "There is none now"))
)]
async fn remove_quota(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath((kind, name)): InPath<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let removed = admin.vault.remove_quota(&actor, &kind, &name).await;
    removed.about(&name)?;
    Ok(StatusCode::NO_CONTENT)
}
