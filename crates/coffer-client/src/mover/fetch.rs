//! A piece of an object, from the server to where it belongs.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::Method;
use parking_lot::Mutex;
use tokio::task::{block_in_place, spawn_blocking};

use crate::limits::{TRANSFER_ANSWER_BYTES, TRANSFER_SMALL_BYTES, WRITE_BYTES};
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::sealed_way::TicketWait;
use crate::mover::target::Target;
use crate::mover::{Mover, Watch};
use crate::s3::checksum::Algorithm;
use crate::s3::{Answer, EARLY, LONGER, ObjectName, Request, S3Error, Wanted};
use crate::sealed::{Asked, Offer, SEALED, SealedError, Stop, TRANSFER_HEADER};

/// Where the bytes of a piece go.
pub(super) enum Sink {
    File(Arc<Target>),
    Memory(Mutex<Vec<u8>>),
}

/// A piece on its way: what came is taken once, in order, whatever breaks in between.
struct Arriving {
    range: Range<u64>,
    at: u64,
    crc: crc_fast::Digest,
    sink: Arc<Sink>,
    watch: Arc<dyn Watch>,
    failure: Option<MoverError>,
}

impl Arriving {
    /// Takes bytes that lie at the place where the last ones ended.
    fn take(&mut self, bytes: &[u8]) -> Result<(), MoverError> {
        let wanted = self.left().min(bytes.len() as u64) as usize;
        let bytes = &bytes[..wanted];
        match &*self.sink {
            Sink::File(target) => target.write(self.at, bytes)?,
            Sink::Memory(memory) => memory.lock().extend_from_slice(bytes),
        }
        self.crc.update(bytes);
        self.at += bytes.len() as u64;
        self.watch.event(&Event::Bytes(bytes.len() as i64));
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.left() == 0
    }

    fn left(&self) -> u64 {
        self.range.end - self.at
    }
}

/// What receives on a thread of its own, which ends with what waits for it.
struct Receiving(Arc<Stop>);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Why not all of a piece has come yet.
enum Stopped {
    /// It is to come sealed, and there is no ticket for it now.
    NoTicket,
    /// Something failed.
    By(MoverError),
}

impl From<MoverError> for Stopped {
    fn from(error: MoverError) -> Self {
        Self::By(error)
    }
}

impl Mover {
    /// Fetches a piece, of which a first answer may be there already. Gives its CRC, and whether it
    /// went sealed.
    pub(super) async fn fetch(
        &self,
        wanted: &Wanted,
        range: Range<u64>,
        algorithm: Algorithm,
        sink: Arc<Sink>,
        mut first: Option<Answer>,
    ) -> Result<(u64, bool), MoverError> {
        let crc = algorithm.crc().unwrap_or(crc_fast::CrcAlgorithm::Crc64Nvme);
        let mut arriving = Arriving {
            at: range.start,
            range,
            crc: crc_fast::Digest::new(crc),
            sink,
            watch: Arc::clone(&self.watch),
            failure: None,
        };
        let (mut attempt, mut was_sealed) = (0, false);
        let mut tickets = TicketWait::default();
        loop {
            let before = arriving.at;
            let error;
            (arriving, error) = self
                .fetch_once(wanted, arriving, first.take(), &mut was_sealed)
                .await;
            match error {
                None if arriving.is_whole() => return Ok((arriving.crc.finalize(), was_sealed)),
                // An offer may reach less far than was asked for.
                None => tickets = TicketWait::default(),
                Some(Stopped::NoTicket) => self.wait_for_ticket(&mut tickets).await?,
                Some(Stopped::By(error)) => {
                    // What goes on for a while and then breaks is no reason to give up.
                    attempt = if arriving.at > before { 1 } else { attempt + 1 };
                    self.pause_after(attempt, error).await?;
                }
            }
        }
    }

    /// Waits before another attempt, or gives the error back where that would not help.
    async fn pause_after(&self, attempt: u32, error: MoverError) -> Result<(), MoverError> {
        match error {
            MoverError::S3(error) => Ok(self.client.pause(attempt, error).await?),
            MoverError::Sealed(error) => self.after_sealed(attempt, error).await,
            error => Err(error),
        }
    }

    /// What follows when bytes did not go by the data port.
    pub(super) async fn after_sealed(
        &self,
        attempt: u32,
        error: SealedError,
    ) -> Result<(), MoverError> {
        let by_tls = |error: &SealedError, is_first: bool| {
            if is_first {
                self.tell(&Event::Note(&format!("{error}; going on by TLS")));
            }
        };
        if let Some(is_first) = self.sealed.gives_up(&error) {
            by_tls(&error, is_first);
            return Ok(());
        }
        if !error.is_passing() {
            return Err(error.into());
        }
        let broken = S3Error::Broken {
            endpoint: self.client.endpoint().text().to_owned(),
            problem: error.to_string(),
        };
        if self.client.pause(attempt, broken).await.is_ok() {
            return Ok(());
        }
        match self.sealed.gives_up_at_last() {
            Some(is_first) => {
                by_tls(&error, is_first);
                Ok(())
            }
            None => Err(error.into()),
        }
    }

