//! A file written and read in pieces of 1 MiB, encrypted in this program or not: through the
//! system's memory of files or past it (O_DIRECT), a call for each piece or several pieces under
//! way at once (`io_uring`).

mod way;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use coffer_seal::random_bytes;
use tokio::task::JoinHandle;
use tokio_uring::buf::{BoundedBuf, Slice};

use crate::cipher::{Stream, open_ssl_decrypting, open_ssl_encrypting};
use crate::error::{Doing, Result};
use crate::file::folder_store::sync;
use crate::file::store::{Store, evict};
use crate::measuring::content::{Content, Sink};

pub(super) use way::Way;

/// A piece. O_DIRECT takes whole blocks of a disk at a time, at addresses that are such as well.
const PIECE_BYTES: usize = 1 << 20;
const BLOCK_BYTES: usize = 4096;

/// Pieces that `io_uring` has under way at once.
const UNDER_WAY: usize = 4;

/// Room for a piece that begins with a block of memory.
struct Piece {
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
}

impl Piece {
    fn new() -> Self {
        let bytes = vec![0; PIECE_BYTES + BLOCK_BYTES];
        // Memory of a vector does not move while it is not resized.
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        Self {
            bytes,
            start,
            filled: 0,
        }
    }

    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..PIECE_BYTES]
    }

    fn filled(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.filled]
    }

    /// What is written: whole blocks, the last of them padded.
    fn blocks(&mut self) -> &[u8] {
        let whole = self.filled.next_multiple_of(BLOCK_BYTES);
        let blocks = &mut self.bytes[self.start..][..whole];
        blocks[self.filled..].fill(0);
        blocks
    }

    /// The same, to be lent to the kernel.
    fn lend(mut self) -> Slice<Vec<u8>> {
        let whole = self.blocks().len();
        self.bytes.slice(self.start..self.start + whole)
    }

    fn lend_room(self) -> Slice<Vec<u8>> {
        self.bytes.slice(self.start..self.start + PIECE_BYTES)
    }

    /// Back from the kernel.
    fn returned(slice: Slice<Vec<u8>>, filled: usize) -> Self {
        Self {
            start: slice.begin(),
            bytes: slice.into_inner(),
            filled,
        }
    }
}

/// Cuts blocks of content into pieces, and encrypts them.
struct Cutter<'a> {
    content: &'a mut Content,
    cipher: Option<Stream>,
    /// What of a block did not fit into the last piece.
    waiting: Vec<u8>,
    total: u64,
}

impl Cutter<'_> {
    /// Fills a piece; false after the last.
    fn fill(&mut self, piece: &mut Piece) -> Result<bool> {
        piece.filled = 0;
        while piece.filled < PIECE_BYTES {
            if self.waiting.is_empty() {
                match self.content.next() {
                    Some(block) => self.waiting.extend_from_slice(block),
                    None => break,
                }
            }
            let filled = piece.filled;
            let count = self.waiting.len().min(PIECE_BYTES - filled);
            piece.room()[filled..filled + count].copy_from_slice(&self.waiting[..count]);
            self.waiting.drain(..count);
            piece.filled += count;
        }
        self.total += piece.filled as u64;
        if let Some(cipher) = &mut self.cipher {
            cipher(piece.filled())?;
        }
        Ok(piece.filled > 0)
    }
}

/// A file in a folder.
pub(super) struct Pieces {
    way: Way,
    path: PathBuf,
    key: [u8; 16],
    /// Of the file that was written last.
    iv: [u8; 16],
}

impl Pieces {
    pub(super) fn new(way: Way, folder: &Path) -> Self {
        Self {
            way,
            path: folder.join("file"),
            key: random_bytes(),
            iv: random_bytes(),
        }
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} {}{}", self.path.display(), self.way.flag())
    }

    fn cipher(&self, begin: fn(&[u8], &[u8]) -> Result<Stream>) -> Result<Option<Stream>> {
        let encrypts = self.way.encrypts;
        encrypts.then(|| begin(&self.key, &self.iv)).transpose()
    }

    fn write_by_calls(&self, file: &File, cutter: &mut Cutter<'_>) -> Result<()> {
        let mut piece = Piece::new();
        while cutter.fill(&mut piece)? {
            let written = (&*file).write_all(piece.blocks());
            written.doing(|| self.doing("writing"))?;
        }
        Ok(())
    }

    fn read_by_calls(&self, mut file: File, take: &mut Take<'_>) -> Result<()> {
        let mut piece = Piece::new();
        loop {
            let read = file.read(piece.room());
            piece.filled = read.doing(|| self.doing("reading"))?;
            if piece.filled == 0 {
                return Ok(());
            }
            take.take(&mut piece)?;
        }
    }

    /// The next pieces are encrypted while the last are written.
    fn write_by_ring(&self, file: &File, cutter: &mut Cutter<'_>) -> Result<()> {
        let doing = || self.doing("writing");
        let file = file.try_clone().doing(doing)?;
        in_ring(async {
            let file = std::rc::Rc::new(tokio_uring::fs::File::from_std(file));
            let mut under_way: VecDeque<Task> = VecDeque::new();
            let mut spare: Vec<Piece> = (0..UNDER_WAY).map(|_| Piece::new()).collect();
            let mut from = 0;
            loop {
                let mut piece = match spare.pop() {
                    Some(piece) => piece,
                    None => done(under_way.pop_front(), doing).await?,
                };
                if !cutter.fill(&mut piece)? {
                    break;
                }
                let (file, at) = (file.clone(), from);
                from += piece.filled as u64;
                under_way.push_back(tokio_uring::spawn(async move {
                    let (written, lent) = file.write_all_at(piece.lend(), at).await;
                    written.map(|()| Piece::returned(lent, 0))
                }));
            }
            while !under_way.is_empty() {
                done(under_way.pop_front(), doing).await?;
            }
            Ok(())
        })
    }

    /// The next pieces are read while the last are decrypted.
    fn read_by_ring(&self, file: File, take: &mut Take<'_>) -> Result<()> {
        let doing = || self.doing("reading");
        let total = file.metadata().doing(doing)?.len();
        in_ring(async {
            let file = std::rc::Rc::new(tokio_uring::fs::File::from_std(file));
            let mut under_way: VecDeque<Task> = VecDeque::new();
            let mut from = 0;
            let mut spare: Vec<Piece> = (0..UNDER_WAY).map(|_| Piece::new()).collect();
            loop {
                while let Some(piece) = spare.pop().filter(|_| from < total) {
                    let (file, at) = (file.clone(), from);
                    from += PIECE_BYTES as u64;
                    under_way.push_back(tokio_uring::spawn(async move {
                        let (read, lent) = file.read_at(piece.lend_room(), at).await;
                        read.map(|count| Piece::returned(lent, count))
                    }));
                }
                if under_way.is_empty() {
                    return Ok(());
                }
                let mut piece = done(under_way.pop_front(), doing).await?;
                take.take(&mut piece)?;
                spare.push(piece);
            }
        })
    }
}

