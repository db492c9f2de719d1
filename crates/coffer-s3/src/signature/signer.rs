//! Signing by version 4: the key that follows from a secret, and what is signed with it (AWS,
//! "Authenticating Requests (AWS Signature Version 4)").

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};
use parking_lot::Mutex;
use time::{Date, Month, OffsetDateTime};
use zeroize::Zeroizing;

/// The signing algorithm of a request itself.
pub(crate) const REQUEST: &str = "AWS4-HMAC-SHA256";
const CHUNK: &str = "AWS4-HMAC-SHA256-PAYLOAD";
const TRAILER: &str = "AWS4-HMAC-SHA256-TRAILER";

/// For whom, when and where a signature is good: `ID/20260101/us-east-1/s3/aws4_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope<'a> {
    pub(crate) access_key_id: &'a str,
    pub(crate) date: &'a str,
    /// All but the access key's id.
    text: &'a str,
}

impl<'a> Scope<'a> {
    /// Reads a credential, or says in S3's words what is wrong with it.
    pub(crate) fn parse(credential: &'a str) -> Result<Self, String> {
        let malformed = || {
            "the Credential is mal-formed; expecting \
             \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\"."
                .to_owned()
        };
        let (access_key_id, text) = credential.split_once('/').ok_or_else(malformed)?;
        let mut parts = text.split('/');
        let (Some(date), Some(_region), Some(service), Some(terminal), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(malformed());
        };
        if service != "s3" {
            return Err(format!(
                "incorrect service \"{service}\". This endpoint belongs to \"s3\"."
            ));
        }
        if terminal != "aws4_request" {
            return Err(format!(
                "incorrect terminal \"{terminal}\". This endpoint uses \"aws4_request\"."
            ));
        }
        if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!(
                "incorrect date format \"{date}\". This date in the credential must be in the \
                 format \"yyyyMMdd\"."
            ));
        }
        Ok(Self {
            access_key_id,
            date,
            text,
        })
    }
}

/// A time such as `20260101T000000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateTime<'a> {
    pub(crate) text: &'a str,
    pub(crate) unix_seconds: i64,
}

impl<'a> DateTime<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let shape = text.as_bytes();
        if shape.len() != 16 || shape[8] != b'T' || shape[15] != b'Z' {
            return None;
        }
        let is_digit = |at: usize| at == 8 || at == 15 || shape[at].is_ascii_digit();
        if !(0..16).all(is_digit) {
            return None;
        }
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u8>().ok();
        let year = text.get(..4)?.parse().ok()?;
        let month = Month::try_from(number(4, 6)?).ok()?;
        let date = Date::from_calendar_date(year, month, number(6, 8)?).ok()?;
        let time = date.with_hms(number(9, 11)?, number(11, 13)?, number(13, 15)?);
        Some(Self {
            text,
            unix_seconds: time.ok()?.assume_utc().unix_timestamp(),
        })
    }

    /// The text of a time.
    pub(crate) fn write(unix_seconds: i64) -> Option<String> {
        let at = OffsetDateTime::from_unix_timestamp(unix_seconds).ok()?;
        let (year, month, day) = at.to_calendar_date();
        let (hour, minute, second) = at.to_hms();
        let month = u8::from(month);
        let is_four_digits = (0..=9999).contains(&year);
        is_four_digits
            .then(|| format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"))
    }
}

/// Signs in one scope at one time.
pub(crate) struct Signer {
    key: Arc<hmac::Key>,
    /// What every text to be signed begins with after its algorithm.
    context: String,
}

impl Signer {
    pub(crate) fn new(secret: &str, scope: Scope<'_>, at: DateTime<'_>) -> Self {
        Self::with(Arc::new(signing_key(secret, scope)), scope, at)
    }

    fn with(key: Arc<hmac::Key>, scope: Scope<'_>, at: DateTime<'_>) -> Self {
        let context = [at.text, scope.text].join("\n");
        Self { key, context }
    }

    /// The text that is signed for a canonical request.
    pub(crate) fn string_to_sign(&self, canonical: &[u8]) -> String {
        let hash = hex(digest::digest(&digest::SHA256, canonical).as_ref());
        let hash = String::from_utf8_lossy(&hash);
        format!("{REQUEST}\n{}\n{hash}", self.context)
    }

