//! A coffer server, asked by curl over TLS on this machine.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, Result};
use crate::file::piped::receive;
use crate::file::store::{Store, evict, files_below};
use crate::host::coffer_server::{CofferServer, REGION};
use crate::host::folder::{Folder, MEMORY, Room};
use crate::host::programs::{command, run};
use crate::host::undo::Undo;
use crate::measuring::content::{Content, Sink};

/// A server with a bucket of its own.
pub(super) struct Server {
    served: CofferServer,
    /// What is uploaded.
    upload: PathBuf,
    /// Where that lies.
    setting: String,
    uploaded: u64,
    url: String,
    curl_settings: PathBuf,
    _upload_gone: Undo,
    _in_memory: Option<Folder>,
}

impl Server {
    pub(super) fn new(program: &Path, folder: &Path, bytes: u64) -> Result<Self> {
        let (in_memory, setting) = upload_folder(bytes)?;
        let upload = in_memory.as_ref().map_or(folder, |own| &own.path);
        let upload = upload.join("upload");
        let gone = upload.clone();
        let upload_gone = Undo::by(move || drop(fs::remove_file(gone)));
        let served = CofferServer::start(program, &folder.join("data"))?;
        let curl_settings = folder.join("curl");
        write_settings(&served, &curl_settings)?;
        let server = Self {
            url: format!("https://{}/lab", served.address),
            uploaded: 0,
            upload,
            setting,
            served,
            curl_settings,
            _upload_gone: upload_gone,
            _in_memory: in_memory,
        };
        run(server.curl().args(["--request", "PUT", &server.url]))?;
        Ok(server)
    }

    fn curl(&self) -> Command {
        let mut curl = command("curl");
        curl.arg("--config").arg(&self.curl_settings);
        curl
    }

    fn object(&self) -> String {
        format!("{}/file", self.url)
    }
}

/// Where curl reads what it uploads: on a file system in memory, if that has room for it, and else
/// beside what is measured.
fn upload_folder(bytes: u64) -> Result<(Option<Folder>, String)> {
    let memory = Path::new(MEMORY);
    if Room::of(memory).is_ok_and(|room| room.in_memory && room.has(bytes)) {
        let setting = format!("uploaded from a file in memory ({MEMORY})");
        return Ok((Some(Folder::new(memory, "upload")?), setting));
    }
    let setting = format!("uploaded from a file in the same folder: {MEMORY} has no room for it");
    Ok((None, setting))
}

/// Settings of curl with the server's credentials: not as arguments, which everybody can list.
fn write_settings(served: &CofferServer, settings: &Path) -> Result<()> {
    let credentials = served.credentials()?;
    let (id, secret) = (credentials.key(), credentials.secret());
    let authority = served.authority();
    let text = format!(
        "user = \"{id}:{secret}\"\naws-sigv4 = \"aws:amz:{REGION}:s3\"\n\
         header = \"x-amz-content-sha256: UNSIGNED-PAYLOAD\"\ncacert = \"{}\"\n\
         silent\nshow-error\nfail\n",
        quoted(&authority.display().to_string())
    );
    let doing = || format!("writing {}", settings.display());
    fs::write(settings, text).doing(doing)
}

/// Between quotation marks, as curl reads it: a name of a folder may hold them, and line breaks.
fn quoted(text: &str) -> String {
    let escaped = [
        ('\\', "\\\\"),
        ('"', "\\\""),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\t', "\\t"),
        ('\u{b}', "\\v"),
    ];
    let sign = |sign: char| match escaped.iter().find(|(known, _)| *known == sign) {
        Some((_, escape)) => (*escape).to_owned(),
        None => sign.to_string(),
    };
    text.chars().map(sign).collect()
}

impl Store for Server {
    /// The file to upload is made once, and outside of what is measured: see `prepare`.
    fn write(&mut self, content: &mut Content) -> Result<()> {
        self.prepare(content)?;
        let mut curl = self.curl();
        curl.arg("--upload-file")
            .arg(&self.upload)
            .arg(self.object());
        run(&mut curl).map(drop)
    }

    fn prepare(&mut self, content: &mut Content) -> Result<()> {
        if self.uploaded == content.bytes() {
            return Ok(());
        }
        let doing = || format!("writing {}", self.upload.display());
        let mut file = File::create(&self.upload).doing(doing)?;
        self.uploaded = content.bytes();
        while let Some(block) = content.next() {
            file.write_all(block).doing(doing)?;
        }
        Ok(())
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        receive(self.curl().arg(self.object()), sink)
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.served.data.join("buckets"))
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        files_below(&self.served.data).unwrap_or_default()
    }

    fn settings(&self) -> Vec<String> {
        vec![self.setting.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_reads_a_name_as_it_is() {
        assert_eq!(quoted("/srv/a b/é"), "/srv/a b/é");
        assert_eq!(quoted("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
