//! The system's calls, past the filter, and what they tell of files.

use libc::{c_int, c_long};

/// In the upper half of a call's sixth argument, it says that the call is ours and goes through.
/// No call has a sixth argument that reaches there.
pub(crate) const OURS: u32 = 0x636f_6666;

/// A call's number and arguments, as the registers had them.
pub(crate) type Arguments = [c_long; 6];

/// Makes a call, and returns what the kernel does: a value, or an error's number, negative.
pub(crate) fn call(number: c_long, arguments: &Arguments) -> c_long {
    let [a, b, c, d, e, f] = *arguments;
    let last = (f & 0xffff_ffff) | (c_long::from(OURS) << 32);
    // SAFETY: the arguments are those that the program was about to give to the kernel itself, or
    // point to memory that the caller here holds.
    let done = unsafe { libc::syscall(number, a, b, c, d, e, last) };
    match done {
        // SAFETY: it is this thread's own `errno`.
        -1 => -c_long::from(unsafe { *libc::__errno_location() }),
        done => done,
    }
}

/// A path, in memory that needs no allocation: this runs where allocating may not be allowed.
pub(crate) struct PathBytes {
    bytes: [u8; libc::PATH_MAX as usize],
    length: usize,
}

impl PathBytes {
    fn new() -> Self {
        Self {
            bytes: [0; libc::PATH_MAX as usize],
            length: 0,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, more: &[u8]) {
        let end = (self.length + more.len()).min(self.bytes.len());
        self.bytes[self.length..end].copy_from_slice(&more[..end - self.length]);
        self.length = end;
    }

    fn target_of(link: &[u8]) -> Self {
        let mut path = Self::new();
        let arguments = [
            link.as_ptr() as c_long,
            path.bytes.as_mut_ptr() as c_long,
            path.bytes.len() as c_long,
            0,
            0,
            0,
        ];
        path.length = usize::try_from(call(libc::SYS_readlink, &arguments)).unwrap_or(0);
        path
    }

    /// The path behind a descriptor; that of a file without a name has ` (deleted)` behind.
    pub(crate) fn of_descriptor(descriptor: c_long) -> Self {
        link_of(descriptor).map_or_else(Self::new, |link| Self::target_of(&link))
    }

    /// The path that a call names, `folder` and all, absolute.
    pub(crate) fn of_argument(folder: c_long, path: c_long) -> Self {
        // SAFETY: a path that is given to the kernel is a string that ends; the kernel would read
        // it as well.
        let named = unsafe { std::ffi::CStr::from_ptr(path as *const libc::c_char) }.to_bytes();
        if named.starts_with(b"/") {
            let mut whole = Self::new();
            whole.push(named);
            return whole;
        }
        let mut whole = match folder as c_int {
            libc::AT_FDCWD => Self::target_of(b"/proc/self/cwd\0"),
            _ => Self::of_descriptor(folder),
        };
        whole.push(b"/");
        whole.push(named);
        whole
    }
}

/// The name of a descriptor's link, which the file can be opened by again.
fn link_of(descriptor: c_long) -> Option<[u8; 26]> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0; 11];
    let (mut left, mut count) = (descriptor as c_int, 0);
    if left < 0 {
        return None;
    }
    loop {
        digits[count] = b'0' + (left % 10) as u8;
        (left, count) = (left / 10, count + 1);
        if left == 0 {
            break;
        }
    }
    for at in 0..count {
        link[14 + at] = digits[count - 1 - at];
    }
    Some(link)
}

/// Reads what was just written to a file that may be open for writing alone.
pub(crate) fn read_back(descriptor: c_long, out: &mut [u8], offset: c_long) {
    let link = link_of(descriptor).expect("an open file");
    let flags = c_long::from(libc::O_RDONLY | libc::O_CLOEXEC);
    let here = c_long::from(libc::AT_FDCWD);
    let opened = call(
        libc::SYS_openat,
        &[here, link.as_ptr() as c_long, flags, 0, 0, 0],
    );
    assert!(opened >= 0, "the file can't be opened to read back");
    let (mut start, mut left, mut offset) =
        (out.as_mut_ptr() as c_long, out.len() as c_long, offset);
    while left > 0 {
        let count = call(libc::SYS_pread64, &[opened, start, left, offset, 0, 0]);
        assert!(count > 0, "the file can't be read back");
        (start, left, offset) = (start + count, left - count, offset + count);
    }
    call(libc::SYS_close, &[opened, 0, 0, 0, 0, 0]);
}

/// What is known of a file.
pub(crate) struct Status {
    pub(crate) inode: u64,
    pub(crate) length: u64,
    pub(crate) is_folder: bool,
}

fn status(get: impl FnOnce(*mut libc::stat) -> c_int) -> Option<Status> {
    // SAFETY: all of a `stat` are numbers, for which zeros are values.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    (get(&mut stat) == 0).then_some(Status {
        inode: stat.st_ino,
        length: stat.st_size as u64,
        is_folder: stat.st_mode & libc::S_IFMT == libc::S_IFDIR,
    })
}

/// Of an open file.
pub(crate) fn status_of(descriptor: c_long) -> Option<Status> {
    // SAFETY: it fills the structure that it is given.
    status(|stat| unsafe { libc::fstat(descriptor as c_int, stat) })
}

/// Of the file that a call names.
pub(crate) fn status_at(folder: c_long, path: c_long) -> Option<Status> {
    let path = path as *const libc::c_char;
    // SAFETY: it fills the structure that it is given; the path is the call's own.
    status(|stat| unsafe { libc::fstatat(folder as c_int, path, stat, 0) })
}