    /// The signature of a canonical request.
    #[cfg(test)]
    pub(crate) fn sign(&self, canonical: &[u8]) -> String {
        let text = self.string_to_sign(canonical);
        let signature = hex(hmac::sign(&self.key, text.as_bytes()).as_ref());
        String::from_utf8_lossy(&signature).into_owned()
    }

    /// Gives the signature if it is that of the canonical request.
    pub(crate) fn is_of_request(&self, signature: &str, canonical: &[u8]) -> bool {
        let hash = hex(digest::digest(&digest::SHA256, canonical).as_ref());
        self.is_of(signature, REQUEST, &[&hash])
    }

    /// Whether a signature is that of a form's policy, which is signed as it stands in the form.
    pub(crate) fn is_of_policy(&self, signature: &str, policy: &str) -> bool {
        let expected = hex(hmac::sign(&self.key, policy.as_bytes()).as_ref());
        verify_slices_are_equal(&expected, signature.as_bytes()).is_ok()
    }

    /// Whether it is that of a text of lines: the algorithm, the context and the rest.
    fn is_of(&self, signature: &str, algorithm: &str, rest: &[&[u8]]) -> bool {
        let mut signed = hmac::Context::with_key(&self.key);
        signed.update(algorithm.as_bytes());
        for line in [self.context.as_bytes()].iter().chain(rest) {
            signed.update(b"\n");
            signed.update(line);
        }
        let expected = hex(signed.sign().as_ref());
        verify_slices_are_equal(&expected, signature.as_bytes()).is_ok()
    }
}

/// The key of a secret that signs in a scope.
fn signing_key(secret: &str, scope: Scope<'_>) -> hmac::Key {
    let first = Zeroizing::new(format!("AWS4{secret}"));
    let mut key = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
    for part in scope.text.split('/') {
        let next = hmac::sign(&key, part.as_bytes());
        key = hmac::Key::new(hmac::HMAC_SHA256, next.as_ref());
    }
    key
}

/// The signing key that was last derived for a connection. Most of its requests are signed by the
/// same one, and to derive it costs more than all else that checking a signature takes.
#[derive(Default)]
pub(crate) struct LastSigningKey(Mutex<Option<Derived>>);

struct Derived {
    secret: Zeroizing<String>,
    /// The text of the scope.
    scope: String,
    key: Arc<hmac::Key>,
}

impl Derived {
    fn is_of(&self, secret: &str, scope: Scope<'_>) -> bool {
        let is_same = verify_slices_are_equal(self.secret.as_bytes(), secret.as_bytes()).is_ok();
        is_same && self.scope == scope.text
    }
}

impl LastSigningKey {
    /// Signs as [`Signer::new`] does. The secret is what the access key has now.
    pub(crate) fn signer(
        &self,
        secret: Zeroizing<String>,
        scope: Scope<'_>,
        at: DateTime<'_>,
    ) -> Signer {
        let mut last = self.0.lock();
        if let Some(derived) = last.as_ref().filter(|last| last.is_of(&secret, scope)) {
            return Signer::with(derived.key.clone(), scope, at);
        }
        let key = Arc::new(signing_key(&secret, scope));
        *last = Some(Derived {
            secret,
            scope: scope.text.to_owned(),
            key: key.clone(),
        });
        Signer::with(key, scope, at)
    }
}

/// Checks the signatures of a body's chunks, each of which covers the one before it.
pub(crate) struct ChunkSignatures {
    signer: Signer,
    previous: String,
}

impl std::fmt::Debug for ChunkSignatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChunkSignatures")
    }
}

impl ChunkSignatures {
    /// After a request's own signature.
    pub(crate) fn new(signer: Signer, request: &str) -> Self {
        Self {
            signer,
            previous: request.to_owned(),
        }
    }

