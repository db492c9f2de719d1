//! All that a client of S3 has to know before its first request.

use std::path::{Path, PathBuf};

use crate::error::{ClientError, ENDPOINT_BY};
use crate::profiles::credentials::{
    Credentials, FILE_VARIABLE, ID_VARIABLE, PROFILE_VARIABLE, SECRET_VARIABLE,
};
use crate::profiles::environment::{Environment, ini_file, of_process};
use crate::profiles::ini::Ini;

/// The region of who names none. coffer takes any.
pub(crate) const USUAL_REGION: &str = "us-east-1";

/// The authority of the server, as AWS's clients are told it.
const CA_VARIABLE: &str = "AWS_CA_BUNDLE";

/// Where an access key is looked for, and how each place is named.
const KEY_PLACES: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or have it under \
    [default] or --profile NAME in ~/.aws/credentials (--credentials or \
    AWS_SHARED_CREDENTIALS_FILE names another file), or give --data DIR for that of a server on \
    this machine (without it ./coffer-data is meant, where there is one and no address is given)";

/// What a command line says of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The server's address.
    pub endpoint: Option<&'a str>,
    /// A file with an access key.
    pub credentials: Option<&'a Path>,
    /// A profile of AWS's files.
    pub profile: Option<&'a str>,
    /// The certificates of an authority.
    pub ca: Option<&'a Path>,
    /// A data folder, whose server is meant as a whole: its address, access key and authority.
    pub data: Option<&'a Path>,
    /// The address of its server.
    pub data_endpoint: Option<&'a str>,
    /// Whether that folder was not named: it is meant only where nothing says an address.
    pub is_data_implied: bool,
    /// Whether a source is meant: the environment's authority is that of the target.
    pub is_source: bool,
    /// What gives an access key where the profile has none, if not what usually does.
    pub key_advice: Option<&'a str>,
}

/// What was found.
#[derive(Debug)]
pub struct Settings {
    /// The server's address, as it was written.
    pub endpoint: String,
    /// The access key.
    pub credentials: Credentials,
    /// The region to sign for.
    pub region: String,
    /// The certificates of an authority, if not those that the system trusts.
    pub ca: Option<PathBuf>,
}

impl Settings {
    /// Looks where AWS's clients look: what was typed, else the environment, else the profile.
    ///
    /// A data folder that was named goes before environment and profile, and one that was not
    /// comes after them. Its address goes with its access key and its authority, so that one
    /// server is meant as a whole.
    ///
    /// The access key is that of the file or profile that was typed, else of the data folder, else
    /// of the environment, else of the profile that the environment names or `default`. A folder
    /// that was not named comes after the environment here, too, and so does one without a key.
    ///
    /// # Errors
    /// When there is no endpoint or no access key, or a file can't be read.
    pub fn find(wanted: &Wanted<'_>) -> Result<Self, ClientError> {
        Self::find_in(wanted, &Environment(&of_process))
    }

    /// Whether it is the data folder's server that is meant, and no other.
    ///
    /// # Errors
    /// When a file can't be read.
    pub fn is_of_data(wanted: &Wanted<'_>) -> Result<bool, ClientError> {
        let environment = &Environment(&of_process);
        let files = Files::read(environment)?;
        let profile = profile_of(wanted, environment);
        let address = address(wanted, environment, &files, &profile);
        Ok(matches!(address, Some(Address::OfData(_))))
    }

