//! Bodies of the fuzz targets: what the program itself parses of others' bytes.

use crate::data_port::head::parse;

/// The head of a request to the data port: what is whole stays what it is, whatever follows it, and
/// was not whole a byte before its end.
pub fn data_head(data: &[u8]) {
    let Ok(Some(head)) = parse(data) else {
        return;
    };
    assert!(head.bytes <= data.len());
    let (whole, _) = data.split_at(head.bytes);
    let again = parse(whole).ok().flatten();
    let again = again.expect("a head does not depend on what follows it");
    assert_eq!(again.bytes, head.bytes);
    assert_eq!(again.keeps_open, head.keeps_open);
    assert_eq!(format!("{:?}", again.asked), format!("{:?}", head.asked));
    let shorter = parse(&whole[..whole.len() - 1]);
    assert!(!matches!(shorter, Ok(Some(head)) if head.bytes >= whole.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_kinds() {
        let ticket = "A".repeat(43);
        for text in [
            format!("GET /transfer/{ticket} HTTP/1.1\r\n\r\nGET"),
            format!("PUT /transfer/{ticket} HTTP/1.1\nContent-Length: 7\n\n1234567"),
            "\r\nGET / HTTP/1.0\r\n\r\n".to_owned(),
            "\u{0}".to_owned(),
        ] {
            data_head(text.as_bytes());
        }
    }
}
