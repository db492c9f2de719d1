//! AEGIS-256 by the crate `aegis`, of one of its authors.

use aegis::aegis256::Aegis256;

use crate::cipher::algorithm::TAG_BYTES;
use crate::cipher::{Cipher, Tag};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};

const NAME: &str = "AEGIS-256, aegis";

pub(super) fn contender() -> Contender {
    Contender::new(
        NAME,
        Placement::User,
        "crate aegis 0.9, libaegis in C, linked in",
    )
    .set("instructions found at run time, in place, tag of 128 bits apart")
}

struct Aegis([u8; 32]);

pub(super) fn expand(key: &[u8]) -> Result<Box<dyn Cipher>> {
    let key = key
        .try_into()
        .map_err(|_| refused("a key of another length"))?;
    Ok(Box::new(Aegis(key)))
}

fn refused(what: &str) -> LabError {
    LabError::Cipher {
        contender: NAME.into(),
        what: what.into(),
    }
}

impl Aegis {
    fn begin(&self, iv: &[u8]) -> Result<Aegis256<TAG_BYTES>> {
        let iv = iv
            .try_into()
            .map_err(|_| refused("an IV of another length"))?;
        Ok(Aegis256::new(&self.0, iv))
    }
}

impl Cipher for Aegis {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        *tag = self.begin(iv)?.encrypt_in_place(data, aad);
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        let opened = self.begin(iv)?.decrypt_in_place(data, tag, aad);
        opened.map_err(|_| LabError::Tag)
    }
}