    fn find_in(wanted: &Wanted<'_>, environment: &Environment<'_>) -> Result<Self, ClientError> {
        let files = Files::read(environment)?;
        let profile = &profile_of(wanted, environment);
        let of_profile = |name| files.setting(profile, name);
        let endpoint = address(wanted, environment, &files, profile);
        let is_elsewhere = matches!(endpoint, Some(Address::Told(_)));
        let wanted = &Wanted {
            data: { wanted.data }.filter(|_| !wanted.is_data_implied || !is_elsewhere),
            ..*wanted
        };
        let endpoint = endpoint.map(Address::text);
        let region = environment.variable("AWS_REGION");
        let region = region
            .or_else(|| environment.variable("AWS_DEFAULT_REGION"))
            .or_else(|| of_profile("region"));
        let own_authority = wanted.data.map(|data| data.join("tls/ca.pem"));
        let own_authority = own_authority.filter(|file| file.exists());
        let ca = wanted.ca.map(Path::to_owned);
        // A data folder stands for the environment and the profile that is in use by itself.
        let ca = ca
            .or_else(|| own_authority.clone().filter(|_| wanted.profile.is_none()))
            .or_else(|| {
                environment
                    .variable(CA_VARIABLE)
                    .filter(|_| !wanted.is_source)
                    .map(PathBuf::from)
            })
            .or_else(|| of_profile("ca_bundle").map(PathBuf::from))
            .or(own_authority);
        Ok(Self {
            credentials: credentials(wanted, environment, &files, profile)?,
            endpoint: endpoint.ok_or_else(|| ClientError::Endpoint {
                option: ENDPOINT_BY,
                problem: "say which server: --endpoint URL, such as https://127.0.0.1:9000, \
                          AWS_ENDPOINT_URL, endpoint_url in a profile, or --data DIR for the one \
                          on this machine"
                    .to_owned(),
            })?,
            region: region.unwrap_or_else(|| USUAL_REGION.to_owned()),
            ca,
        })
    }
}

/// The profile of AWS's files.
fn profile_of(wanted: &Wanted<'_>, environment: &Environment<'_>) -> String {
    let typed = wanted.profile.map(str::to_owned);
    let named = typed.or_else(|| environment.variable(PROFILE_VARIABLE));
    named.unwrap_or_else(|| "default".to_owned())
}

/// Where a server is.
enum Address {
    /// What was typed, the environment or a profile says.
    Told(String),
    /// That of the data folder's server.
    OfData(String),
}

impl Address {
    fn text(self) -> String {
        match self {
            Self::Told(text) | Self::OfData(text) => text,
        }
    }
}

/// Which server is meant, if any is.
fn address(
    wanted: &Wanted<'_>,
    environment: &Environment<'_>,
    files: &Files,
    profile: &str,
) -> Option<Address> {
    let of_services = || {
        let endpoint = files.endpoint_of_services(profile);
        endpoint.or_else(|| files.setting(profile, "endpoint_url"))
    };
    let elsewhere = || {
        let endpoint = environment.variable("AWS_ENDPOINT_URL_S3");
        let endpoint = endpoint.or_else(|| environment.variable("AWS_ENDPOINT_URL"));
        endpoint.or_else(of_services)
    };
    let own = { wanted.data_endpoint }.filter(|_| wanted.data.is_some());
    let own = own.map(|text| Address::OfData(text.to_owned()));
    let typed = wanted.endpoint.map(str::to_owned);
    match wanted.data {
        Some(_) if !wanted.is_data_implied => typed
            .or_else(|| of_services().filter(|_| wanted.profile.is_some()))
            .map(Address::Told)
            .or(own)
            .or_else(|| elsewhere().map(Address::Told)),
        _ => typed.or_else(elsewhere).map(Address::Told).or(own),
    }
}

