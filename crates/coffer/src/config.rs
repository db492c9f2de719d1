//! What the server is told, from the command line, the environment, the configuration file and
//! the defaults, in this order: what comes first wins.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use coffer_keys::SourceSpec;
use coffer_vault::limits::{ABORT_UPLOADS_DAYS, LOCK_MAX_DAYS};
use serde::{Deserialize, Deserializer};

use crate::error::Error;
use crate::limits::Limits;
use crate::log::{LogFormat, LogLevel};

pub mod data_args;

pub mod args;

pub mod domains;

pub mod implied;

pub mod proxy_rules;

use self::args::{DataListen, DataTlsBy, ServeArgs, Verify, address, data_address, data_url};
use self::data_args::DataArgs;
use self::domains::domains_and_addresses;
use self::proxy_rules::ProxyRules;

/// Where the data is unless told otherwise.
pub const DATA_DEFAULT: &str = "coffer-data";
/// Where S3 is served unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:9000";
/// Where administration is served unless told otherwise.
pub const ADMIN_LISTEN_DEFAULT: &str = "127.0.0.1:9001";

/// The data port unless told otherwise, at the host of S3.
pub const DATA_PORT_DEFAULT: u16 = 9002;

/// Where a gateway takes what others forward, unless told otherwise.
pub const GATEWAY_LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9003);

/// Seconds of a day.
const DAY_SECONDS: NonZeroU32 = NonZeroU32::new(86_400).unwrap();

/// All that `coffer serve` needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// Address of the S3 service.
    pub listen: SocketAddr,
    /// Address of administration.
    pub admin_listen: SocketAddr,
    /// Address of the data port, if it was said: otherwise [`DATA_PORT_DEFAULT`], if it is free.
    pub data_listen: Option<DataListen>,
    /// The URL that clients reach it by, where that is another.
    pub data_advertise: Option<String>,
    /// Whether it speaks TLS.
    pub data_tls: DataTlsBy,
    /// When what arrives sealed is opened.
    pub verify: Verify,
    /// The operator's own certificate; without one, a local authority makes it.
    pub tls: Option<TlsFiles>,
    /// Where the root key is made at the first start.
    pub root_key: Option<SourceSpec>,
    /// Domains of virtual-host style, lower case.
    pub domains: Vec<String>,
    /// Addresses that the server's certificate is for, beside those that it listens on.
    pub addresses: Vec<IpAddr>,
    /// How ETags come about.
    pub etag: Etag,
    /// Who owns the objects of new buckets that don't say so.
    pub object_ownership: ObjectOwnership,
    /// After how many hours without a read that counts a subject that floats is settled.
    pub settle_after_hours: Option<NonZeroU32>,
    /// After how many days an upload is aborted that was not completed; 0: never.
    pub abort_uploads_after_days: u32,
    /// How long a day of lifecycle rules is: shorter for tests alone.
    pub lifecycle_day_seconds: NonZeroU32,
    /// For how many days at most an object may be locked.
    pub lock_max_days: u32,
    /// How much to log.
    pub log: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
    /// The limits.
    pub limits: Limits,
    /// What proxies may tell.
    pub proxies: ProxyRules,
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

/// Who owns the objects of new buckets, and whether access control lists count in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum ObjectOwnership {
    /// The bucket's owner: lists are off.
    #[default]
    BucketOwnerEnforced,
    /// Their writers, but for those written with `bucket-owner-full-control`.
    BucketOwnerPreferred,
    /// Their writers.
    ObjectWriter,
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
    #[serde(deserialize_with = "data_listen")]
    data_listen: Option<DataListen>,
    #[serde(deserialize_with = "data_advertise")]
    data_advertise: Option<String>,
    data_tls: Option<DataTlsBy>,
    verify: Option<Verify>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    #[serde(deserialize_with = "source")]
    root_key: Option<SourceSpec>,
    domain: Vec<String>,
    etag: Etag,
    object_ownership: ObjectOwnership,
    settle_after_hours: Option<NonZeroU32>,
    abort_uploads_after_days: Option<u32>,
    lifecycle_day_seconds: Option<NonZeroU32>,
    lock_max_days: Option<NonZeroU32>,
    log: Option<LogLevel>,
    log_format: Option<LogFormat>,
    limits: Limits,
    proxies: ProxyRules,
}

