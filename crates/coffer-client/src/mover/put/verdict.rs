//! What a server says of an object that it stored as it came sealed, once it has opened it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Done, is_as_sent};
use crate::limits::{VERDICT_BYTES_A_SECOND, VERDICT_PAUSE, VERDICT_PAUSE_FIRST, VERDICT_WAIT};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::s3::{ObjectHead, ObjectName, Stored};
use crate::sealed::{DAMAGED, STORED_HEADER, UNVERIFIED};

impl Mover {
    /// Waits until the server has opened what it stored, and found it whole.
    ///
    /// # Errors
    /// [`MoverError::StoredDamaged`]; [`MoverError::Unverified`] where it does not say, or not in
    /// time.
    pub(super) async fn verdict(&self, name: &ObjectName, done: &Done) -> Result<(), MoverError> {
        let stored = &done.stored;
        let wait = VERDICT_WAIT + Duration::from_secs(done.bytes / VERDICT_BYTES_A_SECOND);
        let end = Instant::now() + wait;
        let asked = version_of(name, stored);
        let mut pause = VERDICT_PAUSE_FIRST;
        loop {
            sleep(pause).await;
            let head = self.client.head_object(&asked).await;
            let head = head.map_err(|error| {
                if error.is_absent() {
                    return unverified("it was deleted before", false);
                }
                unverified(&format!("it can't be asked: {error}"), error.is_passing())
            })?;
            if head.etag.trim_matches('"') != stored.etag.trim_matches('"') {
                return Err(unverified("it was replaced before", false));
            }
            match said_of(&head) {
                None => return is_whole(name, &head, done),
                Some(DAMAGED) => return Err(MoverError::StoredDamaged),
                Some(UNVERIFIED) if Instant::now() >= end => {
                    let seconds = wait.as_secs();
                    return Err(unverified(&format!("it has not after {seconds} s"), true));
                }
                Some(UNVERIFIED) => {}
                Some(_) => {
                    let why = "what it says of it now is neither that it has nor that it has not";
                    return Err(unverified(why, false));
                }
            }
            pause = (pause * 2).min(VERDICT_PAUSE);
            if pause == VERDICT_PAUSE && !self.told.waiting.swap(true, Relaxed) {
                self.tell(&Event::Note(
                    "stored; waiting for the server to open and compare it (--no-wait does not)",
                ));
            }
        }
    }

    /// Whether an object that was just stored waits to be opened, or did not open. Where that can't
    /// be asked for the moment, it may: who waits for the verdict asks again.
    pub(super) async fn is_unverified(&self, name: &ObjectName, stored: &Stored) -> bool {
        let head = self.client.head_object(&version_of(name, stored)).await;
        match head {
            Ok(head) => said_of(&head).is_some(),
            Err(error) => error.is_passing(),
        }
    }
}

/// What was stored, and nothing that was stored after it.
fn version_of(name: &ObjectName, stored: &Stored) -> ObjectName {
    let version_id = stored.version_id.clone().filter(|id| id != "null");
    ObjectName {
        version_id,
        ..name.clone()
    }
}

/// How the head of an answer says that an object is stored, where that is not known to be whole.
fn said_of(head: &ObjectHead) -> Option<&str> {
    let said = head.headers.get(STORED_HEADER)?;
    Some(said.to_str().unwrap_or_default())
}

/// Sees that what is called whole is what was sent.
fn is_whole(name: &ObjectName, head: &ObjectHead, done: &Done) -> Result<(), MoverError> {
    is_as_sent(name, head.checksum.as_ref(), &done.sent)?;
    if head.bytes == done.bytes {
        return Ok(());
    }
    Err(MoverError::StoredOtherwise {
        object: format!("s3://{}/{}", name.bucket, name.key),
        told: format!("{} bytes", head.bytes),
        sent: format!("{} bytes", done.bytes),
    })
}

fn unverified(why: &str, is_open: bool) -> MoverError {
    MoverError::Unverified {
        why: why.to_owned(),
        is_open,
    }
}
