//! To a data port: plaintext is sealed and sent, once.

use std::io::{self, Write};

use coffer_seal::limits::{CHUNK_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES};
use coffer_seal::{SealError, Sealer};
use zeroize::Zeroizing;

use crate::limits::{TRANSFER_BATCH_CHUNKS, TRANSFER_VERDICT};
use crate::sealed::announcement::Announcement;
use crate::sealed::data_port::Wire;
use crate::sealed::error::SealedError;
use crate::sealed::head::{Head, read_head};
use crate::sealed::lane::{Lane, cut};

impl Lane {
    /// Seals the plaintext that was announced, and sends it; `sent` is told of plaintext that is
    /// under way. Returns the ticket, by which the caller commits.
    ///
    /// # Errors
    /// What went wrong on the way. Nothing is stored then, and the announcement is used up.
    pub fn send(
        &mut self,
        announcement: Announcement,
        plaintext: &[u8],
        sent: impl FnMut(u64),
    ) -> Result<Zeroizing<String>, SealedError> {
        if plaintext.len() as u64 != announcement.plain_bytes {
            return Err(unsealed("it is not as long as was announced"));
        }
        let Announcement { data_port, .. } = &announcement;
        let (address, of) = (data_port.address(), announcement.sealed_bytes);
        let request = data_port.request("PUT", Some(of));
        let mut stream = self.begin(data_port, &request, of)?;
        let head = match self.seal_and_write(&announcement, &mut stream, plaintext, sent)? {
            Written::All => {
                verdict(&mut stream).map_err(|error| cut(address.clone(), of, of, error))?
            }
            // The server may have said why it took no more.
            Written::Part { done, error } => match read_head(&mut stream) {
                Ok((head, _)) if head.status >= 400 => head,
                _ => return Err(cut(address, done, of, error)),
            },
        };
        match head.status {
            204 => {
                if head.stays && head.content_length.unwrap_or(0) == 0 {
                    self.keep(address, stream);
                }
                Ok(announcement.ticket)
            }
            422 => Err(SealedError::Spoilt { address }),
            507 => Err(SealedError::Full { address }),
            status => Err(SealedError::Refused { address, status }),
        }
    }

    fn seal_and_write(
        &mut self,
        announcement: &Announcement,
        stream: &mut Wire,
        plaintext: &[u8],
        mut sent: impl FnMut(u64),
    ) -> Result<Written, SealedError> {
        let mut sealer = Sealer::new(&announcement.key, &announcement.context);
        let header = *sealer.header();
        let part = |done, error| Ok(Written::Part { done, error });
        if let Err(error) = stream.write_all(&header) {
            return part(0, error);
        }
        let mut done = header.len() as u64;
        let (full, last) = plaintext.as_chunks::<CHUNK_BYTES>();
        for batch in full.chunks(TRANSFER_BATCH_CHUNKS) {
            let sealed = &mut self.sealed[..batch.len() * SEALED_CHUNK_BYTES];
            for (chunk, out) in batch
                .iter()
                .zip(sealed.chunks_exact_mut(SEALED_CHUNK_BYTES))
            {
                sealer.seal_chunk(chunk, out).map_err(failed)?;
            }
            if let Err(error) = stream.write_all(sealed) {
                return part(done, error);
            }
            done += sealed.len() as u64;
            sent((batch.len() * CHUNK_BYTES) as u64);
        }
        let sealed = &mut self.sealed[..last.len() + TAG_BYTES];
        sealer.seal_last(last, sealed).map_err(failed)?;
        if let Err(error) = stream.write_all(sealed) {
            return part(done, error);
        }
        sent(last.len() as u64);
        Ok(Written::All)
    }
}

/// How far writing came.
enum Written {
    All,
    Part { done: u64, error: io::Error },
}

/// Waits for what the server says when it has everything: it opens, and syncs, before.
fn verdict(stream: &mut Wire) -> io::Result<Head> {
    let usual = stream.tcp().read_timeout()?;
    stream.tcp().set_read_timeout(Some(TRANSFER_VERDICT))?;
    let (head, _) = read_head(stream)?;
    stream.tcp().set_read_timeout(usual)?;
    Ok(head)
}

fn failed(error: SealError) -> SealedError {
    SealedError::Local(io::Error::other(error))
}

fn unsealed(problem: &'static str) -> SealedError {
    SealedError::Local(io::Error::new(io::ErrorKind::InvalidInput, problem))
}
