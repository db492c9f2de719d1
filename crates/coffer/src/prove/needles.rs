//! A marker in all forms in which a program could have written it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use coffer_seal::random_bytes;

/// A text that is nowhere else: 26 of `a` to `z`, so that it may be part of any name.
pub fn marker() -> String {
    let random: [u8; 26] = random_bytes();
    random
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect()
}

/// The forms of a marker, none of them twice: plain, hexadecimal, Base64 wherever it begins within
/// three bytes, UTF-16.
pub fn forms(marker: &str) -> Vec<(&'static str, Vec<u8>)> {
    let raw = marker.as_bytes();
    let mut forms = vec![
        ("plain", raw.to_vec()),
        ("hex", hex::encode(raw).into_bytes()),
        ("hex", hex::encode_upper(raw).into_bytes()),
        (
            "UTF-16",
            marker.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        (
            "UTF-16",
            marker.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ),
    ];
    for skip in 0..3 {
        let shifted = [&[0; 2][..skip], raw].concat();
        // What bits of its neighbours go into is cut off at both ends.
        let begin = (skip * 8).div_ceil(6);
        let end = shifted.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let text = engine.encode(&shifted);
            forms.push(("Base64", text.as_bytes()[begin..end].to_vec()));
        }
    }
    forms.sort_by(|(_, one), (_, other)| one.cmp(other));
    forms.dedup_by(|(_, one), (_, other)| one == other);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_wherever_it_begins() {
        let marker = marker();
        let needles = forms(&marker);
        for before in 0..7 {
            let text = [&[b'x'; 7][..before], marker.as_bytes(), b"and after"].concat();
            let encoded = STANDARD_NO_PAD.encode(text).into_bytes();
            let is_found = needles.iter().any(|(form, needle)| {
                *form == "Base64" && encoded.windows(needle.len()).any(|part| part == needle)
            });
            assert!(is_found, "{before}");
        }
    }

    #[test]
    fn markers_differ_and_no_form_is_short() {
        assert_ne!(marker(), marker());
        assert!(
            forms(&marker())
                .iter()
                .all(|(_, needle)| needle.len() >= 26)
        );
    }
}
