//! What a gateway that forwards tells beside a request: whose it is, over which TLS it came, and
//! what was said of the connection, which may be signed. It is believed of gateways alone, and of
//! each request anew.

use std::net::{IpAddr, Ipv4Addr};

use http::header::{CONNECTION, EXPECT, TE, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};

static CLIENT: HeaderName = HeaderName::from_static("x-coffer-gateway-client");
static TLS: HeaderName = HeaderName::from_static("x-coffer-gateway-tls");
static OF_CLIENTS: HeaderName = HeaderName::from_static("x-coffer-gateway-of-connection");
static QUESTION: HeaderName = HeaderName::from_static("x-coffer-gateway-question");

/// What is about one connection whatever the client says, and is not told as a header of the next.
const OF_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    EXPECT,
    TE,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Takes out what is about one connection (RFC 9110, section 7.6.1), and what the client names so.
pub fn take_of_connection(headers: &mut HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = { headers.get_all(CONNECTION).iter() }
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let mut taken = HeaderMap::new();
    for name in OF_CONNECTION {
        for value in headers.get_all(&name) {
            taken.append(&name, value.clone());
        }
        headers.remove(name);
    }
    // One of these may have a meaning: it is not told as signed where it is not there to act.
    for name in named {
        headers.remove(name);
    }
    taken
}

/// Says what the client said of its connection: it may be signed.
pub fn tell_of_connection(headers: &mut HeaderMap, taken: &HeaderMap) {
    headers.remove(&OF_CLIENTS);
    for (name, value) in taken {
        let told = [name.as_str().as_bytes(), b":", value.as_bytes()].concat();
        if let Ok(told) = HeaderValue::from_bytes(&told) {
            headers.append(&OF_CLIENTS, told);
        }
    }
}

/// Hears what the client said of its connection.
pub fn heard_of_connection(headers: &mut HeaderMap) -> HeaderMap {
    let mut heard = HeaderMap::new();
    for told in headers.get_all(&OF_CLIENTS) {
        let mut parts = told.as_bytes().splitn(2, |byte| *byte == b':');
        let name = parts.next().and_then(|name| name.try_into().ok());
        let name = name.filter(|name| OF_CONNECTION.contains(name));
        let value = parts.next().and_then(|it| HeaderValue::from_bytes(it).ok());
        if let Some((name, value)) = name.zip(value) {
            heard.append(name, value);
        }
    }
    headers.remove(&OF_CLIENTS);
    heard
}

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

    #[test]
    fn what_a_client_signed_of_its_connection_is_heard_and_no_other_header() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static;
        headers.insert(CONNECTION, value("close, x-hop, x-amz-acl"));
        headers.append(TE, value("trailers"));
        headers.append(TE, value("gzip: x"));
        for name in ["keep-alive", "x-hop", "x-amz-acl", "x-amz-date"] {
            headers.insert(name, value("1"));
        }
        headers.insert(&OF_CLIENTS, value("upgrade:what a client makes up"));
        let taken = take_of_connection(&mut headers);
        tell_of_connection(&mut headers, &taken);
        headers.append(&OF_CLIENTS, value("x-amz-acl:private"));
        headers.append(&OF_CLIENTS, value("te"));
        let heard = heard_of_connection(&mut headers);
        assert_eq!(heard, taken);
        assert_eq!(heard.get_all(TE).iter().count(), 2);
        assert_eq!(heard.keys_len(), 3);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-amz-date"]);
    }
}
