//! Root-key sources as text: what an operator types, and what is recorded beside the keystore.
//!
//! ```text
//! file                       root.key in the data folder
//! file:/media/usb/root.key   another file, by its absolute path
//! passphrase                 a file that a passphrase opens
//! keyring                    the kernel's keyring, under a name that is made up
//! keyring:NAME               the same, under this name
//! pkcs11:token=LABEL?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/run/pin
//! ```
//!
//! The last is a URI of RFC 7512, with the attributes `token`, `object` (what the keys in the token
//! are called; `coffer` when it isn't there), `module-path` and `pin-source`. None of these texts
//! holds a secret.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::error::KeysError;
use crate::limits::{KEYRING_NAME_MAX_BYTES, SOURCE_SPEC_MAX_BYTES};

/// What is written as it is: RFC 3986's unreserved characters, and the slashes of paths.
const ENCODED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// What the keys in a token are called by default.
const OBJECT: &str = "coffer";

/// Which root-key source, and where; never what opens it. Parsed and printed as text.
///
/// ```
/// use coffer_keys::SourceSpec;
///
/// let text = "pkcs11:token=strong%20room?module-path=/usr/lib/hsm.so";
/// let SourceSpec::Token(token) = text.parse()? else { panic!() };
/// assert_eq!((token.token.as_str(), token.object.as_str()), ("strong room", "coffer"));
/// assert_eq!("keyring:backups".parse::<SourceSpec>()?.to_string(), "keyring:backups");
/// # Ok::<(), coffer_keys::KeysError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// A file; `None`: `root.key` in the data folder.
    File(Option<PathBuf>),
    /// A file in the data folder that a passphrase opens.
    Passphrase,
    /// The kernel's keyring; `None`: a name is made up when the source is first used.
    Keyring(Option<String>),
    /// A key in a PKCS#11 token, and a file in the data folder that it opens.
    Token(TokenSpec),
}

/// Which token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSpec {
    /// The token's label.
    pub token: String,
    /// What the keys in the token are called (CKA_LABEL).
    pub object: String,
    /// The PKCS#11 module, by its absolute path.
    pub module: PathBuf,
    /// The file that the PIN is in, by its absolute path; `None`: it is asked for.
    pub pin_source: Option<PathBuf>,
}

impl SourceSpec {
    /// Whether a passphrase opens it.
    pub fn needs_passphrase(&self) -> bool {
        matches!(self, Self::Passphrase)
    }

    /// Whether servers on several machines can have what it holds: then the gateways of an engine
    /// share their identity by it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Passphrase | Self::Token(_))
    }

    /// Whether it names files of the machine that the server runs on: not for everyone to choose.
    pub fn names_files(&self) -> bool {
        matches!(self, Self::File(Some(_)) | Self::Token(_))
    }

    /// Whether a PIN opens it, which no file holds.
    pub fn needs_pin(&self) -> bool {
        matches!(self, Self::Token(token) if token.pin_source.is_none())
    }
}

impl FromStr for SourceSpec {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let too_long = |text: &str| text.len() > SOURCE_SPEC_MAX_BYTES;
        if too_long(text) {
            return Err(malformed("it is too long"));
        }
        let spec = parse(text)?;
        // What is recorded must be read again, and percent-encoding may lengthen it.
        if too_long(&spec.to_string()) {
            return Err(malformed("it is too long"));
        }
        Ok(spec)
    }
}

fn parse(text: &str) -> Result<SourceSpec, KeysError> {
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (text, None),
    };
    match (kind, rest) {
        ("file", path) => Ok(SourceSpec::File(path.map(absolute).transpose()?)),
        ("passphrase", None) => Ok(SourceSpec::Passphrase),
        ("keyring", None) => Ok(SourceSpec::Keyring(None)),
        ("keyring", Some(name)) if is_keyring_name(name) => {
            Ok(SourceSpec::Keyring(Some(name.to_owned())))
        }
        ("keyring", Some(_)) => Err(malformed(
            "a name in the keyring is 1 to 64 of a to z, A to Z, 0 to 9, - and _",
        )),
        ("pkcs11", Some(rest)) => token(rest).map(SourceSpec::Token),
        _ => Err(malformed(
            "it is one of file, file:/PATH, passphrase, keyring, keyring:NAME, and \
                 pkcs11:token=LABEL?module-path=/PATH",
        )),
    }
}

impl fmt::Display for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(None) => f.write_str("file"),
            Self::File(Some(path)) => write!(f, "file:{}", encoded(path)),
            Self::Passphrase => f.write_str("passphrase"),
            Self::Keyring(None) => f.write_str("keyring"),
            Self::Keyring(Some(name)) => write!(f, "keyring:{name}"),
            Self::Token(token) => token.fmt(f),
        }
    }
}

impl fmt::Display for TokenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pkcs11:token={}", encoded(&self.token))?;
        if self.object != OBJECT {
            write!(f, ";object={}", encoded(&self.object))?;
        }
        write!(f, "?module-path={}", encoded(&self.module))?;
        match &self.pin_source {
            Some(path) => write!(f, "&pin-source=file:{}", encoded(path)),
            None => Ok(()),
        }
    }
}

