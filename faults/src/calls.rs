//! The calls that change files, open them or read them: refused, or made and recorded.

use libc::{AT_FDCWD, c_int, c_long};

use crate::control::{Kind, refusal};
use crate::system::{Arguments, PathBytes, call, read_back, status_at, status_of};
use crate::tape::{Record, Turn, What, counts, turn};

/// What the kernel hands over. The last five are not understood, and answered with ENOSYS:
/// programs do without them.
pub(crate) const CAUGHT: [c_long; 33] = [
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_splice,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_pwritev2,
    libc::SYS_io_uring_setup,
    libc::SYS_symlink,
];

const HERE: c_long = AT_FDCWD as c_long;

/// Answers a call.
pub(crate) fn run(number: c_long, arguments: &Arguments) -> c_long {
    let [a, b, c, d, e, _] = *arguments;
    let real = || call(number, arguments);
    match number {
        libc::SYS_open => open([HERE, a], b, real),
        libc::SYS_creat => open([HERE, a], c_long::from(libc::O_CREAT | libc::O_TRUNC), real),
        libc::SYS_openat => open([a, b], c, real),
        // SAFETY: the call's third argument points to what begins with the flags.
        libc::SYS_openat2 => open([a, b], unsafe { *(c as *const c_long) }, real),
        libc::SYS_write => write(number, arguments, None),
        libc::SYS_writev => write(number, arguments, None),
        libc::SYS_pwrite64 | libc::SYS_pwritev => write(number, arguments, Some(d)),
        libc::SYS_splice => splice(arguments),
        libc::SYS_fsync | libc::SYS_fdatasync => sync(a, real),
        libc::SYS_ftruncate | libc::SYS_fallocate => truncate(a, real),
        libc::SYS_syncfs => sync_all(a, real),
        libc::SYS_rename => rename([HERE, a], [HERE, b], 0, real),
        libc::SYS_renameat => rename([a, b], [c, d], 0, real),
        libc::SYS_renameat2 => rename([a, b], [c, d], e, real),
        libc::SYS_unlink | libc::SYS_rmdir => name(Kind::Remove, What::Remove, [HERE, a], real),
        libc::SYS_unlinkat => name(Kind::Remove, What::Remove, [a, b], real),
        libc::SYS_mkdir => name(Kind::MakeFolder, What::MakeFolder, [HERE, a], real),
        libc::SYS_mkdirat => name(Kind::MakeFolder, What::MakeFolder, [a, b], real),
        libc::SYS_link => name(Kind::Link, What::Link, [HERE, b], real),
        libc::SYS_linkat => name(Kind::Link, What::Link, [c, d], real),
        libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => read(a, real),
        _ => -c_long::from(libc::ENOSYS),
    }
}

/// Whether a call of this kind is to fail; told on the tape.
fn refused(turn: &Turn, kind: Kind, path: &[u8]) -> Option<c_long> {
    let error = refusal(kind, path)?;
    let number = error as u64;
    turn.append(
        What::Refused,
        &Record {
            number,
            path,
            ..Record::default()
        },
    );
    Some(-error)
}

fn open([folder, path]: [c_long; 2], flags: c_long, real: impl FnOnce() -> c_long) -> c_long {
    let named = PathBytes::of_argument(folder, path);
    let named = named.as_bytes();
    if !counts(named) {
        return real();
    }
    let turn = turn();
    if let Some(error) = refused(&turn, Kind::Open, named) {
        return error;
    }
    let flags = flags as c_int;
    let before = status_at(folder, path);
    let opened = real();
    let Some(now) = status_of(opened).filter(|_| opened >= 0) else {
        return opened;
    };
    let what = match before {
        None if flags & libc::O_CREAT != 0 => What::Create,
        Some(before) if flags & libc::O_TRUNC != 0 && before.length > 0 => What::Truncate,
        _ => return opened,
    };
    let record = Record {
        inode: now.inode,
        path: named,
        ..Record::default()
    };
    turn.append(what, &record);
    opened
}

/// The pieces of memory that a call writes, no more than `length` bytes.
fn pieces(number: c_long, arguments: &Arguments, length: usize) -> Vec<&'static [u8]> {
    let [_, start, count, ..] = *arguments;
    let is_vectored = [libc::SYS_writev, libc::SYS_pwritev].contains(&number);
    let mut left = length;
    let mut piece = |start: *const u8, length: usize| {
        let taken = length.min(left);
        left -= taken;
        // SAFETY: the program vouches for this memory while its call is under way, which it is for
        // as long as the pieces are used.
        unsafe { std::slice::from_raw_parts(start, taken) }
    };
    if !is_vectored {
        return vec![piece(start as *const u8, count as usize)];
    }
    let vectors = start as *const libc::iovec;
    // SAFETY: as many as the call says there are.
    let vectors = unsafe { std::slice::from_raw_parts(vectors, count as usize) };
    vectors
        .iter()
        .map(|vector| piece(vector.iov_base.cast(), vector.iov_len))
        .collect()
}

/// Where a write without an offset goes.
fn position(file: c_long, length: u64) -> c_long {
    // SAFETY: both only ask.
    unsafe {
        let flags = libc::fcntl(file as c_int, libc::F_GETFL);
        match flags & libc::O_APPEND {
            0 => libc::lseek(file as c_int, 0, libc::SEEK_CUR),
            _ => length as c_long,
        }
    }
}