    /// Whether a signature is that of the next chunk, whose bytes have this hash.
    pub(crate) fn is_next(&mut self, signature: &str, chunk: &digest::Digest) -> bool {
        let nothing = hex(digest::digest(&digest::SHA256, b"").as_ref());
        let rest = [self.previous.as_bytes(), &nothing, &hex(chunk.as_ref())];
        let is_next = self.signer.is_of(signature, CHUNK, &rest);
        signature.clone_into(&mut self.previous);
        is_next
    }

    /// Whether a signature is that of the trailers after the last chunk.
    pub(crate) fn is_of_trailers(&self, signature: &str, canonical: &[u8]) -> bool {
        let hash = digest::digest(&digest::SHA256, canonical);
        let rest = [self.previous.as_bytes(), &hex(hash.as_ref())];
        self.signer.is_of(signature, TRAILER, &rest)
    }
}

/// A SHA-256, in small letters.
fn hex(hash: &[u8]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (digits, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(hash) {
        *digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The keys of AWS's examples.
    pub(crate) const ID: &str = "AKIAIOSFODNN7EXAMPLE";
    pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    /// Of AWS's example of an upload in chunks, after its request.
    pub(crate) fn example_chunks() -> ChunkSignatures {
        let credential = format!("{ID}/20130524/us-east-1/s3/aws4_request");
        let scope = Scope::parse(&credential).unwrap();
        let at = DateTime::parse("20130524T000000Z").unwrap();
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        ChunkSignatures::new(Signer::new(SECRET, scope, at), seed)
    }

    #[test]
    fn chunks_are_signed_as_in_the_example_of_aws() {
        let mut chunks = example_chunks();
        for (length, signature) in [
            (
                65_536,
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            ),
            (
                1_024,
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            ),
            (
                0,
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ),
        ] {
            let hash = digest::digest(&digest::SHA256, &vec![b'a'; length]);
            assert!(chunks.is_next(signature, &hash), "{length}");
        }
        let hash = digest::digest(&digest::SHA256, b"");
        assert!(!chunks.is_next(&"0".repeat(64), &hash));
    }

    #[test]
    fn the_last_signing_key_is_that_of_secret_and_scope() {
        let credential = |date| format!("{ID}/{date}/us-east-1/s3/aws4_request");
        let (one, other) = (credential("20130524"), credential("20130525"));
        let at = DateTime::parse("20130524T000000Z").unwrap();
        let last = LastSigningKey::default();
        let signature = |signer: Signer| hex(hmac::sign(&signer.key, b"text").as_ref());
        for (secret, credential) in [
            (SECRET, &one),
            (SECRET, &one),
            (SECRET, &other),
            ("another", &other),
            (SECRET, &one),
        ] {
            let scope = Scope::parse(credential).unwrap();
            let signer = last.signer(Zeroizing::new(secret.to_owned()), scope, at);
            let expected = Signer::new(secret, scope, at);
            assert_eq!(signer.context, expected.context);
            assert_eq!(signature(signer), signature(expected));
        }
    }

    #[test]
    fn times_are_read_in_one_form() {
        let seconds = |text| DateTime::parse(text).map(|time| time.unix_seconds);
        assert_eq!(seconds("20130524T000000Z"), Some(1_369_353_600));
        let written = DateTime::write(1_369_353_600 + 3_723);
        assert_eq!(written.as_deref(), Some("20130524T010203Z"));
        for bad in [
            "",
            "20130524T000000",
            "20130532T000000Z",
            "20130524 000000Z",
            "2013052+T000000Z",
            "20130524T250000Z",
            "\u{e4}0130524T00000Z",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn scopes_name_a_key_a_date_a_region_and_s3() {
        let parsed = Scope::parse("AK/20260101/r/s3/aws4_request").unwrap();
        assert_eq!((parsed.access_key_id, parsed.date), ("AK", "20260101"));
        for bad in [
            "",
            "AK",
            "AK/20260101/r/s3",
            "AK/20260101/r/s3/aws4_request/x",
            "AK/20260101/r/s3/aws5",
            "AK/20260101/r/sts/aws4_request",
            "AK/2026011/r/s3/aws4_request",
            "AK/2026-1-1/r/s3/aws4_request",
        ] {
            assert!(Scope::parse(bad).is_err(), "{bad}");
        }
    }
}
