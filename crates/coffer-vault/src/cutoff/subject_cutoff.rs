//! Whether a subject's requests may go on: taken away while they are under way when its access key
//! is disabled, expires or is deleted, when its access changes, or when it loses a role.

use tokio_util::sync::CancellationToken;

use super::connection_cutoff::{ConnectionCutoff, Connections, Holder};
use crate::error::{Result, VaultError};

/// What requests under way hang on. All who hold the same one are cut off together.
#[derive(Debug)]
pub(crate) struct SubjectCutoff {
    cut: CancellationToken,
    /// The connections by which the subject asked.
    connections: Connections,
}

impl Default for SubjectCutoff {
    fn default() -> Self {
        Self {
            cut: CancellationToken::new(),
            connections: Connections::new(Holder::Subject),
        }
    }
}

impl SubjectCutoff {
    /// Notes the connection that the request came by.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] when it has been cut, [`VaultError::SubjectLimit`].
    pub(crate) fn note_caller(&self) -> Result<()> {
        self.connections.note()?;
        // After the note: a cut in between has met it, or is seen here.
        self.check()
    }

    /// Whether what it stands for may go on.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] when it has been cut.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cut() {
            Err(VaultError::AccessDenied)
        } else {
            Ok(())
        }
    }

    /// Cuts off all requests that hold it, for good.
    pub(crate) fn cut(&self) {
        self.cut_but(None);
    }

    /// The same, but leaves a connection: that of the request that cuts. Nothing else is under way
    /// there, and a subject that takes something from itself gets its answer.
    pub(crate) fn cut_but(&self, spared: Option<&ConnectionCutoff>) {
        self.cut.cancel();
        self.connections.cut_but(spared);
    }

    /// Whether it has been cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Waits until it is.
    pub(crate) async fn cut_off(&self) {
        self.cut.cancelled().await;
    }
}
