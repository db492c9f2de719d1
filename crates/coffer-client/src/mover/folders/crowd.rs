//! Many things at once, and what became of them. One that fails is told, and the others go on; what
//! would fail all of them ends them, and is told once. Where that is in doubt, the service is
//! asked.

use std::collections::HashSet;
use std::future::Future;
use std::mem;
use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use crate::limits::{OF_ALL_WAIT, ROOMLESS};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::folders::counts::Counts;
use crate::mover::location::Location;

/// Works on many things at once, and counts.
pub(super) struct Crowd {
    mover: Arc<Mover>,
    tasks: JoinSet<(String, Result<u64, MoverError>)>,
    under_way: HashSet<String>,
    pub(super) counts: Counts,
    /// What is listed where it is in doubt whether a failure is of all.
    place: Location,
    /// Whether all of it goes to one bucket.
    has_one_bucket: bool,
    /// Whether this command has moved any of it.
    has_moved: bool,
    /// Whether it was asked if names are to blame for refused signatures.
    has_doubted: bool,
    /// What would fail all of it, and what met that.
    of_all: Vec<(String, MoverError)>,
    /// Whether the service has shown that it is of all, whatever goes well beside it.
    is_shown: bool,
    /// What found no room at the server, since the last one that did.
    roomless: Vec<(String, MoverError)>,
}

impl Crowd {
    /// Of what comes from this place, for the most part.
    pub(super) fn new(mover: &Arc<Mover>, place: &Location) -> Self {
        Self {
            mover: Arc::clone(mover),
            tasks: JoinSet::new(),
            under_way: HashSet::new(),
            counts: Counts::default(),
            place: place.clone(),
            has_one_bucket: false,
            has_moved: false,
            has_doubted: false,
            of_all: Vec::new(),
            is_shown: false,
            roomless: Vec::new(),
        }
    }

    /// Of what goes to one bucket.
    pub(super) fn of_one_bucket(mover: &Arc<Mover>, place: &Location) -> Self {
        Self {
            has_one_bucket: true,
            ..Self::new(mover, place)
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
        self.under_way.insert(what.clone());
        self.tasks.spawn(async move { (what, work.await) });
        true
    }

    /// Whether something of this name was begun, and is not done.
    pub(super) fn is_under_way(&self, what: &str) -> bool {
        self.under_way.contains(what)
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
        let done = self.tasks.join_next().await;
        if let Some(Ok((what, _))) = &done {
            self.under_way.remove(what);
        }
        match done {
            Some(Ok((_, Ok(bytes)))) => {
                self.has_moved = true;
                self.counts.done += 1;
                self.counts.bytes += bytes;
                self.tell_of_others();
                self.tell_of_roomless();
            }
            Some(Ok((what, Err(error)))) => self.met(what, error).await,
            Some(Err(_)) => self.failed("a file".to_owned(), &MoverError::Lost),
            None => {}
        }
    }

    /// Finds out whether a failure is of all. It is told where it is not.
    async fn met(&mut self, what: String, error: MoverError) {
        let is_known = !self.of_all.is_empty();
        if self.is_of_all(&error) || (is_known && error.may_be_of_service()) {
            self.of_all.push((what, error));
        } else if error.is_of_room() {
            self.roomless.push((what, error));
            if self.roomless.len() >= ROOMLESS {
                self.is_shown = true;
                self.of_all.append(&mut self.roomless);
            }
        } else if error.may_be_of_service()
            && let Some(shown) = self.shown().await
        {
            self.is_shown = true;
            self.of_all.push((what, shown));
        } else {
            self.failed(what, &error);
        }
    }

    /// What is of all, if the service, asked for what it would give at any time, says so.
    async fn shown(&self) -> Option<MoverError> {
        let Location { bucket, key } = &self.place;
        let listing = self.mover.client.list_objects(bucket, key, Some("/"), None);
        let error = MoverError::from(listing.await.err()?);
        (self.is_of_all(&error) || error.may_be_of_service()).then_some(error)
    }

    fn is_of_all(&self, error: &MoverError) -> bool {
        self.mover.is_of_service(error, self.has_moved)
            || (self.has_one_bucket && error.is_of_bucket())
    }

    /// Tells of what was not of all, as is known when something goes well.
    fn tell_of_others(&mut self) {
        if self.is_shown {
            return;
        }
        for (what, error) in mem::take(&mut self.of_all) {
            if self.is_of_all(&error) {
                self.of_all.push((what, error));
            } else {
                self.failed(what, &error);
            }
        }
    }

    fn tell_of_roomless(&mut self) {
        for (what, error) in mem::take(&mut self.roomless) {
            self.failed(what, &error);
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
        let failed = self.of_all.len() + self.roomless.len();
        if let Some((_, error)) = self.of_all.drain(..).next() {
            return Err(MoverError::Ended {
                error: Box::new(error),
                moved: self.counts.done,
                failed: self.counts.failed + failed as u64,
            });
        }
        self.tell_of_roomless();
        Ok(self.counts)
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

    fn place() -> Location {
        "s3://b/".parse().unwrap()
    }

    async fn refused(code: &str) -> Result<u64, MoverError> {
        let status = if code == "StorageFull" { 507 } else { 403 };
        Err(MoverError::S3(S3Error::refused(status, code)))
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
            let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(2), &place());
            let mut begun = 0;
            while begun < 10 && crowd.add("a".to_owned(), refused(code)).await {
                begun += 1;
            }
            assert_eq!(begun, 2, "{code}");
            let error = crowd.all().await.unwrap_err();
            assert_eq!(error.code(), code);
        }
        // What is asked for again and again is not waited for.
        let mut crowd = Crowd::new(&Mover::of_no_server(2), &place());
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
        let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(2), &place());
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
        let mut crowd = Crowd::new(&Mover::of_no_server(2), &place());
        for _ in 0..3 {
            assert!(crowd.add("a".to_owned(), refused("NoSuchBucket")).await);
        }
        assert_eq!(crowd.all().await.unwrap().failed, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_room_ends_them_where_nothing_does() {
        let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(2), &place());
        let mut begun = 0;
        while begun < 100 && crowd.add("a".to_owned(), refused("StorageFull")).await {
            begun += 1;
        }
        assert!((ROOMLESS..ROOMLESS + 2).contains(&begun), "{begun}");
        let error = crowd.all().await.unwrap_err();
        assert_eq!(error.code(), "StorageFull");
        assert!(error.to_string().contains("0 were moved"), "{error}");
        // Something smaller may find room.
        let mut crowd = Crowd::of_one_bucket(&Mover::of_no_server(1), &place());
        for _ in 0..ROOMLESS {
            assert!(crowd.add("a".to_owned(), refused("StorageFull")).await);
            assert!(crowd.add("late".to_owned(), moved_late()).await);
        }
        let counts = crowd.all().await.unwrap();
        assert_eq!((counts.failed, counts.done), (16, 16));
    }
}
