//! `/v1/buckets`.

use axum::Json;
use axum::extract::State;
use coffer_vault::{
    BucketConfiguration, BucketName, BucketSummary, MD5_ETAGS, NewBucket, VaultError,
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::refusal::{About, Refusal};
use coffer_durable::rfc3339;

use self::settings::BucketSettings;

pub(crate) mod quotas;

pub(crate) mod settings;

/// A bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Its id: 32 hexadecimal digits, the name of its folder.
    pub id: String,
    /// Name of its level.
    pub level: String,
    /// The level's label.
    pub label: String,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// The generation before, which is destroyed when its rotation ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub older_generation: Option<u32>,
    /// How entity tags of what is uploaded to it come about.
    pub etag: EtagKind,
    /// How many objects it holds; absent where that can't be told without opening it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub object_count: Option<u64>,
    /// How many bytes those have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub object_bytes: Option<u64>,
    /// How many multipart uploads are under way, neither completed nor aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub upload_count: Option<u64>,
    /// How many bytes their parts have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub upload_bytes: Option<u64>,
    /// When the oldest of them was begun: RFC 3339, UTC; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub oldest_upload_at: Option<String>,
    /// What is set of it; absent where it can't be told how much it holds, either.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub settings: Option<BucketSettings>,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// How entity tags come about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EtagKind {
    /// The MD5 of uploads that carry `Content-MD5`, and random for others.
    #[default]
    Random,
    /// Always the MD5.
    Md5,
}

/// A bucket to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBucket)]
pub struct BucketRequest {
    /// Its name by S3's rules, unique on the server; it may be shorter than S3 has it.
    #[schema(pattern = "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")]
    pub name: String,
    /// Name of its level, for good.
    #[serde(default = "default_level")]
    pub level: String,
    /// How entity tags of what is uploaded to it come about, for good; `random`: as the server's
    /// configuration has it.
    #[serde(default)]
    pub etag: EtagKind,
}

fn default_level() -> String {
    "default".to_owned()
}

impl From<BucketSummary> for Bucket {
    fn from(summary: BucketSummary) -> Self {
        let BucketSummary {
            bucket,
            label,
            generation,
            older_generation,
            totals,
            settings,
        } = summary;
        let (objects, uploads) = totals.unzip();
        Self {
            name: bucket.name.to_string(),
            id: bucket.id.to_string(),
            level: bucket.level,
            label: label.to_string(),
            generation,
            older_generation,
            etag: if bucket.md5_etags {
                EtagKind::Md5
            } else {
                EtagKind::Random
            },
            object_count: objects.map(|totals| totals.objects),
            object_bytes: objects.map(|totals| totals.bytes),
            upload_count: uploads.as_ref().map(|uploads| uploads.count),
            upload_bytes: uploads.as_ref().map(|uploads| uploads.bytes),
            oldest_upload_at: uploads.and_then(|uploads| uploads.oldest_ms.map(rfc3339)),
            settings: settings.map(BucketSettings::from),
            created_at: rfc3339(bucket.created_ms),
        }
    }
}

pub(crate) fn bucket_name(name: &str) -> Result<BucketName, Refusal> {
    BucketName::new(name).ok_or_else(|| {
        Refusal::invalid(
            "a bucket's name is 1 to 63 of the characters a to z, 0 to 9, . and -, begins and ends \
             with a letter or digit, and is not shaped like an IP address",
        )
    })
}

/// The name of a bucket to be made: one that S3 clients reach, be it one that AWS keeps for itself,
/// which a bucket that moves in may have.
fn new_bucket_name(name: &str) -> Result<BucketName, Refusal> {
    let of_s3 = BucketName::new(name).filter(BucketName::is_of_s3);
    of_s3.ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        Refusal::invalid(format!(
            "{shown:?} can't be the name of a new bucket: that is 3 to 63 of the characters a to \
             z, 0 to 9, . and -, begins and ends with a letter or digit, does not begin with xn--, \
             and is not shaped like an IP address"
        ))
    })
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_buckets, create_bucket))
        .routes(routes!(show_bucket, delete_bucket))
}

/// Make a bucket
///
/// A system administrator's, who needs no access to its data.
#[utoipa::path(
    post,
    path = "/v1/buckets",
    tag = "buckets",
    request_body = BucketRequest,
    responses((status = CREATED, description = "The bucket, made", body = Bucket))
)]
async fn create_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<BucketRequest>,
) -> Result<(StatusCode, Json<Bucket>), Refusal> {
    let name = new_bucket_name(&request.name)?;
    let md5 = (BucketConfiguration::Etag, MD5_ETAGS.to_owned());
    let new = NewBucket {
        tags: None,
        level: Some(&request.level),
        documents: { Some(md5).into_iter() }
            .filter(|_| request.etag == EtagKind::Md5)
            .collect(),
        ..NewBucket::default()
    };
    let made = admin.vault.provide_bucket_with(&actor, &name, new).await;
    let about = match &made {
        Err(VaultError::NoSuchLevel) => request.level.as_str(),
        _ => name.as_str(),
    };
    let made = made.about(about)?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// List buckets
///
/// Those who look after the server see all buckets, data users those that they may use.
#[utoipa::path(
    get,
    path = "/v1/buckets",
    tag = "buckets",
    responses((status = OK, description = "By name", body = Vec<Bucket>))
)]
async fn list_buckets(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<Bucket>>, Refusal> {
    let buckets = admin.vault.buckets_known_to(&actor).await?;
    Ok(Json(buckets.into_iter().map(Bucket::from).collect()))
}

/// Show a bucket
#[utoipa::path(
    get,
    path = "/v1/buckets/{name}",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    responses((status = OK, description = "The bucket", body = Bucket))
)]
async fn show_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Json<Bucket>, Refusal> {
    let name = bucket_name(&name)?;
    let bucket = admin.vault.bucket_known_to(&actor, &name).await;
    let bucket = bucket.about(name.as_str())?;
    Ok(Json(bucket.into()))
}

/// Delete an empty bucket
///
/// A system administrator's. Its key is destroyed.
#[utoipa::path(
    delete,
    path = "/v1/buckets/{name}",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    responses((status = NO_CONTENT, description = "It is deleted"))
)]
async fn delete_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<StatusCode, Refusal> {
    let name = bucket_name(&name)?;
    let gone = admin.vault.withdraw_bucket(&actor, &name).await;
    gone.about(name.as_str())?;
    Ok(StatusCode::NO_CONTENT)
}
