//! What the kernel asks, and how it is answered.
//!
//! One thread asks one question at a time, so that a question without an answer stops the disk as a
//! whole. A call that is not here gets `ENOSYS`. For `fsync` the kernel would take that as "nothing
//! to do" and say that all is well; it is here, and `forgetting.rs` would notice if it were not.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::consts::FOPEN_DIRECT_IO;
use fuser::{
    FileAttr, FileType, Filesystem, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{getgid, getuid};

use super::Shared;
use super::tree::{Attributes, Tree};

/// How long the kernel may believe what it was told.
const NOT_AT_ALL: Duration = Duration::ZERO;
const BLOCK_BYTES: u32 = 4096;
/// What there is said to be room for.
const BLOCKS: u64 = 1 << 20;
const NAME_BYTES_MAX: u32 = 255;

#[derive(Debug)]
pub(super) struct Kernel {
    shared: Arc<Shared>,
}

impl Kernel {
    pub(super) fn serving(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn operate<T>(
        &self,
        work: impl FnOnce(&mut Tree) -> Result<T, Errno>,
    ) -> Result<T, std::ffi::c_int> {
        self.shared.operate(work).map_err(Errno::raw_os_error)
    }
}

/// Answers with what there is, or with the error.
macro_rules! answer {
    ($result:expr, $reply:ident, $found:pat => $answer:expr) => {
        match $result {
            Ok($found) => $answer,
            Err(code) => $reply.error(code),
        }
    };
}

impl Filesystem for Kernel {
    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let found = self.operate(|tree| tree.look_up(parent, name));
        answer!(found, reply, found => reply.entry(&NOT_AT_ALL, &attr(found), 0));
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        let found = self.operate(|tree| tree.attributes(ino));
        answer!(found, reply, found => reply.attr(&NOT_AT_ALL, &attr(found)));
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<u64>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<u32>,
        reply: ReplyAttr,
    ) {
        let set = self.operate(|tree| {
            if let Some(mode) = mode {
                tree.set_mode(ino, mode)?;
            }
            if let Some(len) = size {
                tree.set_len(ino, len)?;
            }
            tree.attributes(ino)
        });
        answer!(set, reply, found => reply.attr(&NOT_AT_ALL, &attr(found)));
    }

    fn mkdir(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.operate(|tree| tree.create_dir(parent, name, mode & !umask));
        answer!(made, reply, made => reply.entry(&NOT_AT_ALL, &attr(made), 0));
    }

    fn create(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let exclusive = flags & OFlags::EXCL.bits().cast_signed() != 0;
        let made = self.operate(|tree| tree.create(parent, name, mode & !umask, exclusive));
        answer!(made, reply, made => reply.created(&NOT_AT_ALL, &attr(made), 0, 0, FOPEN_DIRECT_IO));
    }

    fn open(&mut self, _: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        let found = self.operate(|tree| tree.attributes(ino));
        answer!(found, reply, _ => reply.opened(0, FOPEN_DIRECT_IO));
    }

    fn rename(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let renamed = self.operate(|tree| match flags {
            0 => tree.rename((parent, name), (new_parent, new_name)),
            _ => Err(Errno::OPNOTSUPP),
        });
        answer!(renamed, reply, () => reply.ok());
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.operate(|tree| tree.remove(parent, name));
        answer!(removed, reply, () => reply.ok());
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        let read = self.operate(|tree| tree.read(ino, position(offset)?, size));
        answer!(read, reply, bytes => reply.data(&bytes));
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        data: &[u8],
        _write_flags: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let written = self.operate(|tree| {
            let bytes = u32::try_from(data.len()).map_err(|_| Errno::INVAL)?;
            tree.write(ino, position(offset)?, data)?;
            Ok(bytes)
        });
        answer!(written, reply, bytes => reply.written(bytes));
    }

    fn fallocate(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        length: i64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let reserved = self.operate(|tree| match mode {
            0 => tree.reserve(ino, position(offset)? + position(length)?),
            _ => Err(Errno::OPNOTSUPP),
        });
        answer!(reserved, reply, () => reply.ok());
    }

    /// Closing makes nothing safe.
    fn flush(&mut self, _: &Request<'_>, _ino: u64, _fh: u64, _owner: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&mut self, _: &Request<'_>, ino: u64, _fh: u64, _data: bool, reply: ReplyEmpty) {
        let synced = self.operate(|tree| tree.sync(ino));
        answer!(synced, reply, () => reply.ok());
    }

    fn fsyncdir(&mut self, _: &Request<'_>, ino: u64, _fh: u64, _data: bool, reply: ReplyEmpty) {
        let synced = self.operate(|tree| tree.sync_dir(ino));
        answer!(synced, reply, () => reply.ok());
    }

    fn readdir(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.operate(|tree| Ok((position(offset)?, tree.list(ino)?)));
        answer!(listed, reply, (offset, names) => {
            // A position is the number of names before it, so that the next one asked for is one more.
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            for (next, (found, name)) in (1..).zip(&names).skip(from) {
                if reply.add(found.number, next, kind(*found), name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn statfs(&mut self, _: &Request<'_>, _ino: u64, reply: ReplyStatfs) {
        let used = self.operate(|tree| Ok(tree.vfs().used_bytes()));
        answer!(used, reply, used => {
            let free = BLOCKS.saturating_sub(used / u64::from(BLOCK_BYTES));
            reply.statfs(BLOCKS, free, free, BLOCKS, BLOCKS, BLOCK_BYTES, NAME_BYTES_MAX, BLOCK_BYTES);
        });
    }
}

fn position(offset: i64) -> Result<u64, Errno> {
    u64::try_from(offset).map_err(|_| Errno::INVAL)
}

fn kind(found: Attributes) -> FileType {
    if found.is_dir {
        FileType::Directory
    } else {
        FileType::RegularFile
    }
}

fn attr(found: Attributes) -> FileAttr {
    let never = SystemTime::UNIX_EPOCH;
    FileAttr {
        ino: found.number,
        size: found.len,
        blocks: found.len.div_ceil(512),
        atime: never,
        mtime: never,
        ctime: never,
        crtime: never,
        kind: kind(found),
        perm: u16::try_from(found.mode & 0o7777).expect("twelve bits fit"),
        nlink: 1,
        uid: getuid().as_raw(),
        gid: getgid().as_raw(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}
