//! Who calls: the owner of the data folder at the local socket, or the holder of an access key.

use std::net::IpAddr;

use axum::extract::{FromRef, FromRequest, FromRequestParts, Path, Query, Request};
use axum::{Extension, Json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::Actor;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::admin::Admin;
use crate::http::refusal::Refusal;
use crate::http::strict_json::Object;

/// The other end of a connection. The listener says it, once a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A process on this machine, whose user the kernel names.
    Local {
        /// The user's id.
        uid: u32,
    },
    /// An address, which any client may speak from.
    Remote {
        /// The address.
        address: IpAddr,
    },
}

/// Takes the actor from a request: `Caller(actor): Caller`. A caller who is not known, or
/// who comes while the server does not serve, is refused.
pub(crate) struct Caller(pub(crate) Actor);

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    Admin: FromRef<S>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let admin = Admin::from_ref(state);
        if !admin.status.is_ready() {
            let message = format!("the server is {}", admin.status.word());
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_ready",
                message,
            ));
        }
        refuse_other_sites(&parts.headers)?;
        let Extension(peer) = Extension::<Peer>::from_request_parts(parts, state)
            .await
            .map_err(|_| Refusal::sign_in_required())?;
        match peer {
            Peer::Local { uid } => Ok(Self(Actor::Local { uid })),
            Peer::Remote { address } => sign_in(&admin, &parts.headers, address).map(Self),
        }
    }
}

/// A browser that has signed in sends its credentials with whatever page asks for it.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "other_site",
            "a page of another site may not ask this",
        )),
    }
}

/// Administration counts what an address fails with any access key: few people sign in there.
const ANY_KEY: &str = "";

fn sign_in(admin: &Admin, headers: &HeaderMap, address: IpAddr) -> Result<Actor, Refusal> {
    if admin.sign_in_throttle.are_too_many(address, ANY_KEY) {
        return Err(Refusal::too_many_failures());
    }
    let credentials = basic_credentials(headers).ok_or_else(Refusal::sign_in_required)?;
    let (id, secret) = credentials
        .split_once(':')
        .ok_or_else(Refusal::sign_in_required)?;
    admin.vault.sign_in(id, secret, address).map_err(|error| {
        admin.sign_in_throttle.add(address, ANY_KEY);
        error.into()
    })
}

/// `id:secret` of HTTP Basic (RFC 7617).
fn basic_credentials(headers: &HeaderMap) -> Option<Zeroizing<String>> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = BASE64.decode(encoded.trim()).ok()?;
    Some(Zeroizing::new(String::from_utf8(bytes).ok()?))
}

/// Takes a request's body, an object of JSON.
pub(crate) struct Input<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Input<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let Json(Object(value)) = Json::<Object<T>>::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// Takes what stands in the path.
pub(crate) struct InPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Path(value) = Path::<T>::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

/// Takes what stands behind the path's question mark.
pub(crate) struct InQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for InQuery<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Query(value) = Query::<T>::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_read_as_rfc_7617_writes_them() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            basic_credentials(&headers).map(|text| text.to_string())
        };
        let aladdin = Some("Aladdin:open sesame".to_owned());
        assert_eq!(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
        assert_eq!(read("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
        assert_eq!(read("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), None);
        assert_eq!(read("Basic ?"), None);
        assert_eq!(read("Basic"), None);
    }
}
