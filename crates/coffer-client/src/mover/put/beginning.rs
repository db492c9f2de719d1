//! Uploads in parts as they are begun: one that is begun, and that no answer told of, would stay at
//! the server without parts.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::BEGIN_WAIT;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::s3::{Client, ObjectName, UploadStart};

impl Mover {
    /// Begins an upload in parts.
    ///
    /// # Errors
    /// As of [`begin_upload`].
    pub(in crate::mover) async fn begin_upload(
        self: &Arc<Self>,
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<UploadStart, MoverError> {
        begin_upload(self, &self.client, name, headers).await
    }
}

/// Begins an upload in parts. If the work that asked for it is told to stop meanwhile, the answer
/// is waited for all the same, for a while, and the upload is ended: by then the owner of the work
/// is held, which its end waits for.
///
/// # Errors
/// What asking for it meets.
pub(crate) async fn begin_upload<O: Send + Sync + 'static>(
    owner: &Arc<O>,
    client: &Arc<Client>,
    name: &ObjectName,
    headers: &[(String, String)],
) -> Result<UploadStart, MoverError> {
    let (mut asked, answer) = oneshot::channel();
    let (owner, client) = (Arc::clone(owner), Arc::clone(client));
    let (name, headers) = (name.clone(), headers.to_vec());
    tokio::spawn(async move {
        let mut beginning = pin!(client.create_upload(&name, &headers));
        let begun = tokio::select! {
            begun = &mut beginning => Some(begun),
            () = asked.closed() => timeout(BEGIN_WAIT, &mut beginning).await.ok(),
        };
        if let Some(begun) = begun
            && let Err(Ok(start)) = asked.send(begun)
        {
            // What can't be ended now, the server ends by its own rules.
            let ending = client.abort_upload(&name, &start.upload_id);
            let _ = timeout(BEGIN_WAIT, ending).await;
        }
        drop(owner);
    });
    Ok(answer.await.map_err(|_| MoverError::Lost)??)
}
