use super::*;
use clap::Parser;

/// `coffer serve` as it is typed.
#[derive(Parser)]
struct Serve {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    args: ServeArgs,
}

/// The environment's part is clap's: `tests/command_line.rs` tries it on the program.
fn config(line: &str, file: Option<&str>) -> Result<Config, Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    if let Some(text) = file {
        let path = folder.path().join("coffer.toml");
        std::fs::write(&path, text).unwrap();
        words.extend(["--config".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let Serve { data, args } = Serve::try_parse_from(words).unwrap();
    let mut config = Config::for_serve(&data, &args)?;
    if let Ok(rest) = config.data.strip_prefix(folder.path()) {
        config.data = Path::new("FOLDER").join(rest);
    }
    Ok(config)
}

#[test]
fn defaults() {
    let config = config("serve", None).unwrap();
    assert_eq!(config.data, Path::new("coffer-data"));
    assert_eq!(config.listen, "127.0.0.1:9000".parse().unwrap());
    assert_eq!(config.admin_listen, "127.0.0.1:9001".parse().unwrap());
    assert_eq!((config.tls, config.etag), (None, Etag::Random));
    assert_eq!(config.limits, Limits::default());
    let uploads = config.abort_uploads_after_days;
    assert_eq!((uploads, config.lifecycle_day_seconds.get()), (7, 86_400));
}

const WHOLE: &str = r#"
    data = "store"
    listen = "0.0.0.0:1"
    admin-listen = "[::1]:2"
    data-listen = "off"
    data-advertise = "https://data.example.org:9002/"
    data-tls = "kernel"
    verify = "later"
    tls-cert = "/c.pem"
    tls-key = "/k.pem"
    domain = ["S3.example.org", "localhost"]
    etag = "md5"
    object-ownership = "ObjectWriter"
    settle-after-hours = 8
    abort-uploads-after-days = 0
    lifecycle-day-seconds = 2
    lock-max-days = 40
    log = "warn"
    log-format = "json"
    [limits]
    requests = 7
    header-timeout-seconds = 3
"#;

#[test]
fn file_sets_everything() {
    let config = config("serve", Some(WHOLE)).unwrap();
    assert_eq!(
        config.data,
        Path::new("FOLDER/store"),
        "starts at the file's folder"
    );
    assert_eq!(config.listen, "0.0.0.0:1".parse().unwrap());
    assert_eq!(config.admin_listen, "[::1]:2".parse().unwrap());
    assert_eq!(config.data_listen, Some(DataListen::Off));
    let advertised = config.data_advertise.as_deref();
    assert_eq!(advertised, Some("https://data.example.org:9002"));
    assert_eq!(config.data_tls, DataTlsBy::Kernel);
    assert_eq!(config.verify, Verify::Later);
    let tls = config.tls.unwrap();
    assert_eq!((tls.cert, tls.key), ("/c.pem".into(), "/k.pem".into()));
    assert_eq!(config.domains, ["s3.example.org", "localhost"]);
    assert_eq!(config.etag, Etag::Md5);
    assert_eq!(config.object_ownership, ObjectOwnership::ObjectWriter);
    assert_eq!(config.settle_after_hours, NonZeroU32::new(8));
    let uploads = config.abort_uploads_after_days;
    assert_eq!((uploads, config.lifecycle_day_seconds.get()), (0, 2));
    assert_eq!(config.lock_max_days, 40);
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
    let line = "serve --data /flag --listen 127.0.0.1:5 --admin-listen 127.0.0.1:6 \
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
    let error = config("serve", Some(file)).unwrap_err();
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
    refused("object-ownership = \"me\"", "unknown variant `me`");
    refused(
        "settle-after-hours = 0",
        "expected a whole number from 1 to 4294967295",
    );
    for wrong in ["-1", "1.5", "\"many\""] {
        let text = format!("[limits]\nconnections = {wrong}");
        let told = "expected a whole number from 0 to 9223372036854775807";
        refused(&text, told);
    }
    refused("log = ", "line 1");
    refused("[limits]\nrequests = 0", "limits.requests must not be zero");
    refused(
        "[proxies]\nheader = 'forwarded'",
        "proxies.trusted is missing",
    );
    refused(
        "[proxies]\ntrusted = ['x']",
        "line 2: \"x\" is neither an address",
    );
    refused("domain = [\"-x\"]", "is no name or address");
    refused("domain = [\"0.0.0.0\"]", "is no name or address");
    refused("tls-cert = \"c\"", "--tls-key: missing");
}

#[test]
fn certificate_and_key_do_not_mix_places() {
    let error = config(
        "serve --tls-cert /c",
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
    let data = DataArgs {
        config: Some("/does/not/exist".into()),
        ..DataArgs::default()
    };
    let error = Config::for_serve(&data, &ServeArgs::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/does/not/exist could not be read"),
        "{error}"
    );
}
