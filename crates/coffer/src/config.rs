//! What the server is told, from the command line, the environment, the configuration file and
//! the defaults, in this order: what comes first wins.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use coffer_keys::SourceSpec;
use serde::{Deserialize, Deserializer};

use crate::cli::{LogFormat, LogLevel, Place, ServeArgs, parse_address};
use crate::error::Error;
use crate::limits::Limits;

/// Where the data is unless told otherwise.
pub const DATA_DEFAULT: &str = "coffer-data";
/// Where S3 is served unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:9000";
/// Where administration is served unless told otherwise.
pub const ADMIN_LISTEN_DEFAULT: &str = "127.0.0.1:9001";

/// All that `coffer serve` needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// Address of the S3 service.
    pub listen: SocketAddr,
    /// Address of administration.
    pub admin_listen: SocketAddr,
    /// The operator's own certificate; without one, a local authority makes it.
    pub tls: Option<TlsFiles>,
    /// Where the root key is made at the first start.
    pub root_key: Option<SourceSpec>,
    /// Domains of virtual-host style, lower case.
    pub domains: Vec<String>,
    /// How ETags come about.
    pub etag: Etag,
    /// How much to log.
    pub log: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
    /// The limits.
    pub limits: Limits,
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub cert: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

/// How ETags come about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Etag {
    /// Random, in a shape that no client takes for an MD5 sum.
    #[default]
    Random,
    /// The MD5 sum of the object, at its cost.
    Md5,
}

/// The configuration file, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    data: Option<PathBuf>,
    #[serde(deserialize_with = "listen")]
    listen: Option<SocketAddr>,
    #[serde(deserialize_with = "listen")]
    admin_listen: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    #[serde(deserialize_with = "source")]
    root_key: Option<SourceSpec>,
    domain: Vec<String>,
    etag: Etag,
    log: Option<LogLevel>,
    log_format: Option<LogFormat>,
    limits: Limits,
}

impl Config {
    /// Puts together what `coffer serve` was told.
    pub fn for_serve(place: &Place, args: &ServeArgs) -> Result<Self, Error> {
        let file = File::of(place)?;
        // A certificate and a key belong together, so they come from one place.
        let tls = if args.tls_cert.is_some() || args.tls_key.is_some() {
            tls_files(args.tls_cert.clone(), args.tls_key.clone())?
        } else {
            tls_files(file.tls_cert, file.tls_key)?
        };
        let domains = if args.domain.is_empty() {
            file.domain
        } else {
            args.domain.clone()
        };
        Ok(Self {
            data: data_folder(place, file.data),
            listen: args
                .listen
                .or(file.listen)
                .unwrap_or_else(|| fixed(LISTEN_DEFAULT)),
            admin_listen: args
                .admin_listen
                .or(file.admin_listen)
                .unwrap_or_else(|| fixed(ADMIN_LISTEN_DEFAULT)),
            tls,
            root_key: args.root_key.clone().or(file.root_key),
            domains: domains
                .iter()
                .map(|name| domain(name))
                .collect::<Result<_, _>>()?,
            etag: file.etag,
            log: args.log.or(file.log).unwrap_or_default(),
            log_format: args.log_format.or(file.log_format).unwrap_or_default(),
            limits: file.limits,
        })
    }
}

/// The data folder, for the subcommands that need no more.
pub fn data(place: &Place) -> Result<PathBuf, Error> {
    Ok(data_folder(place, File::of(place)?.data))
}

/// The port of the S3 service, as far as the environment or the configuration file tells.
pub fn listen_port(place: &Place) -> Result<u16, Error> {
    let in_environment = std::env::var("COFFER_LISTEN").ok();
    let address = match in_environment.and_then(|text| parse_address(&text).ok()) {
        Some(address) => address,
        None => File::of(place)?
            .listen
            .unwrap_or_else(|| fixed(LISTEN_DEFAULT)),
    };
    Ok(address.port())
}

fn data_folder(place: &Place, in_file: Option<PathBuf>) -> PathBuf {
    place
        .data
        .clone()
        .or(in_file)
        .unwrap_or_else(|| PathBuf::from(DATA_DEFAULT))
}

fn fixed(address: &str) -> SocketAddr {
    address
        .parse()
        .expect("the default addresses are constants of this file")
}

fn tls_files(cert: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>, Error> {
    let missing = |option| Error::Option {
        option,
        problem: "missing; a certificate and its key must be given together".to_owned(),
    };
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("--tls-key")),
        (None, Some(_)) => Err(missing("--tls-cert")),
    }
}

