//! Files and folders to objects and back: cut into pieces that go beside each other, checked from
//! end to end, and taken up again where they broke off.
//!
//! What it rests on:
//! - A target has its final name only when all of it came, was compared with the object's checksum
//!   and is durable. Until then it is `.NAME.coffer-part`, with a journal beside it.
//! - An upload in parts has a journal as well, in the user's state folder. Of what a journal says
//!   nothing is believed: each piece is read and summed again before it counts.
//! - A file that goes as one piece has one, too. Both stay until what is stored is known to be
//!   whole: what a command stored that was ended meanwhile is not stored again by the next.
//! - A folder has notes of what was moved, until all of it is. They count where both sides still
//!   are what they were then.
//! - A source that changes while it is read is an error, and an object that changes, too: each
//!   request for a range names the content that was first seen.
//! - Dropping a future stops the work at once, and leaves what can be taken up again.

mod error;

mod location;

mod events;

mod plan;

mod journal;

mod times;

mod source;
mod target;

mod together;

mod sealed_way;

mod fetch;

mod get;
mod put;

mod folders;

mod copy;
mod remove;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use http::Method;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::limits::{REST_PAUSE, REST_WAIT};
use crate::s3::{Client, ObjectHead, ObjectName, Page, Paging, S3Error, is_ended};

pub use self::error::MoverError;
pub use self::events::{Event, Failure, Moved, Watch};
pub use self::folders::Counts;
pub use self::get::target_path;
pub use self::location::Location;
pub use self::sealed_way::Transfer;

pub(crate) use self::journal::make_own;
pub(crate) use self::plan::{part_bytes, pieces};
pub(crate) use self::put::{begin_upload, is_as_sent};
use self::sealed_way::SealedWay;
pub(crate) use self::source::{Seen, Source};
pub(crate) use self::target::{is_open_file, is_trusted, is_unfinished};
pub(crate) use self::times::{MTIME_HEADER, mtime_text};
pub(crate) use self::together::Together;

/// How files are moved.
#[derive(Debug, Clone)]
pub struct MoverOptions {
    /// Pieces that are under way at once, over all files.
    pub jobs: usize,
    /// Whether sealed transfer is used.
    pub transfer: Transfer,
    /// Where journals of uploads lie; without it they start anew after a break.
    pub state: Option<PathBuf>,
    /// Headers that stored objects get.
    pub headers: Vec<(String, String)>,
    /// Whether symbolic links below a folder that is stored stand for what they point to.
    pub follow_links: bool,
    /// Whether to wait until a server that opens later what comes sealed has done so.
    pub waits_for_verdict: bool,
}

/// Moves files between this machine and a service.
pub struct Mover {
    client: Arc<Client>,
    options: MoverOptions,
    permits: Arc<Semaphore>,
    sealed: SealedWay,
    watch: Arc<dyn Watch>,
    /// Uploads under way that nothing would go on with: of streams, and of copies.
    uploads: Mutex<Vec<(ObjectName, String)>>,
    /// Notes of folders of which all was moved.
    notes: Mutex<Vec<Arc<journal::Notes>>>,
    /// What is told once.
    told: Told,
}

/// What was told already.
#[derive(Default)]
struct Told {
    /// That it is waited for a verdict.
    waiting: AtomicBool,
    /// That the server tells nothing to compare an object with.
    unproven: AtomicBool,
    /// That what is stored of uploads can't be noted.
    unnoted: AtomicBool,
    /// That another process notes what is moved of the same folder.
    busy: AtomicBool,
    /// That no more can be noted of a folder.
    full: AtomicBool,
    /// That a ticket is waited for.
    ticketless: AtomicBool,
}

