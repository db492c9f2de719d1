//! Health and metrics: open to every client that reaches the administration listener,
//! which is on loopback unless told otherwise (`docs/decisions/0005-open-metrics.md`).

use std::time::SystemTime;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use coffer_durable::rfc3339;
use coffer_vault::{FenceState, FenceStatus};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::admin::Admin;
use crate::metrics::page::{self, VaultFigures};

pub(crate) fn routes() -> Router<Admin> {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
}

async fn live() -> &'static str {
    "live\n"
}

async fn ready(State(admin): State<Admin>) -> Response {
    let why_not = not_ready(&admin).await;
    let status = match why_not {
        None => StatusCode::OK,
        Some(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut text = why_not.unwrap_or_else(|| "ready".to_owned());
    text.push('\n');
    if let Some(end) = admin.status.certificate_expiry() {
        text.push_str(&certificate(end, SystemTime::now()));
    }
    if let Some(s3) = admin.status.s3() {
        text.push_str(&format!("S3 {s3}\n"));
    }
    if let Some(data) = admin.status.data() {
        text.push_str(&format!("data {data}\n"));
    }
    if let Some(address) = admin.status.gateway().filter(|_| !admin.engine_has_ended()) {
        text.push_str(&format!("the gateway at {address} serves\n"));
    }
    if let Some(standby) = admin.vault.standby_now() {
        text.push_str(&follows(standby.lag_seconds, admin.vault.is_gateway()));
    }
    (status, text).into_response()
}

/// Why the server is not ready, if so.
async fn not_ready(admin: &Admin) -> Option<String> {
    if !admin.status.is_ready() {
        return Some(admin.status.word().to_owned());
    }
    if let Some(why) = admin.vault.fence_now().as_ref().and_then(fenced_off) {
        return Some(why);
    }
    if admin.engine_has_ended() {
        return Some(format!("not ready: {ENGINE_ENDED}"));
    }
    if admin.follows_engine() && admin.status.gateway().is_none() {
        return Some(NONE_SERVES.to_owned());
    }
    let why = admin.vault.why_not_writable().await?;
    Some(format!(
        "not ready: the data folder can't be written: {why}"
    ))
}

/// Of a gateway that follows, and can forward nothing.
const NONE_SERVES: &str = "not ready: this gateway follows, and it is not known which one serves: \
                           the store of the engine is away, or another is about to serve";

/// Of a gateway whose engine is served by a standby that was promoted.
pub(crate) const ENGINE_ENDED: &str = "this engine has ended: a standby that followed its log was \
                                       promoted, and serves in its place; send clients there, \
                                       and stop this gateway";

/// Of a server that is fenced off and could not note that.
const NOT_NOTED: &str = ". That is not noted in the data folder, which can't be written: it is \
                         tried again, and until it is a start without --fenced-by takes writes";

/// How far what is served is behind what is followed.
fn follows(lag_seconds: f64, is_gateway: bool) -> String {
    if is_gateway {
        format!("this gateway follows, {lag_seconds:.1} s behind the engine's log\n")
    } else {
        format!("standby, {lag_seconds:.1} s behind its copy\n")
    }
}

/// Why nothing is changed here, of a server that is fenced off. What its store said is for the log.
fn fenced_off(fence: &FenceStatus) -> Option<String> {
    let copy = &fence.copy;
    match fence.state {
        FenceState::Alone => None,
        FenceState::NotReached => Some(format!(
            "not ready: fenced off: its copy {copy} was not reached in time, or not yet since the \
             start, so nothing is changed here until it is"
        )),
        FenceState::Ended => Some(format!(
            "not ready: fenced off: another serves in its place, as its copy {copy} says, so \
             nothing is changed here any more; send clients to that one{}",
            if fence.is_noted { "" } else { NOT_NOTED }
        )),
    }
}

/// Until when clients accept the server's certificate.
fn certificate(end: SystemTime, now: SystemTime) -> String {
    let since = end.duration_since(SystemTime::UNIX_EPOCH);
    let at = rfc3339(since.map_or(0, |since| since.as_millis() as i64));
    match end.duration_since(now) {
        Ok(left) => format!(
            "certificate expires {at}, in {} days\n",
            left.as_secs() / 86_400
        ),
        Err(_) => format!("certificate EXPIRED {at}\n"),
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let text = page::render(
        not_ready(&admin).await.is_none(),
        admin.status.certificate_expiry(),
        admin.vault.audit_failure().is_none(),
        &VaultFigures {
            counters: admin.vault.counters(),
            levels: admin.vault.level_usage(),
            quotas: admin.vault.quotas_by_id(),
            copies: admin.vault.copies_now(),
            standby: admin.vault.standby_now(),
            fence: admin.vault.fence_now(),
            cache: admin.vault.cache_now(),
        },
        &admin.data,
        &(admin.s3_metrics)(),
        &admin.traffic.snapshot(),
    );
    ([(CONTENT_TYPE, page::CONTENT_TYPE)], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_fenced_off_is_not_ready() {
        let told = |state| {
            fenced_off(&FenceStatus {
                copy: "far".to_owned(),
                state,
                is_noted: true,
            })
        };
        assert_eq!(told(FenceState::Alone), None);
        for (state, said) in [
            (FenceState::NotReached, "its copy far was not reached"),
            (FenceState::Ended, "another serves in its place"),
        ] {
            let told = told(state).unwrap_or_default();
            assert!(told.starts_with("not ready: fenced off: "), "{told}");
            assert!(told.contains(said), "{told}");
            assert!(!told.contains("not noted"), "{told}");
        }
        let not_noted = fenced_off(&FenceStatus {
            copy: "far".to_owned(),
            state: FenceState::Ended,
            is_noted: false,
        });
        assert!(not_noted.is_some_and(|told| told.contains("not noted")));
    }

    #[test]
    fn a_gateway_that_follows_is_no_standby() {
        let standby = follows(1.25, false);
        assert_eq!(standby, "standby, 1.2 s behind its copy\n");
        let gateway = follows(0.0, true);
        assert_eq!(
            gateway,
            "this gateway follows, 0.0 s behind the engine's log\n"
        );
    }

    #[test]
    fn how_long_the_certificate_lasts() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let told = |now| certificate(end, now);
        let early = told(end - Duration::from_hours(49));
        assert_eq!(
            early,
            "certificate expires 2027-01-15T08:00:00.000Z, in 2 days\n"
        );
        let late = told(end + Duration::from_secs(1));
        assert_eq!(late, "certificate EXPIRED 2027-01-15T08:00:00.000Z\n");
    }
}
