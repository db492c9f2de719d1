//! What ends with the records of a log.

use coffer_replica::{Copy, CopyRecord, ReplicaError, Store};
use coffer_seal::{KeystoreId, SecretKey};
use object_store::memory::InMemory;

use super::*;
use crate::error::{BackupError, CopyError};
use crate::fence::ServingRight;

/// What met another's head, or what nothing is known of.
struct Meets(fn() -> ReplicaError);

impl RecordSource for Meets {
    async fn form(&self) -> Result<Option<Formed>> {
        Err(BackupError::Copy(CopyError::Replica((self.0)())).into())
    }

    fn check_right(&self) -> Result<()> {
        Ok(())
    }
}

/// The lease lasts for some seconds more, in which another may acknowledge already.
#[tokio::test]
async fn a_gateway_whose_log_another_writes_answers_nothing_from_then_on() {
    for (meets, answers) in [
        (Meets(|| ReplicaError::Fenced { number: 7 }), false),
        (Meets(|| ReplicaError::NoAnswer { seconds: 2 }), true),
    ] {
        let store: Store = Arc::new(InMemory::new());
        let record = CopyRecord::of_engine(KeystoreId([1; 16]));
        let copy = Copy::new(store, record.copy, &SecretKey::generate());
        let writer = CopyWriter::begin(copy, &record).await.unwrap();
        let right = ServingRight::default();
        right.extend(ServingRight::now() + Duration::from_secs(60));
        let wait = Duration::from_secs(20);
        let synchronous = Synchronous::new("engine", wait, Some(right.clone()));
        let with = (&Arc::default(), &synchronous, &Arc::new(Progress::new()));
        let recorder = Recorder::new(meets, "engine", with, writer.records());
        let run = recorder.run(CancellationToken::new());
        let ended = timeout(COPY_LOOKS_EVERY * 2, run).await.is_ok();
        assert_eq!((ended, right.holds()), (!answers, answers));
    }
}
