//! Cobblestone-256 as coffer seals: AES-256-GCM in chunks, with a salt and a commitment.
//!
//! A format of its own: a message is longer than its plaintext, and each is under a fresh key. So
//! the sealed form stays here, and `data` holds the plaintext before and after.

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{Context, Opener, Sealer, SecretKey, sealed_bytes};

use crate::cipher::{Cipher, Tag};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};

pub(super) fn contender() -> Contender {
    Contender::new(
        "Cobblestone-256 (coffer)",
        Placement::User,
        "coffer-seal over aws-lc-rs",
    )
    .set("chunks of 16 KiB, sealed out of place; a salt, a derived key and a commitment each")
}

struct Cobblestone {
    key: SecretKey,
    context: Context,
    sealed: Vec<u8>,
}

pub(super) fn expand(key: &[u8]) -> Result<Box<dyn Cipher>> {
    let key: [u8; 32] = key
        .try_into()
        .map_err(|_| refused("a key of another length"))?;
    Ok(Box::new(Cobblestone {
        key: SecretKey::from_bytes(key),
        context: Context::raw(*b"coffer-lab"),
        sealed: Vec::new(),
    }))
}

fn refused(what: &str) -> LabError {
    LabError::Cipher {
        contender: "Cobblestone-256 (coffer)".into(),
        what: what.into(),
    }
}

impl Cipher for Cobblestone {
    fn encrypt(&mut self, _: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        let length = sealed_bytes(data.len() as u64).ok_or_else(|| refused("to seal"))?;
        self.sealed
            .resize(usize::try_from(length).map_err(|_| refused("to seal"))?, 0);
        let mut sealer = Sealer::new(&self.key, &self.context);
        let (header, mut out) = self.sealed.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(sealer.header());
        let mut chunks = data.chunks_exact(CHUNK_BYTES);
        for chunk in &mut chunks {
            let (sealed, rest) = out.split_at_mut(SEALED_CHUNK_BYTES);
            sealer
                .seal_chunk(chunk, sealed)
                .map_err(|error| refused(&error.to_string()))?;
            out = rest;
        }
        let last = sealer.seal_last(chunks.remainder(), out);
        last.map_err(|error| refused(&error.to_string()))
    }

    fn decrypt(&mut self, _: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        let (header, _) = self.sealed.split_first_chunk().ok_or(LabError::Tag)?;
        let length = self.sealed.len() as u64;
        let opener = Opener::new(&self.key, &self.context, header, length);
        let opener = opener.map_err(|_| LabError::Tag)?;
        let mut rest = data;
        for index in 0..opener.chunk_count() {
            let range = opener.chunk_range(index);
            let sealed = range.start as usize..range.end as usize;
            let room = CHUNK_BYTES.min(rest.len());
            let (out, after) = rest.split_at_mut(room);
            opener
                .open_chunk(index, &self.sealed[sealed], out)
                .map_err(|_| LabError::Tag)?;
            rest = after;
        }
        Ok(())
    }
}
