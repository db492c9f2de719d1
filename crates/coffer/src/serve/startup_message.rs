//! What the server says on standard output when it starts: lines to paste, and `ready`.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// What there is to say.
#[derive(Debug)]
pub struct StartupMessage {
    /// The data folder, as an absolute path.
    pub data: PathBuf,
    /// The first access key; none where the file is gone, as in a folder that was restored.
    pub credentials: Option<PathBuf>,
    /// The authority that clients should trust; none if the operator's certificate is used.
    pub ca_cert: Option<PathBuf>,
    /// Where S3 is served.
    pub s3: SocketAddr,
    /// Where administration is served.
    pub admin: SocketAddr,
    /// The URL where sealed bytes are, if anywhere.
    pub data_port: Option<String>,
    /// Whether this start made the data folder.
    pub first_start: bool,
    /// What has to be kept apart from the data, in a sentence.
    pub to_keep: Option<String>,
}

impl StartupMessage {
    /// Lines to paste into a shell for the aws CLI.
    pub fn paste_lines(&self) -> String {
        let mut text = String::new();
        if self.first_start {
            let data = self.data.display();
            line(
                &mut text,
                format_args!("# first start: made keys and credentials in {data}"),
            );
            if let Some(advice) = &self.to_keep {
                line(&mut text, format_args!("# {advice}"));
            }
        }
        line(
            &mut text,
            format_args!("# for the aws CLI, in another shell:"),
        );
        match &self.credentials {
            Some(path) => line(
                &mut text,
                format_args!("export AWS_SHARED_CREDENTIALS_FILE={}", quoted(path)),
            ),
            None => line(
                &mut text,
                format_args!(
                    "# with an access key that you have: there is no file of the first one"
                ),
            ),
        }
        if let Some(ca_cert) = &self.ca_cert {
            line(
                &mut text,
                format_args!("export AWS_CA_BUNDLE={}", quoted(ca_cert)),
            );
        }
        let endpoint = url(self.s3);
        // Later ones have buckets, and a standby makes none.
        let command = if self.first_start {
            "mb s3://first-bucket"
        } else {
            "ls"
        };
        line(
            &mut text,
            format_args!("aws --endpoint-url {endpoint} s3 {command}"),
        );
        text
    }

    /// The line that says that the server serves.
    pub fn ready_line(&self) -> String {
        let (s3, admin) = (url(self.s3), url(self.admin));
        match &self.data_port {
            Some(data) => format!("ready: S3 {s3}, administration {admin}, data {data}\n"),
            None => format!("ready: S3 {s3}, administration {admin}\n"),
        }
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes any text");
}

/// An address to reach a listener from this machine.
pub fn url(address: SocketAddr) -> String {
    format!("https://{}", reachable(address))
}

/// The same of a listener without TLS.
pub fn plain_url(address: SocketAddr) -> String {
    format!("http://{}", reachable(address))
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// A path as a word of a POSIX shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte);
    if text.bytes().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use coffer_keys::SourceSpec;

    use super::*;

    fn welcome() -> StartupMessage {
        StartupMessage {
            data: "/srv/my data".into(),
            credentials: Some("/srv/my data/credentials".into()),
            ca_cert: Some("/srv/my data/tls/ca.pem".into()),
            s3: "0.0.0.0:9000".parse().unwrap(),
            admin: "[::1]:9001".parse().unwrap(),
            data_port: None,
            first_start: true,
            to_keep: Some(SourceSpec::File(None).to_keep()),
        }
    }

    #[test]
    fn lines_can_be_pasted() {
        let lines = welcome().paste_lines();
        for line in [
            "export AWS_SHARED_CREDENTIALS_FILE='/srv/my data/credentials'",
            "export AWS_CA_BUNDLE='/srv/my data/tls/ca.pem'",
            "aws --endpoint-url https://127.0.0.1:9000 s3 mb s3://first-bucket",
        ] {
            assert!(
                lines.lines().any(|other| other == line),
                "{line} is not in\n{lines}"
            );
        }
        let operators = StartupMessage {
            ca_cert: None,
            credentials: None,
            first_start: false,
            ..welcome()
        }
        .paste_lines();
        let absent = [
            "AWS_CA_BUNDLE",
            "root.key",
            "AWS_SHARED_CREDENTIALS_FILE",
            " mb ",
        ];
        for absent in absent {
            assert!(!operators.contains(absent), "{operators}");
        }
        let listing = "aws --endpoint-url https://127.0.0.1:9000 s3 ls";
        assert!(operators.lines().any(|line| line == listing), "{operators}");
    }

    #[test]
    fn the_first_start_says_what_to_keep_for_each_source() {
        let cases = [
            ("file", "root.key"),
            ("file:/mnt/key", "/mnt/key"),
            ("passphrase", "root.passphrase"),
            ("keyring:n", "reboot"),
            ("pkcs11:token=t?module-path=/m.so", "root.token"),
        ];
        for (source, kept) in cases {
            let spec: SourceSpec = source.parse().unwrap();
            let lines = StartupMessage {
                to_keep: Some(spec.to_keep()),
                ..welcome()
            }
            .paste_lines();
            let advice: Vec<_> = lines.lines().filter(|line| line.contains(kept)).collect();
            assert_eq!(advice.len(), 1, "{source}: {lines}");
            assert!(advice[0].starts_with("# ") && advice[0].contains("data"));
            let is_file = source == "file";
            assert_eq!(lines.contains("root.key"), is_file, "{source}: {lines}");
        }
    }

    #[test]
    fn ready() {
        let line = welcome().ready_line();
        assert_eq!(
            line,
            "ready: S3 https://127.0.0.1:9000, administration https://[::1]:9001\n"
        );
        let with_data = StartupMessage {
            data_port: Some(plain_url("0.0.0.0:9002".parse().unwrap())),
            ..welcome()
        };
        assert_eq!(
            with_data.ready_line().strip_prefix(line.trim_end()),
            Some(", data http://127.0.0.1:9002\n")
        );
    }

    #[test]
    fn quoting() {
        assert_eq!(quoted(Path::new("/a/b-c_1.x")), "/a/b-c_1.x");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(Path::new("$HOME")), "'$HOME'");
    }
}
