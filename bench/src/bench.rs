//! What all benchmarks have in common: the client, the disk, and how a run is measured.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::contenders::Endpoint;
use crate::error::{Doing, Result};
use crate::load_client::connection::Request;
use crate::load_client::load::{Client, Connections};
use crate::machine::disk;
use crate::machine::pinning;
use crate::report::figures::{Quantity, Sample};
use coffer_measure::statistics;

/// How thoroughly to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Interleaved rounds.
    pub rounds: usize,
    /// Rounds of what writes more than a disk takes in a few seconds.
    pub heavy_rounds: usize,
    /// Fewer works, shorter ones.
    pub quick: bool,
}

impl Effort {
    /// The first, or of a quick run the second.
    pub fn of<T>(&self, (usual, quick): (T, T)) -> T {
        if self.quick { quick } else { usual }
    }
}

/// One run of the program.
pub struct Bench {
    /// How thoroughly.
    pub effort: Effort,
    /// Whether server and client have a core each.
    pub pinned: bool,
    /// The program to measure.
    pub coffer: PathBuf,
    /// Another build of it to compare with.
    pub other: Option<PathBuf>,
    /// The nginx to compare with, if it is not the distribution's.
    pub nginx: Option<PathBuf>,
    /// Names of contenders to leave all others out; empty: all.
    pub only: Vec<String>,
    /// Parts of titles to leave all other rows of `builds` and `features` out; empty: all.
    pub rows_with: Vec<String>,
    /// On this thread's core.
    pub client: Client,
    /// On a real disk; removed at the end.
    folder: TempDir,
}

impl Bench {
    /// Works in a new folder below `parent`.
    pub fn new(
        effort: Effort,
        pinned: bool,
        coffer: PathBuf,
        only: Vec<String>,
        parent: &Path,
    ) -> Result<Self> {
        let creating = || format!("creating a folder in {}", parent.display());
        fs::create_dir_all(parent).doing(creating)?;
        let folder = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(parent)
            .doing(creating)?;
        Ok(Self {
            effort,
            pinned,
            coffer,
            other: None,
            nginx: None,
            only,
            rows_with: Vec::new(),
            client: Client::new()?,
            folder,
        })
    }

    /// A new folder for one server or database.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).doing(|| format!("creating {}", path.display()))?;
        Ok(path)
    }

    /// Makes the disk quiet, and the page cache ready for what a run will write.
    pub fn prepare_disk(&self, bytes: u64) -> Result<()> {
        disk::settle();
        let path = self.folder.path().join("warm-up");
        pinning::on_server_core(self.pinned, || disk::warm_page_cache(&path, bytes))
    }

    /// Whether a contender takes part.
    pub fn wants(&self, contender: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == contender)
    }

    /// Whether a row of that title is measured.
    pub fn wants_row(&self, title: &str) -> bool {
        let mut parts = self.rows_with.iter();
        self.rows_with.is_empty() || parts.any(|part| title.contains(part.as_str()))
    }

    /// Sends the requests over so many connections, which stand before the clock starts.
    pub fn load(
        &self,
        endpoint: &Endpoint,
        connections: usize,
        requests: Vec<Request>,
    ) -> Result<Sample> {
        let mut connections: Connections = endpoint.connect(&self.client, connections)?;
        let count = requests.len() as f64;
        let cpu_before = endpoint.process.cpu_seconds()?;
        let mut outcome = self.client.run(&mut connections, requests)?;
        let cpu_seconds = endpoint.process.cpu_seconds()? - cpu_before;
        let seconds = outcome.elapsed.as_secs_f64();
        let bytes = outcome.body_bytes as f64;
        let mut milliseconds =
            |percent| statistics::percentile(&mut outcome.latencies_ns, percent) as f64 / 1e6;
        let mut sample = Sample::from([
            (Quantity::PerSecond, count / seconds),
            (
                Quantity::ServerCpuMicrosecondsPerRequest,
                cpu_seconds * 1e6 / count,
            ),
            (Quantity::P50Milliseconds, milliseconds(50)),
            (Quantity::P99Milliseconds, milliseconds(99)),
            (
                Quantity::ClientBusyPercent,
                100.0 * outcome.client_cpu_seconds / seconds,
            ),
        ]);
        // Answers whose length is not known before, such as lists, are not counted.
        if bytes > 0.0 {
            sample.insert(
                Quantity::ServerCpuSecondsPerGigabyte,
                cpu_seconds / (bytes / 1e9),
            );
            sample.insert(Quantity::MegabytesPerSecond, bytes / 1e6 / seconds);
        }
        Ok(sample)
    }
}