impl Config {
    /// Puts together what `coffer serve` was told.
    pub fn for_serve(data: &DataArgs, args: &ServeArgs) -> Result<Self, Error> {
        let file = File::of(data)?;
        // A certificate and a key belong together, so they come from one data.
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
        let (domains, addresses) = domains_and_addresses(&domains)?;
        let data_advertise = args.data_advertise.clone().or(file.data_advertise);
        let data_tls = args.data_tls.or(file.data_tls).unwrap_or_default();
        let is_plain = |url: &str| url.starts_with("http:");
        if data_tls == DataTlsBy::Kernel && data_advertise.as_deref().is_some_and(is_plain) {
            return Err(Error::Option {
                option: "--data-advertise",
                problem: "with --data-tls that port speaks TLS: write https:// in place of http://"
                    .to_owned(),
            });
        }
        Ok(Self {
            data: data_folder(data, file.data),
            listen: args
                .listen
                .or(file.listen)
                .unwrap_or_else(|| fixed(LISTEN_DEFAULT)),
            admin_listen: args
                .admin_listen
                .or(file.admin_listen)
                .unwrap_or_else(|| fixed(ADMIN_LISTEN_DEFAULT)),
            data_listen: args.data_listen.or(file.data_listen),
            data_advertise,
            data_tls,
            verify: args.verify.or(file.verify).unwrap_or_default(),
            tls,
            root_key: args.root_key.clone().or(file.root_key),
            domains,
            addresses,
            etag: file.etag,
            object_ownership: file.object_ownership,
            settle_after_hours: file.settle_after_hours,
            abort_uploads_after_days: file
                .abort_uploads_after_days
                .unwrap_or(ABORT_UPLOADS_DAYS.get()),
            lifecycle_day_seconds: file.lifecycle_day_seconds.unwrap_or(DAY_SECONDS),
            lock_max_days: file.lock_max_days.map_or(LOCK_MAX_DAYS, NonZeroU32::get),
            log: args.log.or(file.log).unwrap_or_default(),
            log_format: args.log_format.or(file.log_format).unwrap_or_default(),
            limits: file.limits,
            proxies: file.proxies,
        })
    }
}

/// The data folder, for the subcommands that need no more.
///
/// # Errors
/// When the configuration file can't be read, or none is named, and the folder that would be taken
/// may be another user's.
pub fn data(data: &DataArgs) -> Result<PathBuf, Error> {
    named_data(data)?.map_or_else(implied::implied, Ok)
}

/// The data folder, if the command line, the environment or the configuration file names one.
pub fn named_data(data: &DataArgs) -> Result<Option<PathBuf>, Error> {
    let in_file = File::of(data)?.data;
    Ok(data.data.clone().or(in_file))
}

/// Where the S3 service on this machine is reached, as far as the environment or the configuration
/// file tells.
pub fn local_service(data: &DataArgs) -> Result<SocketAddr, Error> {
    let in_environment = std::env::var("COFFER_LISTEN").ok();
    let mut address = match in_environment.and_then(|text| address(&text).ok()) {
        Some(address) => address,
        None => File::of(data)?
            .listen
            .unwrap_or_else(|| fixed(LISTEN_DEFAULT)),
    };
    match address.ip() {
        IpAddr::V4(any) if any.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(any) if any.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(address)
}

fn data_folder(data: &DataArgs, in_file: Option<PathBuf>) -> PathBuf {
    data.data
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

/// What the parser says of a number, without the names that this program's language has for it.
fn in_plain_words(problem: &str) -> String {
    let Some((before, kind)) = problem.rsplit_once("expected ") else {
        return problem.to_owned();
    };
    let (least, kind) = match kind.strip_prefix("a nonzero ") {
        Some(kind) => (1, kind),
        None => (0, kind),
    };
    let most = match kind {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        // A file has no larger ones.
        "u64" | "usize" => i64::MAX.unsigned_abs(),
        _ => return problem.to_owned(),
    };
    format!("{before}expected a whole number from {least} to {most}")
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    address(&text).map(Some).map_err(serde::de::Error::custom)
}

fn data_listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DataListen>, D::Error> {
    let text = String::deserialize(deserializer)?;
    data_address(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn data_advertise<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    data_url(&text).map(Some).map_err(serde::de::Error::custom)
}

fn source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SourceSpec>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl File {
    fn of(data: &DataArgs) -> Result<Self, Error> {
        match &data.config {
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
            problem: in_plain_words(&error.message().replace('\n', " ")),
        })?;
        let zero = file.limits.nonsense();
        let zero = zero.map(|key| format!("limits.{key} must not be zero"));
        let nonsense = || file.proxies.nonsense().map(str::to_owned);
        if let Some(problem) = zero.or_else(nonsense) {
            return Err(Error::Config {
                path: path.to_owned(),
                line: None,
                problem,
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
mod tests;
