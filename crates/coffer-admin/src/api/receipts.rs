//! `/v1/receipts`.

use axum::Json;
use axum::extract::State;
use coffer_vault::ReceiptSummary;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InPath, InQuery};
use crate::http::refusal::Refusal;
use coffer_durable::{from_rfc3339, rfc3339};

/// Which receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReceiptsRequest {
    /// Only those that were signed then or before: RFC 3339.
    #[param(format = DateTime)]
    pub until: Option<String>,
}

/// A receipt, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEntry {
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// When it was signed: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub signed_at: String,
    /// What was erased: `level` or `bucket`.
    pub what: String,
    /// The level's name.
    pub level: String,
    /// The bucket's id, where `what` is `bucket`: 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket_id: Option<String>,
    /// How many objects it covers.
    pub objects: u64,
    /// How many bytes those had.
    pub bytes: u64,
}

/// The key that verifies receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptKey {
    /// An Ed25519 public key: 64 hexadecimal digits.
    pub public_key: String,
}

impl From<ReceiptSummary> for ReceiptEntry {
    fn from(summary: ReceiptSummary) -> Self {
        Self {
            id: summary.id,
            signed_at: rfc3339(summary.signed_ms),
            what: summary.what,
            level: summary.level,
            bucket_id: summary.bucket_id,
            objects: summary.objects,
            bytes: summary.bytes,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_receipts))
        .routes(routes!(show_receipt))
        .routes(routes!(show_receipt_key))
}

/// List receipts
///
/// The newest 1,000; those before them are told of by the `signed_at` of the last one as `until`.
/// An auditor's, or a key custodian's.
#[utoipa::path(
    get,
    path = "/v1/receipts",
    tag = "receipts",
    params(ReceiptsRequest),
    responses((status = OK, description = "The newest first", body = Vec<ReceiptEntry>))
)]
async fn list_receipts(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InQuery(request): InQuery<ReceiptsRequest>,
) -> Result<Json<Vec<ReceiptEntry>>, Refusal> {
    let moment = |text: String| {
        let advice = "until is written as in RFC 3339, such as 2026-12-31T00:00:00Z";
        from_rfc3339(&text).ok_or_else(|| Refusal::invalid(advice))
    };
    let until_ms = request.until.map(moment).transpose()?;
    let before_ms = until_ms.map(|until_ms| until_ms.saturating_add(1));
    let receipts = admin.vault.receipts(&actor, before_ms).await?;
    Ok(Json(receipts.into_iter().map(Into::into).collect()))
}

/// Show a receipt
///
/// As `docs/FORMAT.md` has it, and as it was signed. An auditor's, or a key custodian's.
#[utoipa::path(
    get,
    path = "/v1/receipts/{id}",
    tag = "receipts",
    params(("id" = String, Path, description = "The receipt's id")),
    responses((status = OK, description = "The receipt", body = serde_json::Value))
)]
async fn show_receipt(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(id): InPath<String>,
) -> Result<Json<serde_json::Value>, Refusal> {
    let receipt = admin.vault.receipt(&actor, &id).await?;
    Ok(Json(
        serde_json::to_value(receipt).expect("a receipt is JSON"),
    ))
}

/// Show the key that verifies receipts
#[utoipa::path(
    get,
    path = "/v1/receipt-key",
    tag = "receipts",
    responses((status = OK, description = "It is no secret", body = ReceiptKey))
)]
async fn show_receipt_key(
    Caller(_): Caller,
    State(admin): State<Admin>,
) -> Result<Json<ReceiptKey>, Refusal> {
    let key = admin.vault.receipt_public_key()?;
    Ok(Json(ReceiptKey {
        public_key: key.to_string(),
    }))
}
