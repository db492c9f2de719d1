//! `/v1/levels`.

use axum::Json;
use axum::extract::State;
use coffer_keys::LevelOptions;
use coffer_label::{Categories, Label, Rank};
use coffer_vault::{LevelInfo, NewLevel};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::refusal::{About, Refusal};
use coffer_durable::rfc3339;

/// A level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Its id: 32 hexadecimal digits, by which metrics tell it.
    pub id: String,
    /// Rank and categories as SELinux writes them, such as `s2:c1.c3,c7`.
    pub label: String,
    /// Its rank, 0 (lowest) to 15.
    #[schema(maximum = 15)]
    pub rank: u8,
    /// Its categories, such as `c1.c3,c7`; empty if it has none.
    pub categories: String,
    /// Whether its key is never exported.
    pub no_export: bool,
    /// How many custodians an erase or an export takes.
    pub approvals: u8,
    /// Whether reads and writes of its objects are recorded in the audit log.
    pub audit_data: bool,
    /// Whether its buckets can be shared with those who sign nothing.
    pub public: bool,
    /// Whether an erase wins over object locks.
    pub erase_breaks_locks: bool,
    /// Whether clients may be given data keys, for sealed transfer.
    pub sealed_transfer: bool,
    /// Whether its key came from another server, which may hold it still.
    pub imported: bool,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// How often its key was exported from this server.
    pub export_count: u32,
    /// How many buckets it holds, of those that the caller may know of.
    pub bucket_count: u64,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// A level to be made. All of it is for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLevel)]
pub struct LevelRequest {
    /// Its name, unique: 1 to 63 of the characters a to z, 0 to 9 and `-`.
    #[schema(pattern = "^[a-z0-9-]{1,63}$")]
    pub name: String,
    /// Its rank, 0 (lowest) to 15.
    #[schema(maximum = 15)]
    pub rank: u8,
    /// Its categories, c0 to c1023, such as `c1.c3,c7`.
    #[serde(default)]
    pub categories: String,
    /// Whether its key is never exported.
    #[serde(default)]
    pub no_export: bool,
    /// How many custodians an erase or an export takes, from 1.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub approvals: u8,
    /// Whether reads and writes of its objects are recorded in the audit log.
    #[serde(default)]
    pub audit_data: bool,
    /// Whether its buckets can be shared with those who sign nothing; of rank 0, without
    /// categories.
    #[serde(default)]
    pub public: bool,
    /// Whether an erase is to win over object locks: then a lock keeps from deleting alone.
    #[serde(default)]
    pub erase_breaks_locks: bool,
    /// Whether clients may be given data keys, for sealed transfer: who keeps one can open the
    /// sealed bytes of that object for ever.
    #[serde(default)]
    pub sealed_transfer: bool,
    /// Whether it may have the label of another level: who reads one reads both.
    #[serde(default)]
    pub same_label: bool,
}

fn one() -> u8 {
    1
}

impl From<LevelInfo> for Level {
    fn from(info: LevelInfo) -> Self {
        let LevelInfo {
            level,
            bucket_count,
        } = info;
        Self {
            name: level.name,
            id: level.id.to_string(),
            label: level.label.to_string(),
            rank: level.label.rank.number(),
            categories: level.label.categories.to_string(),
            no_export: !level.options.exportable,
            approvals: level.options.approvals,
            audit_data: level.options.audit_data,
            public: level.options.public,
            erase_breaks_locks: level.options.erase_breaks_locks,
            sealed_transfer: level.options.sealed_transfer,
            imported: level.imported,
            generation: level.generation,
            export_count: level.export_count,
            bucket_count: bucket_count as u64,
            created_at: rfc3339(level.created_ms),
        }
    }
}

impl TryFrom<LevelRequest> for NewLevel {
    type Error = Refusal;

    fn try_from(request: LevelRequest) -> Result<Self, Refusal> {
        let rank = Rank::new(request.rank);
        let categories: Result<Categories, _> = request.categories.parse();
        Ok(Self {
            name: request.name,
            label: Label {
                rank: rank.map_err(|error| Refusal::invalid(error.to_string()))?,
                categories: categories.map_err(|error| Refusal::invalid(error.to_string()))?,
            },
            options: LevelOptions {
                exportable: !request.no_export,
                approvals: request.approvals,
                audit_data: request.audit_data,
                public: request.public,
                erase_breaks_locks: request.erase_breaks_locks,
                sealed_transfer: request.sealed_transfer,
            },
            may_share_label: request.same_label,
        })
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_levels, create_level))
        .routes(routes!(show_level))
}

/// Make a level and its key
///
/// A key custodian's.
#[utoipa::path(
    post,
    path = "/v1/levels",
    tag = "levels",
    request_body = LevelRequest,
    responses((status = CREATED, description = "The level, made", body = Level))
)]
async fn create_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<LevelRequest>,
) -> Result<(StatusCode, Json<Level>), Refusal> {
    let level = admin
        .vault
        .create_level(&actor, request.try_into()?)
        .await?;
    Ok((StatusCode::CREATED, Json(level.into())))
}

/// List levels
///
/// Those who look after the server see all levels, data users those that they may read.
#[utoipa::path(
    get,
    path = "/v1/levels",
    tag = "levels",
    responses((status = OK, description = "By rank, then by name", body = Vec<Level>))
)]
async fn list_levels(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<Level>>, Refusal> {
    let levels = admin.vault.levels(&actor).await?;
    Ok(Json(levels.into_iter().map(Level::from).collect()))
}

/// Show a level
#[utoipa::path(
    get,
    path = "/v1/levels/{name}",
    tag = "levels",
    params(("name" = String, Path, description = "The level's name")),
    responses((status = OK, description = "The level", body = Level))
)]
async fn show_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Json<Level>, Refusal> {
    Ok(Json(
        admin.vault.level(&actor, &name).await.about(&name)?.into(),
    ))
}
