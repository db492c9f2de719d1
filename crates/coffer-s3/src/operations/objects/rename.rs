//! `RenameObject`, for which s3s has no operation (Amazon S3 API Reference, `RenameObject`; AWS has
//! it in directory buckets).

use coffer_vault::{RenameObject, Vault, VaultError};
use http::HeaderMap;
use s3s::{S3Result, s3_error};

use crate::http::conditions;
use crate::limits::CLIENT_TOKEN_MAX_BYTES;
use crate::parameters::{names, rename_source};
use crate::request::caller::Caller;

const CLIENT_TOKEN: &str = "x-amz-client-token";

/// Gives the object that a header names the name in the address.
///
/// # Errors
/// `NoSuchKey`, `PreconditionFailed`, `IdempotencyParameterMismatch`.
pub(crate) async fn rename_object(
    vault: &Vault,
    caller: &Caller,
    headers: &HeaderMap,
    (bucket, key): (String, String),
) -> S3Result {
    let bucket = names::bucket(&bucket)?;
    let source = rename_source::read(headers)?;
    let names_bucket = rename_source::names_bucket(&source, bucket.as_str());
    let rename = RenameObject {
        source,
        target: names::object(key)?,
        source_conditions: conditions::of_rename_source(headers)?,
        target_conditions: conditions::of_rename_target(headers)?,
        token: token(headers)?,
    };
    let renamed = vault.rename_object(&caller.subject, &bucket, rename).await;
    renamed.map_err(|error| match error {
        VaultError::NoSuchObject if names_bucket => rename_source::no_such_key(),
        error => caller.refused(error),
    })
}

fn token(headers: &HeaderMap) -> S3Result<Option<String>> {
    let Some(token) = headers.get(CLIENT_TOKEN) else {
        return Ok(None);
    };
    let is_token = |text: &&str| {
        text.len() <= CLIENT_TOKEN_MAX_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
    };
    let text = token.to_str().ok().filter(|text| !text.is_empty());
    match text.filter(is_token) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(s3_error!(
            InvalidArgument,
            "{CLIENT_TOKEN} has 1 to {CLIENT_TOKEN_MAX_BYTES} printable ASCII characters"
        )),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_is_short_and_printable() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CLIENT_TOKEN, HeaderValue::from_str(text).unwrap());
            token(&headers).ok()
        };
        assert_eq!(read("a-1"), Some(Some("a-1".to_owned())));
        assert_eq!(read(&"a".repeat(64)).flatten().map(|it| it.len()), Some(64));
        for bad in ["", "a b", &"a".repeat(65)] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(token(&HeaderMap::new()).unwrap(), None);
    }
}
