//! `/v1/audit`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use coffer_audit::{Hash, Outcome, Record, Recorded};
use coffer_vault::{Actor, AuditFilter, AuditItem, AuditQuery, check_act};
use futures::StreamExt;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::access_keys::moment;
use crate::api::approvals::ApprovalAnswer;
use crate::http::caller::{Caller, InQuery, Input};
use crate::http::json_lines::json_lines;
use crate::http::refusal::Refusal;

/// Which records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditRequest {
    /// From this record on.
    #[param(minimum = 1)]
    pub since: Option<u64>,
    /// From this time on: RFC 3339.
    #[param(format = DateTime)]
    pub since_time: Option<String>,
    /// Before this time: RFC 3339.
    #[param(format = DateTime)]
    pub until_time: Option<String>,
    /// Of this act, such as `level.erase`; or of all of a kind, such as `level`.
    pub act: Option<String>,
    /// By or about this subject: its name, its id or an access key id; also `local:UID`.
    pub subject: Option<String>,
    /// About this bucket.
    pub bucket: Option<String>,
    /// With this outcome.
    #[param(inline)]
    pub outcome: Option<Ended>,
    /// Of those, only so many at the end.
    pub last: Option<u64>,
}

/// What became of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// It is about to be done.
    Begun,
    /// It was done.
    Done,
    /// It was not allowed.
    Denied,
    /// It failed.
    Failed,
}

impl AuditRequest {
    fn filter(self) -> Result<AuditFilter, Refusal> {
        let time = |text: Option<String>| text.as_deref().map(moment).transpose();
        if let Some(act) = &self.act {
            check_act(act).map_err(Refusal::invalid)?;
        }
        Ok(AuditFilter {
            since_ms: time(self.since_time)?,
            until_ms: time(self.until_time)?,
            act: self.act,
            subject: self.subject,
            bucket: self.bucket,
            outcome: self.outcome.map(|outcome| match outcome {
                Ended::Begun => Outcome::Begun,
                Ended::Done => Outcome::Done,
                Ended::Denied => Outcome::Denied,
                Ended::Failed => Outcome::Failed,
            }),
        })
    }
}

/// Records are counted in integers as others know them, of 63 bits.
fn counted(number: Option<u64>, least: u64, name: &str) -> Result<Option<u64>, Refusal> {
    match number {
        Some(number) if number < least || i64::try_from(number).is_err() => Err(Refusal::invalid(
            format!("{name} is from {least} to 2^63 - 1"),
        )),
        number => Ok(number),
    }
}

/// A line of the answer: a record, or, with `unreadable` alone, what is wrong with one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Its number, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// When it happened: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub time: Option<String>,
    /// What was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    /// Who did it: a subject's id, or `local:UID`; in older records an access key id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The name of that subject when it did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    /// The id of the access key that it was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// `begun`, `done`, `denied` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What it was done to, and how.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// Its hash, which covers all before it: 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What is wrong: the rest of a segment can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl From<Record> for AuditRecord {
    fn from(record: Record) -> Self {
        Self {
            sequence: Some(record.sequence),
            time: Some(record.time()),
            hash: Some(record.hash.to_string()),
            act: Some(record.event.act.into_owned()),
            actor: Some(record.event.actor),
            actor_name: record.event.actor_name,
            access_key_id: record.event.access_key_id,
            outcome: Some(record.event.outcome.as_str().to_owned()),
            details: record.event.details,
            unreadable: None,
        }
    }
}

/// A record that must be in the log, such as a receipt's `last_audit_record`; both or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditVerifyRequest {
    /// Its number.
    pub sequence: Option<u64>,
    /// Its hash: 64 hexadecimal digits.
    pub hash: Option<String>,
}

impl AuditVerifyRequest {
    fn wanted(&self) -> Result<Option<Recorded>, Refusal> {
        let sequence = counted(self.sequence, 0, "sequence")?;
        let (sequence, hash) = match (sequence, &self.hash) {
            (None, None) => return Ok(None),
            (Some(sequence), Some(hash)) => (sequence, Hash::from_hex(hash)),
            _ => return Err(Refusal::invalid("a record is its number and its hash")),
        };
        let hash = hash.ok_or_else(|| Refusal::invalid("a hash is 64 hexadecimal digits"))?;
        Ok(Some(Recorded { sequence, hash }))
    }
}

/// What a verification of the audit log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    /// Whether nothing is wrong; what was pruned, or rolled back on purpose, is missing.
    pub sound: bool,
    /// How many records are as they were written.
    pub record_count: u64,
    /// How many segments were read.
    pub segment_count: u32,
    /// How many checkpoints were signed by this server's key.
    pub checkpoint_count: u64,
    /// The last record that was pruned, as a signed record says; 0 if none was.
    #[serde(default)]
    pub pruned_through: u64,
    /// Records that are missing since an older copy was gone on from on purpose, as the log says.
    #[serde(default)]
    pub rolled_back: Vec<String>,
    /// The last record: its number.
    pub last_sequence: u64,
    /// The last record: its hash.
    pub last_hash: String,
    /// What is wrong, the first thing first.
    pub findings: Vec<String>,
    /// How many more things are wrong.
    pub more_findings: u64,
}