/// A domain for virtual-host style: letters, digits, hyphens, dots. Host headers are compared
/// with it, and the local authority writes it into the certificate.
fn domain(name: &str) -> Result<String, Error> {
    let label_fits = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let fits =
        name.len() <= 253 && name.split('.').all(label_fits) && name.parse::<IpAddr>().is_err();
    if fits {
        return Ok(name.to_ascii_lowercase());
    }
    Err(Error::Option {
        option: "--domain",
        problem: format!("{name:?} is no domain name; write one such as s3.example.org"),
    })
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SourceSpec>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl File {
    fn of(place: &Place) -> Result<Self, Error> {
        match &place.config {
            Some(path) => Self::read(path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::ConfigUnreadable {
            path: path.to_owned(),
            source,
        })?;
        let mut file: Self = toml::from_str(&text).map_err(|error| Error::Config {
            path: path.to_owned(),
            line: error
                .span()
                .map(|span| 1 + text[..span.start].matches('\n').count()),
            problem: error.message().replace('\n', " "),
        })?;
        if let Some(key) = file.limits.nonsense() {
            return Err(Error::Config {
                path: path.to_owned(),
                line: None,
                problem: format!("limits.{key} must not be zero"),
            });
        }
        file.anchor(path);
        Ok(file)
    }

    /// Makes relative paths start at the file's own folder, wherever the program is started.
    fn anchor(&mut self, path: &Path) {
        let folder = path.parent().unwrap_or(Path::new(""));
        for entry in [&mut self.data, &mut self.tls_cert, &mut self.tls_key]
            .into_iter()
            .flatten()
        {
            *entry = folder.join(&*entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    /// The environment's part is clap's: `tests/command_line.rs` tries it on the program.
    fn config(line: &str, file: Option<&str>) -> Result<Config, Error> {
        let folder = tempfile::tempdir().unwrap();
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if let Some(text) = file {
            let path = folder.path().join("coffer.toml");
            std::fs::write(&path, text).unwrap();
            words.extend(["--config".to_owned(), path.to_str().unwrap().to_owned()]);
        }
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Serve(args) = cli.command else {
            panic!("{line} is not serve")
        };
        let mut config = Config::for_serve(&cli.place, &args)?;
        if let Ok(rest) = config.data.strip_prefix(folder.path()) {
            config.data = Path::new("FOLDER").join(rest);
        }
        Ok(config)
    }

    #[test]
    fn defaults() {
        let config = config("coffer serve", None).unwrap();
        assert_eq!(config.data, Path::new("coffer-data"));
        assert_eq!(config.listen, "127.0.0.1:9000".parse().unwrap());
        assert_eq!(config.admin_listen, "127.0.0.1:9001".parse().unwrap());
        assert_eq!((config.tls, config.etag), (None, Etag::Random));
        assert_eq!(config.limits, Limits::default());
    }

    const WHOLE: &str = r#"
        data = "store"
        listen = "0.0.0.0:1"
        admin-listen = "[::1]:2"
        tls-cert = "/c.pem"
        tls-key = "/k.pem"
        domain = ["S3.example.org", "localhost"]
        etag = "md5"
        log = "warn"
        log-format = "json"
        [limits]
        requests = 7
        header-timeout-seconds = 3
    "#;

    #[test]
    fn file_sets_everything() {
        let config = config("coffer serve", Some(WHOLE)).unwrap();
        assert_eq!(
            config.data,
            Path::new("FOLDER/store"),
            "starts at the file's folder"
        );
        assert_eq!(config.listen, "0.0.0.0:1".parse().unwrap());
        assert_eq!(config.admin_listen, "[::1]:2".parse().unwrap());
        let tls = config.tls.unwrap();
        assert_eq!((tls.cert, tls.key), ("/c.pem".into(), "/k.pem".into()));
        assert_eq!(config.domains, ["s3.example.org", "localhost"]);
        assert_eq!(config.etag, Etag::Md5);
        assert_eq!(
            (config.log, config.log_format),
            (LogLevel::Warn, LogFormat::Json)
        );
        let limits = Limits {
            requests: 7,
            header_timeout_seconds: 3,
            ..Limits::default()
        };
        assert_eq!(config.limits, limits);
    }

    #[test]
    fn flags_win_over_the_file() {
        let line = "coffer serve --data /flag --listen 127.0.0.1:5 --admin-listen 127.0.0.1:6 \
                    --tls-cert /fc --tls-key /fk --domain flag.test --log debug --log-format text";
        let config = config(line, Some(WHOLE)).unwrap();
        assert_eq!(config.data, Path::new("/flag"));
        assert_eq!(config.listen.port(), 5);
        assert_eq!(config.admin_listen.port(), 6);
        assert_eq!(config.tls.unwrap().key, Path::new("/fk"));
        assert_eq!(config.domains, ["flag.test"]);
        assert_eq!(
            (config.log, config.log_format),
            (LogLevel::Debug, LogFormat::Text)
        );
        assert_eq!(config.etag, Etag::Md5, "what no flag sets stays");
    }

    #[track_caller]
    fn refused(file: &str, message: &str) {
        let error = config("coffer serve", Some(file)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(message), "{text}");
        assert!(!text.contains('\n'), "more than a line: {text}");
        assert_eq!(
            format!("{:?}", error.exit_code()),
            format!("{:?}", std::process::ExitCode::from(2))
        );
    }

    #[test]
    fn file_errors_name_the_line_and_the_key() {
        refused(
            "\nlisten = \"127.0.0.1:1\"\nlisen = 1",
            "line 3: unknown field `lisen`",
        );
        refused(
            "[limits]\nconections = 1",
            "line 2: unknown field `conections`",
        );
        refused("listen = \"here\"", "line 1: not an address");
        refused("listen = 5", "line 1");
        refused("etag = \"sha\"", "unknown variant `sha`");
        refused("log = ", "line 1");
        refused("[limits]\nrequests = 0", "limits.requests must not be zero");
        refused("domain = [\"-x\"]", "is no domain name");
        refused("domain = [\"127.0.0.1\"]", "is no domain name");
        refused("tls-cert = \"c\"", "--tls-key: missing");
    }

    #[test]
    fn certificate_and_key_do_not_mix_places() {
        let error = config(
            "coffer serve --tls-cert /c",
            Some("tls-key = \"/k\"\ntls-cert=\"/x\""),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("--tls-key: missing")
        );
    }

    #[test]
    fn missing_file() {
        let place = Place {
            data: None,
            config: Some("/does/not/exist".into()),
        };
        let error = Config::for_serve(&place, &ServeArgs::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/does/not/exist could not be read"),
            "{error}"
        );
    }
}