impl Mover {
    /// Moves to and from this service.
    pub fn new(client: Arc<Client>, options: MoverOptions, watch: Arc<dyn Watch>) -> Arc<Self> {
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(options.jobs)),
            sealed: SealedWay::new(options.transfer, client.tls()),
            client,
            options,
            watch,
            uploads: Mutex::default(),
            notes: Mutex::default(),
            told: Told::default(),
        })
    }

    /// Ends the uploads that were broken off and that nothing goes on with.
    pub async fn abort_uploads(self: &Arc<Self>) {
        let mut ending = JoinSet::new();
        for (name, upload_id) in std::mem::take(&mut *self.uploads.lock()) {
            let mover = Arc::clone(self);
            ending.spawn(async move { mover.abort_upload(&name, &upload_id).await });
        }
        ending.join_all().await;
    }

    /// Ends an upload, or tells that it may have been left. A server that stands still is not
    /// waited for long.
    async fn abort_upload(&self, name: &ObjectName, upload_id: &str) {
        let ending = self.client.abort_upload(name, upload_id);
        let answer = timeout(REST_WAIT, ending).await;
        if answer.is_ok_and(|answer| is_ended(&answer)) {
            return;
        }
        let ObjectName { bucket, key, .. } = name;
        self.tell(&Event::Note(&format!(
            "an upload of s3://{bucket}/{key} could not be ended: what it has of it may stay at \
             the server; end it with `aws s3api abort-multipart-upload --bucket {bucket} --key \
             {key} --upload-id {upload_id}`, or at a coffer with \
             `coffer bucket end-uploads {bucket}`"
        )));
    }

    /// Does the work on an upload that nothing would go on with, and ends the upload if it fails.
    async fn or_aborted<T>(
        &self,
        name: &ObjectName,
        upload_id: &str,
        work: impl Future<Output = Result<T, MoverError>>,
    ) -> Result<T, MoverError> {
        self.uploads
            .lock()
            .push((name.clone(), upload_id.to_owned()));
        let done = work.await;
        if done.is_err() {
            self.abort_upload(name, upload_id).await;
        }
        self.uploads.lock().retain(|(_, id)| id != upload_id);
        done
    }

    /// Waits, for a while, until none of what was begun works any more: work that was told to stop
    /// ends at its next pause.
    pub async fn at_rest(self: &Arc<Self>) {
        // Each piece of work holds the mover.
        alone(self).await;
    }

    /// What the server says of an object.
    async fn head(&self, name: &ObjectName) -> Result<ObjectHead, MoverError> {
        match self.client.head_object(name).await {
            Err(error) if error.is_absent() => Err(self.absent(name).await),
            Err(
                error @ S3Error::Refused {
                    status: 400 | 401 | 403,
                    ..
                },
            ) => Err(self.reason(name, error).await.into()),
            answered => Ok(answered?),
        }
    }

    /// What is missing, which is found out here: to the question for a head, a server says only
    /// that there is no such thing.
    async fn absent(&self, name: &ObjectName) -> MoverError {
        let bucket = self.client.head_bucket(&name.bucket).await;
        let has_bucket = !bucket.is_err_and(|error| error.is_absent());
        MoverError::Absent {
            name: Box::new(name.clone()),
            has_bucket,
        }
    }

    /// Why a server refused to give a head: the answer to a request for a byte has a body that says
    /// so.
    async fn reason(&self, name: &ObjectName, bare: S3Error) -> S3Error {
        let request = name.request(Method::GET).header("range", "bytes=0-0");
        match self.client.send(&request).await {
            // That it speaks TLS is said in the body as well.
            Err(
                told @ (S3Error::Refused {
                    status: 400 | 401 | 403,
                    ..
                }
                | S3Error::Client(_)
                | S3Error::Unreadable { .. }),
            ) => told,
            _ => bare,
        }
    }

    /// A part of the list of objects whose names begin with that of a place.
    async fn page(
        &self,
        place: &Location,
        after: Option<&str>,
        paging: &mut Paging,
    ) -> Result<Page, MoverError> {
        let Location { bucket, key } = place;
        let page = self.client.list_objects(bucket, key, None, after).await?;
        paging.follow(&self.client, page.names(), page.next.as_ref())?;
        Ok(page)
    }

    /// Forgets what was noted of folders, when all of a command is done: the next moves them anew.
    /// Until then, of several that one command names, those that are done are known.
    pub fn forget_notes(&self) {
        for notes in std::mem::take(&mut *self.notes.lock()) {
            notes.end(true);
        }
    }

    /// Whether what is interrupted can be gone on with: not where there is no place for notes.
    pub fn goes_on(&self) -> bool {
        self.options.state.is_some() && !self.told.unnoted.load(Relaxed)
    }

    /// Tells that one of many was not moved, and counts it.
    pub fn failed(&self, what: String, error: &MoverError) -> Counts {
        self.tell(&Event::Failed(&Failure {
            what,
            code: error.code().to_owned(),
            message: error.to_string(),
        }));
        Counts {
            failed: 1,
            ..Counts::default()
        }
    }

    /// Whether an error is of the service as a whole, and would meet all that it is asked.
    /// `has_moved` is whether this command has moved anything.
    pub fn is_of_service(&self, error: &MoverError, has_moved: bool) -> bool {
        error.has_ended_many()
            || error.is_of_service(has_moved, has_moved || self.client.was_accepted())
    }

    /// Whether another process has the notes of a folder that this one moves: what is interrupted
    /// of it begins anew.
    pub fn is_noted_by_another(&self) -> bool {
        self.told.busy.load(Relaxed)
    }

    fn tell(&self, event: &Event<'_>) {
        self.watch.event(event);
    }
}

/// Waits, for a while, until what asks is the only one that holds something.
async fn alone<T>(held: &Arc<T>) {
    let waiting = async {
        while Arc::strong_count(held) > 1 {
            sleep(REST_PAUSE).await;
        }
    };
    let _ = timeout(REST_WAIT, waiting).await;
}

#[cfg(test)]
impl Mover {
    /// With so much at once, for tests that ask no server for anything.
    fn of_no_server(jobs: usize) -> Arc<Self> {
        use crate::profiles::{Credentials, Settings};
        use crate::s3::ClientOptions;

        struct Silent;

        impl Watch for Silent {
            fn event(&self, _: &Event<'_>) {}
        }

        let settings = Settings {
            endpoint: "http://127.0.0.1:1".to_owned(),
            credentials: Credentials {
                access_key_id: "A".to_owned(),
                secret_access_key: "s".to_owned().into(),
                session_token: None,
            },
            region: "r1".to_owned(),
            ca: None,
        };
        let client = Client::new(settings, ClientOptions::default()).unwrap();
        let options = MoverOptions {
            jobs,
            transfer: Transfer::Tls,
            state: None,
            headers: Vec::new(),
            follow_links: false,
            waits_for_verdict: true,
        };
        Self::new(Arc::new(client), options, Arc::new(Silent))
    }
}