impl From<coffer_audit::Report> for AuditReport {
    fn from(report: coffer_audit::Report) -> Self {
        Self {
            sound: report.is_sound(),
            record_count: report.record_count,
            segment_count: report.segment_count,
            checkpoint_count: report.checkpoint_count,
            pruned_through: report.pruned_through,
            rolled_back: { report.rolled_back.iter() }
                .map(ToString::to_string)
                .collect(),
            last_sequence: report.last.sequence,
            last_hash: report.last.hash.to_string(),
            findings: report.findings.iter().map(ToString::to_string).collect(),
            more_findings: report.more_findings,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(read_audit))
        .routes(routes!(follow_audit))
        .routes(routes!(verify_audit))
        .routes(routes!(prune_audit))
}

/// What is to be pruned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditPruneRequest {
    /// Records from before this time: RFC 3339, a day ago at the latest.
    #[schema(format = DateTime)]
    pub before: String,
}

/// Prune the audit log
///
/// An auditor's. Removes the segments all of whose records are from before a time; a signed record
/// says which they were. Takes approvals where any level does.
#[utoipa::path(
    post,
    path = "/v1/audit/prune",
    tag = "audit",
    request_body = AuditPruneRequest,
    responses(ApprovalAnswer)
)]
async fn prune_audit(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<AuditPruneRequest>,
) -> Result<ApprovalAnswer, Refusal> {
    let before_ms = moment(&request.before)?;
    Ok(admin.vault.prune_audit(&actor, before_ms).await?.into())
}

/// Read the audit log
///
/// An auditor's. The answer is a line of JSON for each record; conditions are combined.
#[utoipa::path(
    get,
    path = "/v1/audit",
    tag = "audit",
    params(AuditRequest),
    responses((
        status = OK,
        description = "Records in their order, a line each",
        body = AuditRecord,
        content_type = "application/x-ndjson",
    ))
)]
async fn read_audit(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InQuery(request): InQuery<AuditRequest>,
) -> Result<Response, Refusal> {
    lines(&admin, &actor, request, false).await
}

/// Follow the audit log
///
/// An auditor's. As reading it; then records as they come, until the server stops or who asked
/// hangs up.
#[utoipa::path(
    get,
    path = "/v1/audit/follow",
    tag = "audit",
    params(AuditRequest),
    responses((
        status = OK,
        description = "Records in their order, a line each, without an end",
        body = AuditRecord,
        content_type = "application/x-ndjson",
    ))
)]
async fn follow_audit(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InQuery(request): InQuery<AuditRequest>,
) -> Result<Response, Refusal> {
    lines(&admin, &actor, request, true).await
}

async fn lines(
    admin: &Admin,
    actor: &Actor,
    request: AuditRequest,
    follow: bool,
) -> Result<Response, Refusal> {
    let query = AuditQuery {
        from: counted(request.since, 1, "since")?,
        last: counted(request.last, 0, "last")?,
        filter: request.filter()?,
        follow,
    };
    let items = admin.vault.audit_records(actor, query).await?;
    // A server that stops does not wait for those who follow.
    let status = admin.status.clone();
    let records = items
        .take_while(move |item| {
            let goes_on = status.is_ready() || !matches!(item, AuditItem::Idle);
            std::future::ready(goes_on)
        })
        .filter_map(|item| std::future::ready(told(item)));
    Ok(json_lines(records))
}

fn told(item: AuditItem) -> Option<AuditRecord> {
    match item {
        AuditItem::Record(record) => Some(AuditRecord::from(*record)),
        AuditItem::Unreadable(what) => Some(AuditRecord {
            unreadable: Some(what),
            ..AuditRecord::default()
        }),
        AuditItem::Idle => None,
    }
}

/// Verify the audit log
///
/// An auditor's. Every record, every checkpoint, and that the end is there; it takes as long as
/// reading all of the log does.
#[utoipa::path(
    post,
    path = "/v1/audit/verify",
    tag = "audit",
    request_body = AuditVerifyRequest,
    responses((status = OK, description = "What was found", body = AuditReport))
)]
async fn verify_audit(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<AuditVerifyRequest>,
) -> Result<Json<AuditReport>, Refusal> {
    let wanted = request.wanted()?;
    let turn = admin.audit_verifications.clone().try_acquire_owned();
    let _turn = turn.map_err(|_| {
        let message = "another verification is under way; wait for it to end";
        Refusal::new(StatusCode::CONFLICT, "verification_under_way", message)
    })?;
    let report = admin.vault.verify_audit(&actor, wanted).await?;
    Ok(Json(report.into()))
}
