//! Whether a subject's requests may go on: taken away while they are under way when the subject is
//! disabled, expires or is deleted, when its access changes, or when it loses a role.
//!
//! Each of its access keys has a cutoff of its own below the subject's: it is cut with that, or
//! alone when that key is disabled, expires or is deleted.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::connection_cutoff::{ConnectionCutoff, Connections, Holder};
use crate::error::{Result, VaultError};

/// What requests under way hang on. All who hold the same one are cut off together.
#[derive(Debug)]
pub(crate) struct SubjectCutoff {
    cut: CancellationToken,
    /// The connections by which the subject asked, or by which it did with an access key.
    connections: Connections,
    /// Of an access key: its subject's, which notes the same connections and counts them.
    above: Option<Arc<SubjectCutoff>>,
}

impl Default for SubjectCutoff {
    fn default() -> Self {
        Self {
            cut: CancellationToken::new(),
            connections: Connections::new(Holder::Subject),
            above: None,
        }
    }
}

impl SubjectCutoff {
    /// One of an access key, which is cut with its subject's, or alone.
    pub(crate) fn below(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            cut: above.cut.child_token(),
            connections: Connections::new(Holder::AccessKey),
            above: Some(above.clone()),
        })
    }

    /// Notes the connection that the request came by.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] when it has been cut, [`VaultError::SubjectLimit`].
    pub(crate) fn note_caller(&self) -> Result<()> {
        if let Some(subject) = &self.above {
            subject.connections.note()?;
        }
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
        // The tokens below with it; and a subject has noted the connections of all its keys.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutoff::connection_cutoff::Seat;

    #[derive(Debug)]
    struct Busy;

    impl Seat for Busy {
        fn leave_if_idle(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn connections_of_all_keys_count_as_the_subjects() {
        let subject = Arc::new(SubjectCutoff::default());
        let [one, other] = [(); 2].map(|()| SubjectCutoff::below(&subject));
        let lines = [(); 3].map(|()| ConnectionCutoff::counted(2, Arc::new(Busy)));
        for (line, key) in lines.iter().zip([&one, &other]) {
            line.scope(async { key.note_caller() }).await.unwrap();
        }
        let third = lines[2].scope(async { other.note_caller() }).await;
        assert!(third.is_err());
        assert!(lines[0].is_signed_in() && !lines[2].is_signed_in());
    }

    #[tokio::test]
    async fn an_access_key_is_cut_alone_or_with_its_subject() {
        let subject = Arc::new(SubjectCutoff::default());
        let [one, other] = [(); 2].map(|()| SubjectCutoff::below(&subject));
        let lines = [(); 2].map(|()| ConnectionCutoff::default());
        for (line, key) in lines.iter().zip([&one, &other]) {
            line.scope(async { key.note_caller() }).await.unwrap();
        }
        one.cut();
        assert!(one.is_cut() && lines[0].is_cut());
        assert!(!other.is_cut() && !lines[1].is_cut() && !subject.is_cut());
        subject.cut_but(Some(&lines[1]));
        assert!(other.is_cut() && !lines[1].is_cut(), "that one is spared");
        subject.cut();
        assert!(lines[1].is_cut());
        assert!(
            SubjectCutoff::below(&subject).is_cut(),
            "from the beginning"
        );
    }
}
