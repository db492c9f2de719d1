//! Moving in: buckets of another S3 service, or folders, to a service of coffer's; again and again
//! until the day of the switch.
//!
//! What it rests on:
//! - Names of source and target are listed in step, in the order of their bytes, and each name's
//!   versions are moved oldest first, one behind the other; many names go at once.
//! - The [`ledger`] says which version at the target came of which at the source, and what their
//!   bytes' checksum was. It is an aid, and believed only where the target still has that version:
//!   without it, what is there is compared by checksums and, where the two services tell none of
//!   one kind, by reading the source once more. Nothing goes twice.
//! - What another than this migration stored at the target is neither replaced nor deleted, unless
//!   that was asked for.
//! - What can't come is named, and the rest goes on.

mod error;

mod policy;

mod report;

mod attributes;

mod ledger;

mod names;

mod origin;

mod body;

mod place;

mod settings;

mod compare;

mod late;

mod transfer;

mod plan;

mod name;

mod bucket;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::limits::{MIGRATE_SMALL_BYTES, PART_BYTES, REST_PAUSE, REST_WAIT};
use crate::mover::{Event, Failure, Watch};
use crate::s3::Client;

pub use self::error::MigrateError;
pub use self::origin::{Origin, SourceUrl};
pub use self::report::{BucketReport, Missing, Summary};
pub use self::settings::SETTINGS;

use self::report::Report;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What is new or changed is moved.
    Move,
    /// It is told what would be moved.
    Plan,
    /// Both sides are compared; nothing is moved.
    Check,
}

/// Where a bucket goes, if not to one of its name.
#[derive(Debug, Clone)]
pub struct Target {
    /// The bucket.
    pub bucket: String,
    /// What its names get before them.
    pub prefix: String,
}

/// How a migration goes.
#[derive(Debug, Clone)]
pub struct MigrationOptions {
    /// What is done.
    pub mode: Mode,
    /// Whether what is gone at the source is deleted at the target.
    pub delete: bool,
    /// Whether that is also done where the source has nothing at all.
    pub delete_all: bool,
    /// Whether what others stored at the target may be replaced.
    pub overwrite: bool,
    /// Objects, and pieces of them, that are under way at once.
    pub jobs: usize,
    /// Where ledgers lie.
    pub state: PathBuf,
    /// The only buckets that are meant; all, if none is named.
    pub buckets: Vec<String>,
    /// Where the one bucket of the source goes.
    pub target: Option<Target>,
    /// The level that buckets are made in.
    pub level: Option<String>,
    /// The settings that stay behind.
    pub without: Vec<String>,
    /// Whether tags and locks of what has arrived are compared, and brought where they changed.
    pub tags_and_locks: bool,
    /// Whether symbolic links stand for what they point to.
    pub follow_links: bool,
    /// A file for a line of JSON about each version.
    pub report: Option<PathBuf>,
}

/// A migration.
pub struct Migration {
    origin: Origin,
    target: Arc<Client>,
    options: MigrationOptions,
    permits: Arc<Semaphore>,
    watch: Arc<dyn Watch>,
    report: Report,
    /// Whether something was met that holds for all that is left.
    is_over: AtomicBool,
}

impl Migration {
    /// From there to here.
    ///
    /// # Errors
    /// When the report can't be written, or would lie among what is to come.
    pub fn new(
        origin: Origin,
        target: Arc<Client>,
        options: MigrationOptions,
        watch: Arc<dyn Watch>,
    ) -> Result<Arc<Self>, MigrateError> {
        if let Some(path) = &options.report
            && origin.has_below(path)
        {
            return Err(MigrateError::Report {
                path: path.clone(),
                problem: "lies in the folder that is to come, and would change while it is read: \
                          write the report elsewhere",
            });
        }
        Ok(Arc::new(Self {
            permits: Arc::new(Semaphore::new(options.jobs)),
            report: Report::new(options.report.as_deref())?,
            origin,
            target,
            options,
            watch,
            is_over: AtomicBool::new(false),
        }))
    }

    /// Does it, bucket by bucket, as long as nothing is met that holds for all that is left.
    ///
    /// # Errors
    /// When the source's buckets can't be listed, or the report not be written; all else is told
    /// and stands in the summary.
    pub async fn run(self: &Arc<Self>) -> Result<Summary, MigrateError> {
        let found = self.origin.buckets(&self.options).await;
        let found = found.inspect_err(|_| self.report.discard())?;
        for path in found.strays {
            let what = path.display().to_string();
            self.missing(&what, &MigrateError::Stray { path });
        }
        for from in found.buckets {
            let (to, prefix) = match &self.options.target {
                Some(target) => (target.bucket.clone(), target.prefix.clone()),
                None => (from.clone(), String::new()),
            };
            self.bucket(&from, &to, &prefix).await;
            if self.is_over.load(Relaxed) {
                break;
            }
        }
        self.report.finish()
    }

    /// How many of the permits a piece of so many bytes takes: what is held in memory has an end.
    fn permits_for(&self, bytes: u64) -> u32 {
        let wanted = match bytes {
            0..=MIGRATE_SMALL_BYTES => 1,
            _ => 2 * bytes.div_ceil(PART_BYTES),
        };
        wanted.min(self.options.jobs as u64) as u32
    }

    /// Waits, for a while, until none of what was begun works any more.
    pub async fn at_rest(self: &Arc<Self>) {
        let resting = async {
            while Arc::strong_count(self) > 1 {
                sleep(REST_PAUSE).await;
            }
        };
        let _ = timeout(REST_WAIT, resting).await;
    }

    /// Tells of something that did not come.
    fn missing(&self, what: &str, error: &MigrateError) {
        let failure = Failure {
            what: what.to_owned(),
            code: error.code().to_owned(),
            message: error.to_string(),
        };
        self.watch.event(&Event::Failed(&failure));
        self.report.missing(failure);
    }

    fn tell(&self, event: &Event<'_>) {
        self.watch.event(event);
    }
}
