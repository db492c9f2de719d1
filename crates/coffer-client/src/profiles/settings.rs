//! All that a client of S3 has to know before its first request.

use std::path::{Path, PathBuf};

use crate::error::ClientError;
use crate::profiles::credentials::{
    Credentials, FILE_VARIABLE, ID_VARIABLE, PROFILE_VARIABLE, SECRET_VARIABLE,
};
use crate::profiles::environment::{Environment, ini_file, of_process};
use crate::profiles::ini::Ini;

/// The region of who names none. coffer takes any.
pub(crate) const USUAL_REGION: &str = "us-east-1";

/// The authority of the server, as AWS's clients are told it.
const CA_VARIABLE: &str = "AWS_CA_BUNDLE";

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
    /// A data folder, whose own access key and authority are meant.
    pub data: Option<&'a Path>,
    /// The address of its server, where no other is named.
    pub data_endpoint: Option<&'a str>,
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
    /// Looks where AWS's clients look: what was typed, else the environment, else the profile. The
    /// address is at last that of the data folder's server.
    ///
    /// The access key is that of the file or profile that was typed, else of the data folder, else
    /// of the environment, else of the profile that the environment names or `default`.
    ///
    /// # Errors
    /// When there is no endpoint or no access key, or a file can't be read.
    pub fn find(wanted: &Wanted<'_>) -> Result<Self, ClientError> {
        Self::find_in(wanted, &Environment(&of_process))
    }

    fn find_in(wanted: &Wanted<'_>, environment: &Environment<'_>) -> Result<Self, ClientError> {
        let files = Files::read(environment)?;
        let named = environment.variable(PROFILE_VARIABLE);
        let profile = wanted.profile.or(named.as_deref()).unwrap_or("default");
        let of_profile = |name| files.setting(profile, name);
        let endpoint = wanted.endpoint.map(str::to_owned);
        let endpoint = endpoint
            .or_else(|| environment.variable("AWS_ENDPOINT_URL_S3"))
            .or_else(|| environment.variable("AWS_ENDPOINT_URL"))
            .or_else(|| files.endpoint_of_services(profile))
            .or_else(|| of_profile("endpoint_url"))
            .or_else(|| wanted.data_endpoint.map(str::to_owned));
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

fn credentials(
    wanted: &Wanted<'_>,
    environment: &Environment<'_>,
    files: &Files,
    profile: &str,
) -> Result<Credentials, ClientError> {
    if let Some(file) = wanted.credentials {
        return Credentials::of_file(file, profile);
    }
    if wanted.profile.is_none() {
        if let Some(data) = wanted.data {
            // Its file is the server's own, and knows no profiles.
            return Credentials::of_file(&data.join("credentials"), "default");
        }
        if let Some(found) = Credentials::of_variables(environment)? {
            return Ok(found);
        }
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
            let lacks = if files.has(profile) || profile == "default" {
                "has no access key"
            } else {
                "there is no such profile in AWS's files"
            };
            match wanted.key_advice {
                Some(advice) => format!("{lacks}: {advice}"),
                None => format!(
                    "{lacks}: set {ID_VARIABLE} and {SECRET_VARIABLE}, name a file by \
                     --credentials or {FILE_VARIABLE}, or give --data DIR for that of a server here"
                ),
            }
        }
    };
    Err(ClientError::Credentials {
        place: format!("profile {profile}"),
        problem,
    })
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
mod tests {
    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let home = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(home.0.path().join(".aws")).unwrap();
            home.write(
                ".aws/credentials",
                "[default]\naws_access_key_id = D\naws_secret_access_key = s\n\
                 [p]\naws_access_key_id = P\naws_secret_access_key = s\naws_session_token = t\n",
            );
            home.write(
                ".aws/config",
                "[default]\nregion = r1\nendpoint_url = https://d\n[profile p]\nservices = v\n\
                 ca_bundle = /p.pem\n[services v]\ns3 =\n  endpoint_url = https://p\n\
                 [profile role]\nrole_arn = arn\nendpoint_url = https://r\n",
            );
            home
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.path().join(name), text).unwrap();
        }

        fn find(&self, wanted: &Wanted<'_>, set: &[(&str, &str)]) -> Result<Settings, ClientError> {
            let home = self.0.path().to_str().unwrap();
            let variable = |name: &str| match name {
                "HOME" => Some(home.to_owned()),
                name => { set.iter() }
                    .find(|(set, _)| *set == name)
                    .map(|(_, value)| (*value).to_owned()),
            };
            Settings::find_in(wanted, &Environment(&variable))
        }
    }

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];

    #[test]
    fn what_was_typed_comes_first_then_the_environment_then_the_profile() {
        let home = Home::new();
        let found = home.find(&Wanted::default(), &[]).unwrap();
        assert_eq!(found.endpoint, "https://d");
        assert_eq!(found.credentials.access_key_id, "D");
        assert_eq!((found.region.as_str(), found.ca), ("r1", None));
        let set = [KEY[0], KEY[1], ("AWS_ENDPOINT_URL", "https://e")];
        let found = home.find(&Wanted::default(), &set).unwrap();
        assert_eq!(found.endpoint, "https://e");
        assert_eq!(found.credentials.access_key_id, "E");
        let typed = Wanted {
            endpoint: Some("https://t"),
            profile: Some("p"),
            ..Wanted::default()
        };
        let found = home.find(&typed, &set).unwrap();
        assert_eq!(found.endpoint, "https://t");
        assert_eq!(found.credentials.access_key_id, "P");
        assert_eq!(found.credentials.session_token.unwrap().as_str(), "t");
        assert_eq!(found.ca, Some(PathBuf::from("/p.pem")));
    }

    #[test]
    fn a_profile_that_the_environment_names() {
        let home = Home::new();
        let found = home.find(&Wanted::default(), &[("AWS_PROFILE", "p")]);
        let found = found.unwrap();
        assert_eq!(found.endpoint, "https://p");
        assert_eq!(found.credentials.access_key_id, "P");
    }

    #[test]
    fn a_data_folder_has_key_and_authority() {
        let home = Home::new();
        let data = home.0.path().join("data");
        std::fs::create_dir_all(data.join("tls")).unwrap();
        home.write(
            "data/credentials",
            "[default]\naws_access_key_id = O\naws_secret_access_key = s\n",
        );
        home.write("data/tls/ca.pem", "");
        let wanted = Wanted {
            data: Some(&data),
            ..Wanted::default()
        };
        let found = home.find(&wanted, &KEY).unwrap();
        assert_eq!(found.credentials.access_key_id, "O");
        assert_eq!(found.ca, Some(data.join("tls/ca.pem")));
        let found = home.find(&wanted, &[("AWS_PROFILE", "p")]).unwrap();
        assert_eq!(found.credentials.access_key_id, "O");
        // It is used in place of the variables; what was typed is used before it.
        let set = [("AWS_CA_BUNDLE", "/e.pem")];
        let ca = |wanted: &Wanted<'_>| home.find(wanted, &set).unwrap().ca;
        assert_eq!(ca(&wanted), Some(data.join("tls/ca.pem")));
        let typed = Wanted {
            ca: Some(Path::new("/t.pem")),
            ..wanted
        };
        assert_eq!(ca(&typed), Some(PathBuf::from("/t.pem")));
        assert_eq!(ca(&Wanted::default()), Some(PathBuf::from("/e.pem")));
        let source = Wanted {
            is_source: true,
            ..Wanted::default()
        };
        assert_eq!(ca(&source), None);
        let wanted = Wanted {
            data_endpoint: Some("https://127.0.0.1:1"),
            ..wanted
        };
        let found = home.find(&wanted, &KEY).unwrap();
        assert_eq!(found.endpoint, "https://d");
        std::fs::remove_file(home.0.path().join(".aws/config")).unwrap();
        let found = home.find(&wanted, &KEY).unwrap();
        assert_eq!(found.endpoint, "https://127.0.0.1:1");
    }

    #[test]
    fn what_is_missing_is_told_with_what_to_do() {
        let home = Home::new();
        let role = home.find(&Wanted::default(), &[("AWS_PROFILE", "role")]);
        let told = role.unwrap_err().to_string();
        assert!(
            told.contains("role_arn") && told.contains("aws configure"),
            "{told}"
        );
        let none = home.find(&Wanted::default(), &[("AWS_PROFILE", "none")]);
        let told = none.unwrap_err().to_string();
        assert!(told.contains("there is no such profile"), "{told}");
        home.write(".aws/config", "[profile empty]\nregion = r\n");
        let none = home.find(&Wanted::default(), &[("AWS_PROFILE", "empty")]);
        let told = none.unwrap_err().to_string();
        assert!(told.contains("AWS_ACCESS_KEY_ID"), "{told}");
        for (half, other) in [(KEY[0], KEY[1]), (KEY[1], KEY[0])] {
            let told = home.find(&Wanted::default(), &[half]).unwrap_err();
            let told = told.to_string();
            let expected = format!("{}: is set without {}: set both", half.0, other.0);
            assert!(told.contains(&expected), "{told}");
            // What was typed is used before it.
            let typed = Wanted {
                endpoint: Some("https://t"),
                profile: Some("p"),
                ..Wanted::default()
            };
            assert!(home.find(&typed, &[half]).is_ok());
        }
        std::fs::remove_file(home.0.path().join(".aws/config")).unwrap();
        let told = home.find(&Wanted::default(), &[]).unwrap_err().to_string();
        assert!(
            told.starts_with("--endpoint: ") && told.contains("AWS_ENDPOINT_URL"),
            "{told}"
        );
    }
}
