//! Headers of a connection that were signed: a gateway that forwards a request takes them out, for
//! the next connection has its own (RFC 9110, section 7.6.1), and tells them beside it.

use http::HeaderMap;
use http::request::Parts;

/// What the client said of its own connection, to another gateway. It counts for the signature
/// alone.
#[derive(Clone)]
pub struct ConnectionHeaders(pub HeaderMap);

impl ConnectionHeaders {
    /// Has the request checked as its client sent it.
    pub(crate) fn restored<T>(head: &mut Parts, check: impl FnOnce(&mut Parts) -> T) -> T {
        let Some(Self(apart)) = head.extensions.remove::<Self>() else {
            return check(head);
        };
        for (name, value) in &apart {
            head.headers.append(name, value.clone());
        }
        let checked = check(head);
        for name in apart.keys() {
            head.headers.remove(name);
        }
        checked
    }
}
