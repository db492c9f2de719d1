//! Receiving a blob that was sealed elsewhere: each chunk is opened before a byte of it is written,
//! so that nothing but what is sealed under the blob's key comes to the disk; or later, where the
//! server is to spend no time on it.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{BlobId, Context, Opener, SecretKey, sealed_bytes, zeroize_buffer};

use crate::blobs::buffers::Buffer;
use crate::blobs::folder::BlobStore;
use crate::blobs::in_flight::{BlobFile, FinishedBlob};
use crate::error::{Result, StoreError};

thread_local! {
    /// What a chunk holds, while it is looked at.
    static OPENED: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into_boxed_slice());
}

/// When what arrives sealed is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Each chunk before it is written.
    #[default]
    AsItComes,
    /// Not here: of what comes only the header and the length are looked at.
    Later,
}

impl BlobStore {
    /// Begins a blob with a new random id that will arrive sealed under `data_key`, as one message
    /// of `plaintext_bytes`. Its file is made with the first bytes that have opened.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`]: no blob holds so much.
    pub fn receive(
        &self,
        data_key: SecretKey,
        plaintext_bytes: u64,
        opening: Opening,
    ) -> Result<SealedBlobWriter> {
        let sealed_bytes = sealed_bytes(plaintext_bytes).ok_or(StoreError::OutOfRange)?;
        let file = BlobFile::new(self);
        Ok(SealedBlobWriter {
            context: self.context(file.id()),
            file,
            data_key,
            opening,
            plaintext_bytes,
            sealed_bytes,
            received_bytes: 0,
            must_be_read: opening == Opening::AsItComes,
            opener: None,
            out: None,
            filled: 0,
            opened: 0,
            next_chunk: 0,
        })
    }
}

/// A blob that arrives sealed. Dropping it removes its file.
pub struct SealedBlobWriter {
    file: BlobFile,
    context: Context,
    data_key: SecretKey,
    opening: Opening,
    plaintext_bytes: u64,
    sealed_bytes: u64,
    received_bytes: u64,
    /// Whether its bytes can't be moved past this program.
    must_be_read: bool,
    /// Once the header has come.
    opener: Option<Opener>,
    /// Once anything is about to come.
    out: Option<Buffer>,
    /// So many bytes of `out` have come and are still to be written.
    filled: usize,
    /// So many of them belong to the header or to chunks that have opened, or are opened later.
    opened: usize,
    next_chunk: u64,
}

impl SealedBlobWriter {
    /// The blob's id.
    pub fn id(&self) -> BlobId {
        self.file.id()
    }

    /// What it must be sealed under.
    pub fn data_key(&self) -> &SecretKey {
        &self.data_key
    }

    /// What it must be sealed with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// When it is opened.
    pub fn opening(&self) -> Opening {
        self.opening
    }

    /// How much plaintext it will hold, in bytes.
    pub fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// How long the message is, in bytes.
    pub fn sealed_bytes(&self) -> u64 {
        self.sealed_bytes
    }

    /// How much of it is still to come, in bytes.
    pub fn missing_bytes(&self) -> u64 {
        self.sealed_bytes - self.received_bytes
    }

    /// Room for bytes that come next; empty once all have come.
    pub fn room(&mut self) -> &mut [u8] {
        let missing = usize::try_from(self.missing_bytes()).unwrap_or(usize::MAX);
        let file = &mut self.file;
        let out = self.out.get_or_insert_with(|| file.buffer());
        // What would come behind the border of the next write has to be moved to the front after
        // it: no more than opens whole.
        let border = out.len().saturating_sub(SEALED_CHUNK_BYTES);
        let end = match self.opening {
            Opening::Later => border,
            Opening::AsItComes => {
                let begins = self.received_bytes - self.filled as u64;
                chunk_end(begins + border as u64, begins).min(out.len())
            }
        };
        let end = end.min(self.filled.saturating_add(missing));
        &mut out[self.filled.min(end)..end]
    }