type Task = JoinHandle<io::Result<Piece>>;

/// Waits for a piece.
async fn done(task: Option<Task>, doing: impl Fn() -> String) -> Result<Piece> {
    let none = || io::Error::other("nothing is under way");
    let done = match task {
        Some(task) => task.await.map_err(io::Error::other).and_then(|piece| piece),
        None => Err(none()),
    };
    done.doing(doing)
}

fn in_ring<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio_uring::Runtime::new(&tokio_uring::builder());
    runtime
        .doing(|| "setting up io_uring".into())?
        .block_on(work)
}

/// Decrypts pieces, and compares them.
struct Take<'a> {
    sink: &'a mut Sink,
    cipher: Option<Stream>,
}

impl Take<'_> {
    fn take(&mut self, piece: &mut Piece) -> Result<()> {
        if let Some(cipher) = &mut self.cipher {
            cipher(piece.filled())?;
        }
        self.sink.take(piece.filled());
        Ok(())
    }
}

impl Store for Pieces {
    fn write(&mut self, content: &mut Content) -> Result<()> {
        if self.path.exists() {
            let removed = fs::remove_file(&self.path);
            removed.doing(|| self.doing("removing"))?;
        }
        self.iv = random_bytes();
        let mut options = OpenOptions::new();
        let file = self
            .way
            .open(options.write(true).create_new(true), &self.path)?;
        let mut cutter = Cutter {
            content,
            cipher: self.cipher(open_ssl_encrypting)?,
            waiting: Vec::new(),
            total: 0,
        };
        if self.way.ring {
            self.write_by_ring(&file, &mut cutter)?;
        } else {
            self.write_by_calls(&file, &mut cutter)?;
        }
        // The last block was padded.
        let cut = file.set_len(cutter.total);
        cut.doing(|| self.doing("writing"))?;
        sync(&file, &self.path)
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        let file = self.way.open(OpenOptions::new().read(true), &self.path)?;
        let mut take = Take {
            sink,
            cipher: self.cipher(open_ssl_decrypting)?,
        };
        if self.way.ring {
            self.read_by_ring(file, &mut take)
        } else {
            self.read_by_calls(file, &mut take)
        }
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.path)
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LabError;
    use crate::file::store::check;

    #[test]
    fn pieces_begin_with_a_block_and_end_with_one() {
        let mut piece = Piece::new();
        assert_eq!(piece.room().as_ptr().align_offset(BLOCK_BYTES), 0);
        piece.room().fill(7);
        piece.filled = 5000;
        let blocks = piece.blocks();
        assert_eq!(blocks.len(), 8192);
        assert!(blocks[..5000].iter().all(|byte| *byte == 7));
        assert!(blocks[5000..].iter().all(|byte| *byte == 0));
        let lent = piece.lend();
        let back = Piece::returned(lent, 3);
        assert_eq!(
            (back.filled, back.bytes.len()),
            (3, PIECE_BYTES + BLOCK_BYTES)
        );
    }

    /// Files of other lengths than whole pieces come back, by every way that this machine has.
    #[test]
    fn every_way_gives_back_what_was_written() {
        let parent = std::env::temp_dir().join(format!("coffer-lab-pieces-{}", std::process::id()));
        for (number, way) in Way::ALL.into_iter().enumerate() {
            let (contender, folder) = (way.contender(), parent.join(number.to_string()));
            fs::create_dir_all(&folder).unwrap();
            if !contender.availability.runs() {
                eprintln!("not tested: {contender:?}");
                continue;
            }
            match check(&contender, &mut Pieces::new(way, &folder)) {
                Err(LabError::Io { action, .. }) if action.contains("O_DIRECT") => {
                    eprintln!("not tested: {action}");
                }
                other => other.unwrap(),
            }
        }
        fs::remove_dir_all(&parent).unwrap();
    }
}
