//! The local socket, `DATA/admin.sock`: for the owner of the data folder, without a password.
//!
//! The folder's mode, the socket's mode and the peer's user id each keep others out.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use coffer_client::local_socket;
use coffer_durable::check_own_folder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::error::AdminError;
use crate::http::caller::Peer;
use crate::limits::{ACCEPT_RETRY, SOCKET_CONNECTIONS};

/// The local socket, listening. Its file goes when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl LocalSocket {
    /// Listens on the socket of a data folder that this process holds. One that a killed server
    /// left there is replaced.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn bind(data: &Path) -> Result<Self, AdminError> {
        let path = local_socket::path(data);
        let bind = || -> io::Result<UnixListener> {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let (_folder, short) = local_socket::addressable(&path)?;
            let listener = UnixListener::bind(short)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        match bind() {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(AdminError::Socket { path, source }),
        }
    }

    /// Serves until it is dropped, each connection with what `router_for` its peer gives.
    pub async fn serve(self, router_for: impl Fn(Peer) -> Router) {
        let slots = Arc::new(Semaphore::new(SOCKET_CONNECTIONS));
        loop {
            let slot = slots
                .clone()
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let Some(uid) = owner(&stream) else {
                        tracing::warn!("another user's connection to admin.sock was refused");
                        continue;
                    };
                    let service = TowerToHyperService::new(router_for(Peer::Local { uid }));
                    tokio::spawn(async move {
                        let _slot = slot;
                        // An error is the peer's going away: nothing to be done about it.
                        let _ = hyper::server::conn::http1::Builder::new()
                            .timer(TokioTimer::new())
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "admin.sock could not accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // Not that of a server on another folder, which has the name now.
        let _ = check_own_folder(&self.path).and_then(|()| fs::remove_file(&self.path));
    }
}

/// The peer's user id, if it may do what the owner of the folder may: the server's or root's.
fn owner(stream: &UnixStream) -> Option<u32> {
    let server = rustix::process::geteuid().as_raw();
    let uid = stream.peer_cred().ok()?.uid();
    (uid == server || uid == 0).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn ask(data: &Path) -> io::Result<String> {
        let mut stream = local_socket::connect(data).await?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    fn router(_: Peer) -> Router {
        Router::new().route("/", get(|| async { "well" }))
    }

    #[tokio::test]
    async fn owner_is_served_and_the_file_is_private_and_goes() {
        let data = tempfile::tempdir().unwrap();
        let socket = LocalSocket::bind(data.path()).unwrap();
        let path = local_socket::path(data.path());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let server = tokio::spawn(socket.serve(router));
        assert!(ask(data.path()).await.unwrap().ends_with("\r\n\r\nwell"));
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        assert!(!path.exists());
        assert_eq!(
            ask(data.path()).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[tokio::test]
    async fn a_socket_that_was_left_is_replaced() {
        let data = tempfile::tempdir().unwrap();
        let left = std::os::unix::net::UnixListener::bind(local_socket::path(data.path())).unwrap();
        drop(left);
        assert_eq!(
            ask(data.path()).await.unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        let socket = LocalSocket::bind(data.path()).unwrap();
        tokio::spawn(socket.serve(router));
        assert!(ask(data.path()).await.unwrap().contains("200 OK"));
    }

    #[tokio::test]
    async fn deep_folders_work() {
        let data = tempfile::tempdir().unwrap();
        let deep = data.path().join("d".repeat(150));
        fs::create_dir(&deep).unwrap();
        let socket = LocalSocket::bind(&deep).unwrap();
        tokio::spawn(socket.serve(router));
        assert!(ask(&deep).await.unwrap().contains("200 OK"));
    }
}
