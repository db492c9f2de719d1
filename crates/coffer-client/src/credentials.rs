//! The access key that a client signs in with.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::error::ClientError;

/// An access key and its secret.
#[derive(Clone)]
pub struct Credentials {
    /// The access key's id.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Zeroizing<String>,
}

const ID_VARIABLE: &str = "AWS_ACCESS_KEY_ID";
const SECRET_VARIABLE: &str = "AWS_SECRET_ACCESS_KEY";
const FILE_VARIABLE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const PROFILE_VARIABLE: &str = "AWS_PROFILE";

impl Credentials {
    /// Those of a file if one is given, else those that the environment has or names a file for,
    /// as AWS's clients look for them.
    ///
    /// # Errors
    /// When there are none.
    pub fn find(file: Option<&Path>) -> Result<Self, ClientError> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let profile = variable(PROFILE_VARIABLE).unwrap_or_else(|| "default".to_owned());
        if let Some(file) = file {
            return Self::of_file(file, &profile);
        }
        if let (Some(access_key_id), Some(secret)) =
            (variable(ID_VARIABLE), variable(SECRET_VARIABLE))
        {
            return Ok(Self {
                access_key_id,
                secret_access_key: Zeroizing::new(secret),
            });
        }
        if let Some(file) = variable(FILE_VARIABLE) {
            return Self::of_file(&PathBuf::from(file), &profile);
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
            place: file.display().to_string(),
            problem,
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let text = Zeroizing::new(text);
        of_profile(&text, profile).ok_or_else(|| {
            wrong(format!(
                "has no [{profile}] with aws_access_key_id and aws_secret_access_key"
            ))
        })
    }
}

/// Reads the form of AWS's credentials files.
fn of_profile(text: &str, profile: &str) -> Option<Credentials> {
    let (mut inside, mut id, mut secret) = (false, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']').trim() == profile;
        } else if let Some((name, value)) = line.split_once('=')
            && inside
        {
            match name.trim() {
                "aws_access_key_id" => id = Some(value.trim()),
                "aws_secret_access_key" => secret = Some(value.trim()),
                _ => {}
            }
        }
    }
    Some(Credentials {
        access_key_id: id?.to_owned(),
        secret_access_key: Zeroizing::new(secret?.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles() {
        let text = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=s=1\n\
                    [ other ]\naws_access_key_id=B\nregion = x\n";
        let found = of_profile(text, "default").unwrap();
        assert_eq!(found.access_key_id, "A");
        assert_eq!(found.secret_access_key.as_str(), "s=1");
        assert!(of_profile(text, "other").is_none());
        assert!(of_profile(text, "none").is_none());
    }
}
