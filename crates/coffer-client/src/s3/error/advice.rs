//! What to do about a refusal of S3.

use http::HeaderMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// Past what lock a deletion goes, and how. It is said of each of several that are deleted at once.
pub(crate) fn advice_of_lock(code: &str, message: &str) -> Option<&'static str> {
    // The words are AWS's, and those of servers that say it as AWS does.
    let is_locked = code == "AccessDenied" && message.contains("object lock");
    is_locked.then_some(
        "no access key may, while a lock for compliance or a legal hold stands; past one for \
         governance goes `aws s3api delete-object --bypass-governance-retention`",
    )
}

/// What to do about the source of a migration, where that is something else than at the target.
pub(super) fn advice_of_source(code: &str) -> Option<&'static str> {
    Some(match code {
        "InvalidAccessKeyId" | "InvalidClientTokenId" => {
            "check the source's access key, which may have expired or been disabled, or name a \
             profile with --source-profile"
        }
        "NoSuchBucket" => {
            "`coffer ls` lists the source's buckets, with the source's address as --endpoint and \
             a profile that has its access key"
        }
        "AuthorizationHeaderMalformed" | "PermanentRedirect" => {
            "set AWS_REGION to the bucket's region, and name that region's address as the source"
        }
        _ => return None,
    })
}

/// What to do where there is no such bucket.
pub(crate) fn without_bucket(bucket: &str) -> String {
    format!(
        "`coffer ls` lists those that this access key may see; `coffer bucket create {bucket}` \
         makes it at a coffer, `aws s3 mb s3://{bucket}` at other services"
    )
}

pub(super) fn advice(
    code: &str,
    message: &str,
    headers: &HeaderMap,
    now: OffsetDateTime,
) -> String {
    if let Some(text) = advice_of_lock(code, message) {
        return format!("; {text}");
    }
    let text = match code {
        "InvalidAccessKeyId" | "InvalidClientTokenId" => {
            "check the access key, which may have expired or been disabled, or name a profile \
             with --profile"
        }
        "SignatureDoesNotMatch" => {
            "the secret is not that of the access key, or something on the way changes requests"
        }
        "AccessDenied" => {
            "this access key may not do that: an administrator of the server says which may (of \
             coffer: `coffer subject set NAME --clearance LEVELS`, `--grant BUCKET=RIGHT`)"
        }
        "ExpiredToken" | "TokenRefreshRequired" => "get a new session token",
        "NoSuchBucket" => "`coffer ls` lists the buckets there are",
        "AuthorizationHeaderMalformed" | "PermanentRedirect" => {
            "set AWS_REGION to the bucket's region, and --endpoint to that region's address"
        }
        "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture" => {
            return clocks(headers, now);
        }
        _ => return String::new(),
    };
    format!("; {text}")
}

/// A header that is a date of HTTP.
pub(crate) fn date_of(headers: &HeaderMap, name: &str) -> Option<OffsetDateTime> {
    let date = headers.get(name)?.to_str().ok()?;
    OffsetDateTime::parse(&date.replace("GMT", "+0000"), &Rfc2822).ok()
}

/// How far this machine's clock is from the server's.
fn clocks(headers: &HeaderMap, now: OffsetDateTime) -> String {
    let Some(theirs) = date_of(headers, "date") else {
        return "; set this machine's clock: signatures are good for 15 minutes".to_owned();
    };
    let ahead = (now - theirs).whole_seconds();
    let (off, side) = (
        ahead.unsigned_abs(),
        if ahead > 0 { "ahead of" } else { "behind" },
    );
    let minutes = off.div_ceil(60);
    format!(
        "; this machine's clock is {minutes} minutes {side} the server's: set one of them, for \
         signatures are good for 15 minutes"
    )
}