    /// Takes `count` bytes that were put into [`room`](Self::room). Each chunk that is whole is
    /// opened, and what it holds given to `each`, in order.
    ///
    /// # Errors
    /// [`StoreError::NotSealed`] when a chunk, or the header, does not open; [`StoreError::Full`],
    /// [`StoreError::Io`]. The blob can't be finished then.
    pub async fn received(
        &mut self,
        count: usize,
        each: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<()> {
        debug_assert!(count as u64 <= self.missing_bytes());
        // Its bytes went away with a write that was not waited for to its end.
        if self.out.as_ref().is_some_and(|out| out.is_empty()) {
            return Err(StoreError::Closed);
        }
        self.filled += count;
        self.received_bytes += count as u64;
        self.open(each)?;
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let write_bytes = out.len() - SEALED_CHUNK_BYTES;
        if self.opened >= write_bytes {
            self.filled = self.file.write_front(out, self.filled).await?;
            self.opened -= write_bytes;
        }
        Ok(())
    }

    /// Whether the bytes that come next may be moved from a socket: nothing is done with them but
    /// to write them, and the file has those before.
    pub fn may_be_moved(&self) -> bool {
        !self.must_be_read && self.filled == 0 && self.file.has_begun() && self.missing_bytes() > 0
    }

    /// Moves what a socket has, but no more than is missing, into the file; says how many bytes it
    /// was. To be called once there are some, while they [may be](Self::may_be_moved), which ends
    /// with 0: what has come has to be read.
    ///
    /// # Errors
    /// As [`received`](Self::received); bytes that the socket had are lost then. So they are when
    /// this is not waited for to its end.
    pub async fn move_from(&mut self, socket: &Arc<OwnedFd>) -> Result<usize> {
        debug_assert!(self.may_be_moved());
        // Others may need it.
        self.out = None;
        let count = self.file.move_from(socket, self.missing_bytes()).await?;
        self.received_bytes += count as u64;
        self.must_be_read = count == 0;
        Ok(count)
    }

    /// Makes the whole file durable.
    ///
    /// # Errors
    /// [`StoreError::NotSealed`] when something is missing; as [`received`](Self::received), and
    /// nothing is left behind.
    pub async fn finish(self) -> Result<FinishedBlob> {
        let Self {
            file,
            out,
            filled,
            opened,
            plaintext_bytes,
            ..
        } = self;
        if self.received_bytes < self.sealed_bytes || opened != filled {
            return Err(StoreError::NotSealed);
        }
        file.finish(out, filled, plaintext_bytes).await
    }

    fn open(&mut self, each: &mut (dyn FnMut(&[u8]) + Send)) -> Result<()> {
        let Some(out) = self.out.as_deref() else {
            return Ok(());
        };
        let opener = match &self.opener {
            Some(opener) => opener,
            None => {
                let Some(header) = out[..self.filled].first_chunk::<HEADER_BYTES>() else {
                    return Ok(());
                };
                let opener = Opener::new(&self.data_key, &self.context, header, self.sealed_bytes)
                    .map_err(|_| StoreError::NotSealed)?;
                self.opened = HEADER_BYTES;
                self.opener.insert(opener)
            }
        };
        if self.opening == Opening::Later {
            self.opened = self.filled;
            return Ok(());
        }
        OPENED.with_borrow_mut(|plaintext| {
            let mut outcome = Ok(());
            let mut used = 0;
            while self.next_chunk < opener.chunk_count() {
                let range = opener.chunk_range(self.next_chunk);
                let end = self.opened + (range.end - range.start) as usize;
                if end > self.filled {
                    break;
                }
                let sealed = &out[self.opened..end];
                let Ok(bytes) = opener.open_chunk(self.next_chunk, sealed, plaintext) else {
                    outcome = Err(StoreError::NotSealed);
                    break;
                };
                each(&plaintext[..bytes]);
                used = used.max(bytes);
                self.opened = end;
                self.next_chunk += 1;
            }
            zeroize_buffer(&mut plaintext[..used]);
            outcome
        })
    }
}

/// Where the chunk ends that holds the byte before `at`, from `begins` on, both in bytes of the
/// message.
fn chunk_end(at: u64, begins: u64) -> usize {
    let (header, chunk) = (HEADER_BYTES as u64, SEALED_CHUNK_BYTES as u64);
    let end = header + at.saturating_sub(header).next_multiple_of(chunk);
    usize::try_from(end - begins).unwrap_or(usize::MAX)
}
