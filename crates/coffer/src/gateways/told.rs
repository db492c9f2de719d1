//! What a gateway that forwards tells beside a request: whose it is, and over which TLS it came. It
//! is believed of gateways alone, and of each request anew.

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, HeaderValue};

static CLIENT: HeaderName = HeaderName::from_static("x-coffer-gateway-client");
static TLS: HeaderName = HeaderName::from_static("x-coffer-gateway-tls");
static QUESTION: HeaderName = HeaderName::from_static("x-coffer-gateway-question");

/// Says it, in place of what the client may have said.
pub fn tell(headers: &mut HeaderMap, client: IpAddr, tls: Option<&'static str>) {
    headers.remove(&CLIENT);
    headers.remove(&TLS);
    headers.remove(&QUESTION);
    if let Ok(client) = HeaderValue::from_str(&client.to_string()) {
        headers.insert(&CLIENT, client);
    }
    if let Some(tls) = tls {
        headers.insert(&TLS, HeaderValue::from_static(tls));
    }
}

/// Hears it. One that says nothing of use is of no address that any rule names.
pub fn heard(headers: &mut HeaderMap) -> (IpAddr, Option<&'static str>) {
    let client = headers.remove(&CLIENT);
    let client = client.and_then(|client| client.to_str().ok()?.parse().ok());
    let tls = match headers.remove(&TLS).as_ref().map(HeaderValue::as_bytes) {
        Some(b"1.2") => Some("1.2"),
        Some(b"1.3") => Some("1.3"),
        _ => None,
    };
    (client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), tls)
}

/// Says that it is no request of a client, but a gateway's own question.
pub fn mark_question(headers: &mut HeaderMap) {
    headers.insert(&QUESTION, HeaderValue::from_static("reads"));
}

/// Whether it is one.
pub fn is_question(headers: &HeaderMap) -> bool {
    headers.contains_key(&QUESTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_in_a_gateways_name_is_replaced() {
        let mut headers = HeaderMap::new();
        for told in ["10.0.0.1", "10.0.0.2"] {
            headers.append(&CLIENT, HeaderValue::from_static(told));
        }
        headers.insert(&TLS, HeaderValue::from_static("1.3"));
        mark_question(&mut headers);
        assert!(is_question(&headers));
        let client = IpAddr::from([192, 0, 2, 7]);
        tell(&mut headers, client, None);
        assert_eq!(heard(&mut headers), (client, None));
        assert!(headers.is_empty());
        tell(&mut headers, client, Some("1.2"));
        assert_eq!(heard(&mut headers), (client, Some("1.2")));
        let unknown = IpAddr::from([0, 0, 0, 0]);
        assert_eq!(heard(&mut headers), (unknown, None));
    }
}