/// Half of a write that is refused is done.
fn write(number: c_long, arguments: &Arguments, offset: Option<c_long>) -> c_long {
    let [file, ..] = *arguments;
    let path = PathBytes::of_descriptor(file);
    if !counts(path.as_bytes()) {
        return call(number, arguments);
    }
    let turn = turn();
    let Some(status) = status_of(file) else {
        return call(number, arguments);
    };
    let offset = offset.unwrap_or_else(|| position(file, status.length));
    let error = refused(&turn, Kind::Write, path.as_bytes());
    let mut shortened = *arguments;
    let is_plain = [libc::SYS_write, libc::SYS_pwrite64].contains(&number);
    if error.is_some() {
        shortened[2] = if is_plain { shortened[2] / 2 } else { 0 };
    }
    let done = call(number, &shortened);
    if done > 0 {
        let record = Record {
            inode: status.inode,
            number: offset as u64,
            path: path.as_bytes(),
            data: &pieces(number, arguments, done as usize),
            ..Record::default()
        };
        turn.append(What::Write, &record);
    }
    error.unwrap_or(done)
}

/// As a write, if bytes of a pipe go into a file. What they are is read back from the file.
fn splice(arguments: &Arguments) -> c_long {
    let [_, _, file, offset, ..] = *arguments;
    let path = PathBytes::of_descriptor(file);
    let path = path.as_bytes();
    if !counts(path) {
        return call(libc::SYS_splice, arguments);
    }
    let turn = turn();
    let Some(status) = status_of(file) else {
        return call(libc::SYS_splice, arguments);
    };
    let offset = match offset {
        0 => position(file, status.length),
        // SAFETY: the call's fourth argument points to where it writes.
        offset => unsafe { *(offset as *const c_long) },
    };
    let error = refused(&turn, Kind::Write, path);
    let mut shortened = *arguments;
    if error.is_some() {
        shortened[4] /= 2;
    }
    let done = call(libc::SYS_splice, &shortened);
    if done > 0 {
        let mut written = vec![0; done as usize];
        read_back(file, &mut written, offset);
        let record = Record {
            inode: status.inode,
            number: offset as u64,
            path,
            data: &[&written],
            ..Record::default()
        };
        turn.append(What::Write, &record);
    }
    error.unwrap_or(done)
}

fn sync(descriptor: c_long, real: impl FnOnce() -> c_long) -> c_long {
    let path = PathBytes::of_descriptor(descriptor);
    let path = path.as_bytes();
    if !counts(path) {
        return real();
    }
    let turn = turn();
    let Some(status) = status_of(descriptor) else {
        return real();
    };
    let (kind, what) = if status.is_folder {
        (Kind::SyncFolder, What::SyncFolder)
    } else {
        (Kind::Sync, What::Sync)
    };
    let inode = status.inode;
    let record = Record {
        inode,
        path,
        ..Record::default()
    };
    if let Some(error) = refused(&turn, kind, path) {
        if !status.is_folder {
            turn.append(What::SyncRefused, &record);
        }
        return error;
    }
    let done = real();
    if done == 0 {
        turn.append(what, &record);
    }
    done
}

/// Of all files of the file system that this one is of.
fn sync_all(file: c_long, real: impl FnOnce() -> c_long) -> c_long {
    let path = PathBytes::of_descriptor(file);
    let path = path.as_bytes();
    if !counts(path) {
        return real();
    }
    let turn = turn();
    if let Some(error) = refused(&turn, Kind::SyncFolder, path) {
        return error;
    }
    let done = real();
    if done == 0 {
        let record = Record {
            path,
            ..Record::default()
        };
        turn.append(What::SyncAll, &record);
    }
    done
}

fn truncate(file: c_long, real: impl FnOnce() -> c_long) -> c_long {
    let path = PathBytes::of_descriptor(file);
    let path = path.as_bytes();
    if !counts(path) {
        return real();
    }
    let turn = turn();
    if let Some(error) = refused(&turn, Kind::Truncate, path) {
        return error;
    }
    let done = real();
    if let Some(status) = status_of(file).filter(|_| done == 0) {
        let record = Record {
            inode: status.inode,
            number: status.length,
            path,
            ..Record::default()
        };
        turn.append(What::Truncate, &record);
    }
    done
}

fn rename(
    from: [c_long; 2],
    to: [c_long; 2],
    flags: c_long,
    real: impl FnOnce() -> c_long,
) -> c_long {
    let [from, to] = [from, to].map(|[folder, path]| PathBytes::of_argument(folder, path));
    if !counts(to.as_bytes()) {
        return real();
    }
    let turn = turn();
    if let Some(error) = refused(&turn, Kind::Rename, to.as_bytes()) {
        return error;
    }
    let done = real();
    if done == 0 {
        let record = Record {
            number: u64::from(flags & c_long::from(libc::RENAME_EXCHANGE) != 0),
            path: from.as_bytes(),
            second: to.as_bytes(),
            ..Record::default()
        };
        turn.append(What::Rename, &record);
    }
    done
}

/// A change of one name.
fn name(
    kind: Kind,
    what: What,
    [folder, path]: [c_long; 2],
    real: impl FnOnce() -> c_long,
) -> c_long {
    let named = PathBytes::of_argument(folder, path);
    let named = named.as_bytes();
    if !counts(named) {
        return real();
    }
    let turn = turn();
    if let Some(error) = refused(&turn, kind, named) {
        return error;
    }
    let done = real();
    if done == 0 {
        let inode = status_at(folder, path).map_or(0, |status| status.inode);
        let record = Record {
            inode,
            path: named,
            ..Record::default()
        };
        turn.append(what, &record);
    }
    done
}

fn read(file: c_long, real: impl FnOnce() -> c_long) -> c_long {
    let path = PathBytes::of_descriptor(file);
    if !counts(path.as_bytes()) {
        return real();
    }
    if let Some(error) = refusal(Kind::Read, path.as_bytes()) {
        return -error;
    }
    real()
}
