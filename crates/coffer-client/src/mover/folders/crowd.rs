//! Many things at once, and what became of them. One that fails is told, and the others go on; what
//! would fail all of them ends them.

use std::future::Future;
use std::mem;
use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use crate::limits::OF_ALL_WAIT;
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::folders::counts::Counts;
use crate::mover::location::Location;

/// Works on many things at once, and counts.
pub(super) struct Crowd {
    mover: Arc<Mover>,
    tasks: JoinSet<(String, Result<u64, MoverError>)>,
    pub(super) counts: Counts,
    /// Whether all of it goes to one bucket.
    has_one_bucket: bool,
    /// Whether this command has moved any of it.
    has_moved: bool,
    /// Whether it was asked if names are to blame for refused signatures.
    has_doubted: bool,
    /// What would fail all of it, and what met that.
    of_all: Vec<(String, MoverError)>,
}

impl Crowd {
    pub(super) fn new(mover: &Arc<Mover>) -> Self {
        Self {
            mover: Arc::clone(mover),
            tasks: JoinSet::new(),
            counts: Counts::default(),
            has_one_bucket: false,
            has_moved: false,
            has_doubted: false,
            of_all: Vec::new(),
        }
    }

    /// Of what goes to one bucket.
    pub(super) fn of_one_bucket(mover: &Arc<Mover>) -> Self {
        Self {
            has_one_bucket: true,
            ..Self::new(mover)
        }
    }

    /// Begins something, when there is room for it. It gives how many bytes it moved. False when
    /// all would fail: then it is not begun, nor is any other to be.
    pub(super) async fn add(
        &mut self,
        what: String,
        work: impl Future<Output = Result<u64, MoverError>> + Send + 'static,
    ) -> bool {
        while self.tasks.len() >= self.mover.options.jobs {
            self.next().await;
        }
        self.settle().await;
        if !self.of_all.is_empty() {
            return false;
        }
        self.tasks.spawn(async move { (what, work.await) });
        true
    }

    /// Where something failed as all would, waits for what was begun together with it: that may go
    /// well, and then the others go on. It is not waited for long, for it may be asked for again.
    async fn settle(&mut self) {
        let settling = async {
            while !self.of_all.is_empty() && !self.tasks.is_empty() {
                self.next().await;
            }
        };
        if timeout(OF_ALL_WAIT, settling).await.is_err() {
            self.tasks.shutdown().await;
        }
        self.doubt_names().await;
    }

    /// Where signatures were refused before any was taken, asks once whether the access key is to
    /// blame, or the names, which something on the way writes in another way.
    async fn doubt_names(&mut self) {
        let is_of_signature = |(_, error): &(String, MoverError)| error.is_of_signature();
        if self.has_doubted || !self.of_all.iter().any(is_of_signature) {
            return;
        }
        self.has_doubted = true;
        if self.mover.client.is_accepted().await {
            self.tell_of_others();
        }
    }

    /// Counts what a command before this one has moved.
    pub(super) async fn was_moved(&mut self, bytes: u64) {
        self.counts.done += 1;
        self.counts.bytes += bytes;
        // There may be many, and nothing else that is waited for.
        yield_now().await;
    }

    async fn next(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok((_, Ok(bytes)))) => {
                self.has_moved = true;
                self.counts.done += 1;
                self.counts.bytes += bytes;
                self.tell_of_others();
            }
            Some(Ok((what, Err(error)))) if self.is_of_all(&error) => {
                self.of_all.push((what, error));
            }
            Some(Ok((what, Err(error)))) => self.failed(what, &error),
            Some(Err(_)) => self.failed("a file".to_owned(), &MoverError::Lost),
            None => {}
        }
    }

    fn is_of_all(&self, error: &MoverError) -> bool {
        self.mover.is_of_service(error, self.has_moved)
            || (self.has_one_bucket && error.is_of_bucket())
    }

    /// Tells of what was not of all, as is known when something goes well.
    fn tell_of_others(&mut self) {
        for (what, error) in mem::take(&mut self.of_all) {
            if self.is_of_all(&error) {
                self.of_all.push((what, error));
            } else {
                self.failed(what, &error);
            }
        }
    }

    pub(super) fn failed(&mut self, what: String, error: &MoverError) {
        self.counts.include(self.mover.failed(what, error));
    }

    /// Waits for all that was begun.
    ///
    /// # Errors
    /// What would fail all of it.
    pub(super) async fn all(mut self) -> Result<Counts, MoverError> {
        while !self.tasks.is_empty() {
            self.settle().await;
            self.next().await;
        }
        self.doubt_names().await;
        match self.of_all.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.counts),
        }
    }

    /// The same with what was listed below a prefix: one that no name has was mistyped. A bucket
    /// may be empty.
    pub(super) async fn all_below(
        self,
        place: &Location,
        has_any: bool,
    ) -> Result<Counts, MoverError> {
        if !has_any && !place.key.is_empty() {
            let prefix = place.key.clone();
            return Err(MoverError::NoneBegins { prefix });
        }
        self.all().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::s3::S3Error;

    async fn refused(code: &str) -> Result<u64, MoverError> {
        Err(MoverError::S3(S3Error::Refused {
            status: 403,
            code: code.to_owned(),
            message: String::new(),
            advice: String::new(),
            retry_after: None,
            outcome: None,
        }))
    }

    async fn moved_late() -> Result<u64, MoverError> {
        sleep(Duration::from_millis(50)).await;
        Ok(1)
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_fail_all_ends_them() {
        for code in [
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "NoSuchBucket",
        ] {
            let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(2));
            let mut begun = 0;
            while begun < 10 && crowd.add("a".to_owned(), refused(code)).await {
                begun += 1;
            }
            assert_eq!(begun, 2, "{code}");
            let error = crowd.all().await.unwrap_err();
            assert_eq!(error.code(), code);
        }
        // What is asked for again and again is not waited for.
        let mut crowd = Crowd::new(&Mover::of_no_server(2));
        let hour = async {
            sleep(Duration::from_secs(3600)).await;
            Ok(1)
        };
        assert!(crowd.add("slow".to_owned(), hour).await);
        crowd
            .add("a".to_owned(), refused("InvalidAccessKeyId"))
            .await;
        assert!(crowd.all().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_something_else_did_not_meet_is_told_of_one_alone() {
        let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(2));
        assert!(
            crowd
                .add("odd".to_owned(), refused("SignatureDoesNotMatch"))
                .await
        );
        for _ in 0..3 {
            assert!(crowd.add("late".to_owned(), moved_late()).await);
        }
        let counts = crowd.all().await.unwrap();
        assert_eq!((counts.failed, counts.done), (1, 3));
        // Of several buckets one may not be there.
        let mut crowd = Crowd::new(&Mover::of_no_server(2));
        for _ in 0..3 {
            assert!(crowd.add("a".to_owned(), refused("NoSuchBucket")).await);
        }
        assert_eq!(crowd.all().await.unwrap().failed, 3);
    }
}