    async fn fetch_once(
        &self,
        wanted: &Wanted,
        mut arriving: Arriving,
        first: Option<Answer>,
        was_sealed: &mut bool,
    ) -> (Arriving, Option<Stopped>) {
        let asked = match first {
            Some(answer) => Ok(answer),
            None => self.ask_for(wanted, &arriving).await,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => return (arriving, Some(error.into())),
        };
        if answer.header(TRANSFER_HEADER) == Some(SEALED) {
            let before = arriving.at;
            let (arriving, failure) = self.receive(wanted, answer, arriving).await;
            *was_sealed |= arriving.at > before;
            return (arriving, failure.map(Stopped::By));
        }
        let has_sealed_form = wanted.bytes > TRANSFER_SMALL_BYTES && !arriving.is_whole();
        if has_sealed_form && self.sealed.is_demanded() {
            return (arriving, Some(Stopped::NoTicket));
        }
        let failure = take_all(answer, &mut arriving).await.err();
        (arriving, failure.map(Stopped::By))
    }

    /// Waits for a ticket that the server has not now.
    pub(super) async fn wait_for_ticket(
        &self,
        tickets: &mut TicketWait,
    ) -> Result<(), SealedError> {
        if !self.told.ticketless.swap(true, Relaxed) {
            self.tell(&Event::Note(
                "the server has no ticket for a sealed transfer now: one is waited for",
            ));
        }
        tickets.pause().await
    }

    /// Asks for all of an object, whatever it is now.
    pub(super) async fn ask_for_all(&self, name: &ObjectName) -> Result<Answer, MoverError> {
        let headers = self.headers_of_read(name).await?;
        let request: Request = name.request(Method::GET).headers(&headers);
        let comparing = { request.clone() }.header("x-amz-checksum-mode", "ENABLED");
        match self.client.send(&comparing).await {
            // A server that knows no checksums.
            Err(error) if error.is_about_checksums() => Ok(self.client.send(&request).await?),
            answered => Ok(answered?),
        }
    }

    /// What asks for sealed transfer, where that is wanted.
    async fn headers_of_read(
        &self,
        name: &ObjectName,
    ) -> Result<Vec<(String, String)>, MoverError> {
        let is_wanted = self.sealed.is_wanted(&self.client, &name.bucket).await?;
        let header = is_wanted.then(|| (TRANSFER_HEADER.to_owned(), SEALED.to_owned()));
        Ok(header.into_iter().collect())
    }

    /// What breaks is asked for again by who waits for all of it.
    async fn ask_for(&self, wanted: &Wanted, arriving: &Arriving) -> Result<Answer, MoverError> {
        let headers = self.headers_of_read(&wanted.name).await?;
        let range = arriving.at..arriving.range.end;
        Ok(self.client.read_once(wanted, range, &headers).await?)
    }

    async fn receive(
        &self,
        wanted: &Wanted,
        answer: Answer,
        mut arriving: Arriving,
    ) -> (Arriving, Option<MoverError>) {
        let document = match answer.whole(TRANSFER_ANSWER_BYTES).await {
            Ok(document) => document,
            Err(error) => return (arriving, Some(error.into())),
        };
        let asked = Asked {
            range: arriving.at..arriving.range.end,
            object_bytes: wanted.bytes,
            host: self.client.endpoint().host(),
        };
        let offer = match Offer::read(&document, &asked) {
            Ok(offer) => offer,
            Err(error) => return (arriving, Some(error.into())),
        };
        drop(document);
        let mut lane = self.sealed.lane();
        let receiving = Receiving(Arc::default());
        let stop = Arc::clone(&receiving.0);
        let received = spawn_blocking(move || {
            let received = lane.receive_until(&offer, &stop, |_, bytes| {
                arriving.take(bytes).map_err(|error| {
                    arriving.failure = Some(error);
                    io::Error::other("kept")
                })
            });
            (lane, arriving, received)
        });
        match received.await {
            Ok((lane, mut arriving, received)) => {
                if received.is_ok() {
                    self.sealed.keep(lane);
                }
                let failure = arriving.failure.take();
                let failure = failure.or(received.err().map(MoverError::from));
                (arriving, failure)
            }
            // A panic in there has been told; nothing is left to go on with.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Takes the body of an answer, and writes larger runs of it.
async fn take_all(mut answer: Answer, arriving: &mut Arriving) -> Result<(), MoverError> {
    let mut held: Vec<u8> = Vec::with_capacity(WRITE_BYTES);
    let broken = loop {
        match answer.next().await {
            Ok(Some(bytes)) if bytes.len() as u64 > arriving.left() - held.len() as u64 => {
                return Err(answer.unreadable(LONGER).into());
            }
            Ok(Some(bytes)) => held.extend_from_slice(&bytes),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        if held.len() >= WRITE_BYTES / 2 {
            block_in_place(|| arriving.take(&held))?;
            held.clear();
        }
    };
    block_in_place(|| arriving.take(&held))?;
    match broken {
        Some(error) => Err(error.into()),
        None if arriving.is_whole() => Ok(()),
        None => Err(answer.broken(EARLY.to_owned()).into()),
    }
}