fn credentials(
    wanted: &Wanted<'_>,
    environment: &Environment<'_>,
    files: &Files,
    profile: &str,
) -> Result<Credentials, ClientError> {
    if let Some(file) = wanted.credentials {
        return Credentials::of_file(file, profile);
    }
    let of_data = wanted.data.filter(|_| wanted.profile.is_none());
    if let Some(data) = of_data {
        let file = data.join("credentials");
        let named = [ID_VARIABLE, PROFILE_VARIABLE, FILE_VARIABLE];
        let has_key = named
            .iter()
            .any(|name| environment.variable(name).is_some());
        // A folder that was restored, a standby and a gateway have no key of their own.
        if !has_key || (!wanted.is_data_implied && file.exists()) {
            return of_folder(&file);
        }
    }
    if wanted.profile.is_none()
        && let Some(found) = Credentials::of_variables(environment)?
    {
        return Ok(found);
    }
    if let Some(found) = files.credentials(profile) {
        return Ok(found);
    }
    let elsewhere = [
        "credential_process",
        "sso_session",
        "sso_start_url",
        "role_arn",
    ];
    let elsewhere = { elsewhere.into_iter() }.find(|name| files.setting(profile, name).is_some());
    let problem = match elsewhere {
        Some(name) => format!(
            "has its access key by {name}, which is not done here; `aws configure \
             export-credentials --profile {profile} --format env` prints one to set"
        ),
        None => {
            let is_named = wanted.profile.is_some() || profile != "default";
            if !is_named && wanted.key_advice.is_none() {
                return Err(ClientError::Credentials {
                    place: "no access key was found".to_owned(),
                    problem: KEY_PLACES.to_owned(),
                });
            }
            let lacks = if files.has(profile) || profile == "default" {
                "has no access key"
            } else {
                "there is no such profile in AWS's files"
            };
            let advice = wanted.key_advice.unwrap_or(KEY_PLACES);
            format!("{lacks}: {advice}")
        }
    };
    Err(ClientError::Credentials {
        place: format!("profile {profile}"),
        problem,
    })
}

/// The access key in a data folder: the file is the server's own, and knows no profiles.
fn of_folder(file: &Path) -> Result<Credentials, ClientError> {
    match file.try_exists() {
        Ok(false) => Err(ClientError::Credentials {
            place: file.display().to_string(),
            problem: format!(
                "there is no such file, as in folders that were restored, of standbys and of \
                 gateways: set {ID_VARIABLE} and {SECRET_VARIABLE}, or name a file by \
                 --credentials"
            ),
        }),
        _ => Credentials::of_file(file, "default"),
    }
}

/// AWS's two files.
struct Files {
    credentials: Option<Ini>,
    config: Option<Ini>,
}

impl Files {
    fn read(environment: &Environment<'_>) -> Result<Self, ClientError> {
        let read = |variable, name| match environment.aws_file(variable, name) {
            Some(file) => ini_file(&file),
            None => Ok(None),
        };
        Ok(Self {
            credentials: read(FILE_VARIABLE, "credentials")?,
            config: read("AWS_CONFIG_FILE", "config")?,
        })
    }

    /// What the section of a profile is called in the configuration file.
    fn section(profile: &str) -> String {
        match profile {
            "default" => profile.to_owned(),
            profile => format!("profile {profile}"),
        }
    }

    fn setting(&self, profile: &str, name: &str) -> Option<String> {
        let config =
            { self.config.as_ref() }.and_then(|config| config.value(&Self::section(profile), name));
        let found = config.or_else(|| self.credentials.as_ref()?.value(profile, name));
        found.map(str::to_owned)
    }

    fn endpoint_of_services(&self, profile: &str) -> Option<String> {
        let services = self.setting(profile, "services")?;
        let section = format!("services {services}");
        let config = self.config.as_ref()?;
        config.value(&section, "s3.endpoint_url").map(str::to_owned)
    }

    /// Whether a profile is named at all.
    fn has(&self, profile: &str) -> bool {
        let has =
            |ini: &Option<Ini>, section: &str| ini.as_ref().is_some_and(|ini| ini.has(section));
        has(&self.credentials, profile) || has(&self.config, &Self::section(profile))
    }

    fn credentials(&self, profile: &str) -> Option<Credentials> {
        let of = |ini: &Option<Ini>, section: &str| {
            let ini = ini.as_ref().filter(|ini| ini.has(section))?;
            Credentials::of_section(ini, section)
        };
        of(&self.credentials, profile).or_else(|| of(&self.config, &Self::section(profile)))
    }
}

#[cfg(test)]
mod tests;
