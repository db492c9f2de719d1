//! The header by which sealed transfer is asked for (docs/SEALED-TRANSFER.md).

use http::{HeaderMap, HeaderName};

/// Asks for an object sealed, and says that it is; of a commit, the ticket.
pub(crate) const TRANSFER: HeaderName = HeaderName::from_static("x-coffer-transfer");

/// Whether a request asks for an object sealed.
pub(crate) fn asks_for_sealed(headers: &HeaderMap) -> bool {
    headers.get(TRANSFER).is_some_and(|value| value == "sealed")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_ticket_asks_for_nothing_sealed() {
        let asks = |value| {
            let value = HeaderValue::from_static(value);
            asks_for_sealed(&[(TRANSFER, value)].into_iter().collect())
        };
        assert!(asks("sealed"));
        assert!(!asks("0123456789abcdef"));
        assert!(!asks_for_sealed(&HeaderMap::new()));
    }
}