/// What follows `pkcs11:`; RFC 7512, section 2.3.
fn token(rest: &str) -> Result<TokenSpec, KeysError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut token, mut object, mut module, mut pin_source) = (None, None, None, None);
    let pairs = path.split(';').chain(query.split('&'));
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or(malformed("each attribute of a PKCS#11 URI is NAME=VALUE"))?;
        let is_new = match name {
            "token" => token.replace(text(value)?).is_none(),
            "object" => object.replace(text(value)?).is_none(),
            "module-path" => module.replace(absolute(value)?).is_none(),
            "pin-source" => {
                let path = value.strip_prefix("file:").unwrap_or(value);
                pin_source.replace(absolute(path)?).is_none()
            }
            "pin-value" => {
                return Err(malformed(
                    "a PIN is not to be written here, where others can read it: put it into a \
                     file of mode 0600 and name that by pin-source=file:/PATH",
                ));
            }
            _ => {
                return Err(malformed(
                    "of a PKCS#11 URI, the attributes token, object, module-path and pin-source \
                     are known",
                ));
            }
        };
        if !is_new {
            return Err(malformed("an attribute is there twice"));
        }
    }
    Ok(TokenSpec {
        token: token.ok_or(malformed("token=LABEL is missing"))?,
        object: object.unwrap_or_else(|| OBJECT.to_owned()),
        module: module.ok_or(malformed("module-path=/PATH is missing"))?,
        pin_source,
    })
}

/// A label: some text without control characters.
fn text(value: &str) -> Result<String, KeysError> {
    let text = percent_decode_str(value)
        .decode_utf8()
        .map_err(|_| malformed("a label is UTF-8"))?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(malformed("a label is empty, or has control characters"));
    }
    Ok(text.into_owned())
}

fn absolute(value: &str) -> Result<PathBuf, KeysError> {
    let bytes: Vec<u8> = percent_decode_str(value).collect();
    let path = PathBuf::from(OsString::from_vec(bytes));
    let is_clean = !path.as_os_str().as_bytes().iter().any(u8::is_ascii_control);
    if path.is_absolute() && is_clean {
        Ok(path)
    } else {
        Err(malformed(
            "a path begins with / and has no control characters",
        ))
    }
}

fn encoded(value: &(impl AsRef<Path> + ?Sized)) -> impl fmt::Display {
    percent_encode(value.as_ref().as_os_str().as_bytes(), &ENCODED)
}

pub(crate) fn is_keyring_name(name: &str) -> bool {
    (1..=KEYRING_NAME_MAX_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn malformed(problem: &'static str) -> KeysError {
    KeysError::SourceSpec { problem }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_is_understood_and_printed_the_same() {
        for text in [
            "file",
            "file:/media/usb/root.key",
            "file:/a%20b/%25",
            "passphrase",
            "keyring",
            "keyring:Backups_2-x",
            "pkcs11:token=a?module-path=/lib/x.so",
            "pkcs11:token=a%3Bb;object=c?module-path=/lib/x.so&pin-source=file:/run/pin",
        ] {
            let spec: SourceSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let loose: SourceSpec = "pkcs11:object=coffer;token=a?pin-source=/run/pin&module-path=/x"
            .parse()
            .unwrap();
        let strict = "pkcs11:token=a?module-path=/x&pin-source=file:/run/pin";
        assert_eq!(loose.to_string(), strict);
        assert!(!loose.needs_pin() && !loose.needs_passphrase());
        let spaced: SourceSpec = "file:/a b".parse().unwrap();
        assert_eq!(spaced, SourceSpec::File(Some("/a b".into())));
    }

    #[test]
    fn what_is_none_says_what_would_be() {
        for (text, problem) in [
            ("", "one of file"),
            ("File", "one of file"),
            ("passphrase:secret", "one of file"),
            ("file:root.key", "begins with /"),
            ("file:/a\nb", "control"),
            ("keyring:", "1 to 64"),
            ("keyring:a:b", "1 to 64"),
            ("pkcs11:", "token=LABEL"),
            ("pkcs11:token=a", "module-path=/PATH"),
            ("pkcs11:token=a;token=b?module-path=/x", "twice"),
            ("pkcs11:token=?module-path=/x", "label"),
            ("pkcs11:token=a?module-path=x.so", "begins with /"),
            ("pkcs11:token=a;slot-id=1?module-path=/x", "are known"),
            (
                "pkcs11:token=a?module-path=/x&pin-source=|cat",
                "begins with /",
            ),
        ] {
            let error = text.parse::<SourceSpec>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read_again_however_long_it_becomes() {
        for length in [SOURCE_SPEC_MAX_BYTES / 3 - 6, SOURCE_SPEC_MAX_BYTES / 2] {
            let text = format!("file:/{}", ":".repeat(length));
            match text.parse::<SourceSpec>() {
                Ok(spec) => assert_eq!(spec.to_string().parse::<SourceSpec>().unwrap(), spec),
                Err(error) => assert!(error.to_string().contains("too long"), "{error}"),
            }
        }
        let long = format!("file:/{}", ":".repeat(SOURCE_SPEC_MAX_BYTES / 2));
        assert!(long.parse::<SourceSpec>().is_err());
    }

    #[test]
    fn a_pin_is_refused_and_not_repeated() {
        let text = "pkcs11:token=a?module-path=/x&pin-value=648219";
        let error = text.parse::<SourceSpec>().unwrap_err().to_string();
        assert!(
            error.contains("pin-source") && !error.contains("648219"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_token_comes_back(
            token in "[^\\p{Cc}]{1,20}", object in "[^\\p{Cc}]{1,20}",
            module in "/[^\\p{Cc}]{1,20}", pin in proptest::option::of("/[^\\p{Cc}]{1,20}"),
        ) {
            let spec = SourceSpec::Token(TokenSpec {
                token, object, module: module.into(), pin_source: pin.map(PathBuf::from),
            });
            prop_assert_eq!(spec.to_string().parse::<SourceSpec>().unwrap(), spec);
        }
    }
}
