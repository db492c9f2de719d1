//! The access key that a client signs in with.

use std::fmt;
use std::path::Path;

use http::HeaderValue;
use zeroize::Zeroizing;

use crate::error::ClientError;
use crate::profiles::environment::{Environment, ini_file, of_process, place_of};
use crate::profiles::ini::Ini;

/// An access key and its secret.
#[derive(Clone)]
pub struct Credentials {
    /// The access key's id.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Zeroizing<String>,
    /// What comes with an access key that is good for a while only.
    pub session_token: Option<Zeroizing<String>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(redacted)")
    }
}

pub(super) const ID_VARIABLE: &str = "AWS_ACCESS_KEY_ID";
pub(super) const SECRET_VARIABLE: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN_VARIABLE: &str = "AWS_SESSION_TOKEN";
pub(super) const FILE_VARIABLE: &str = "AWS_SHARED_CREDENTIALS_FILE";
pub(super) const PROFILE_VARIABLE: &str = "AWS_PROFILE";

impl Credentials {
    /// Those of a file if one is given, else those that the environment has or names a file for,
    /// as AWS's clients look for them.
    ///
    /// # Errors
    /// When there are none.
    pub fn find(file: Option<&Path>) -> Result<Self, ClientError> {
        let environment = Environment(&of_process);
        let profile = environment.variable(PROFILE_VARIABLE);
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        if let Some(file) = file {
            return Self::of_file(file, &profile);
        }
        if let Some(credentials) = Self::of_variables(&environment)? {
            return Ok(credentials);
        }
        if let Some(file) = environment.variable(FILE_VARIABLE) {
            return Self::of_file(Path::new(&file), &profile);
        }
        Err(ClientError::Credentials {
            place: "--endpoint".to_owned(),
            problem: format!(
                "needs an access key: give --credentials FILE, or set {ID_VARIABLE} and \
                 {SECRET_VARIABLE}"
            ),
        })
    }

    /// Those under `[profile]` of a file of AWS's form.
    ///
    /// # Errors
    /// When there are none.
    pub fn of_file(file: &Path, profile: &str) -> Result<Self, ClientError> {
        let wrong = |problem: String| ClientError::Credentials {
            place: place_of(file),
            problem,
        };
        let ini = ini_file(file)?.ok_or_else(|| wrong("there is none of that name".to_owned()))?;
        Self::of_section(&ini, profile).ok_or_else(|| {
            wrong(format!(
                "has no [{profile}] with aws_access_key_id and aws_secret_access_key"
            ))
        })
    }

    /// Those of the environment, if it has any.
    ///
    /// # Errors
    /// When it has one half: another access key than was meant would be used in its place.
    pub(super) fn of_variables(environment: &Environment<'_>) -> Result<Option<Self>, ClientError> {
        let [id, secret] = [ID_VARIABLE, SECRET_VARIABLE].map(|name| environment.variable(name));
        let half = |has: &str, lacks: &str| ClientError::Credentials {
            place: has.to_owned(),
            problem: format!("is set without {lacks}: set both, or neither"),
        };
        match (id, secret) {
            (Some(access_key_id), Some(secret)) => Ok(Some(Self {
                access_key_id,
                secret_access_key: secret.into(),
                session_token: environment.variable(TOKEN_VARIABLE).map(Zeroizing::new),
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(half(ID_VARIABLE, SECRET_VARIABLE)),
            (None, Some(_)) => Err(half(SECRET_VARIABLE, ID_VARIABLE)),
        }
    }

    /// Sees that headers can hold them. The secret goes into none.
    ///
    /// # Errors
    /// [`ClientError::Credentials`], which repeats nothing of them.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let token = self.session_token.as_ref().map(|token| token.as_str());
        let parts = [
            ("the access key's id", Some(self.access_key_id.as_str())),
            ("the session token", token),
        ];
        let can_be_sent = |text: &str| HeaderValue::try_from(text).is_ok();
        match parts
            .into_iter()
            .find(|(_, text)| !text.is_none_or(can_be_sent))
        {
            None => Ok(()),
            Some((place, _)) => Err(ClientError::Credentials {
                place: place.to_owned(),
                problem: "has a line break or another control character, which no request can \
                          hold: set it anew, from where it was copied"
                    .to_owned(),
            }),
        }
    }

    pub(super) fn of_section(ini: &Ini, section: &str) -> Option<Self> {
        let value = |name| ini.value(section, name);
        Some(Self {
            access_key_id: value("aws_access_key_id")?.to_owned(),
            secret_access_key: value("aws_secret_access_key")?.to_owned().into(),
            session_token: value("aws_session_token").map(|token| token.to_owned().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_header_holds_is_named_and_not_told() {
        let of = |id: &str, token: Option<&str>| Credentials {
            access_key_id: id.to_owned(),
            secret_access_key: "s".to_owned().into(),
            session_token: token.map(|token| token.to_owned().into()),
        };
        let told = |credentials: Credentials| credentials.check().unwrap_err().to_string();
        assert!(of("A", Some("t")).check().is_ok());
        let of_id = told(of("hidden\n", None));
        assert!(
            of_id.starts_with("the access key's id: has a line break"),
            "{of_id}"
        );
        let of_token = told(of("A", Some("hidden\r")));
        assert!(
            of_token.starts_with("the session token: has a line break"),
            "{of_token}"
        );
        assert!(!of_id.contains("hidden") && !of_token.contains("hidden"));
    }

    #[test]
    fn profiles() {
        let ini = Ini::parse(
            "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=s=1\n\
             [ other ]\naws_access_key_id=B\nregion = x\n",
        );
        let found = Credentials::of_section(&ini, "default").unwrap();
        assert_eq!(found.access_key_id, "A");
        assert_eq!(found.secret_access_key.as_str(), "s=1");
        assert!(!format!("{found:?}").contains("s=1"));
        assert!(Credentials::of_section(&ini, "other").is_none());
        assert!(Credentials::of_section(&ini, "none").is_none());
    }
}
