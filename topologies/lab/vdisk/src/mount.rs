//! The file system: a file for each disk, in one folder that never changes.

use crate::counts::Counts;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Nothing of this file system changes by itself.
const FOREVER: Duration = Duration::from_secs(86400);
/// Requests of all loop devices above that may be under way at once.
const MOST_REQUESTS: u16 = 4096;
/// Threads that take requests: one may wait for the machine's disk while another goes on.
const READERS: usize = 2;
const LARGEST_WRITE_BYTES: u32 = 1 << 20;

/// A disk, as a file of its size.
pub trait Device: Send + Sync {
    /// Its file's name.
    fn name(&self) -> &str;
    /// Its size in bytes.
    fn size(&self) -> u64;
    /// What it has done.
    fn counts(&self) -> Counts;
    /// Serve with the times of its model, or without delay and cache. What is in the cache is in
    /// the file before this returns.
    fn pace(&self, on: bool);
    /// Read bytes, which are below its size.
    fn read(&self, start: u64, bytes: u32, reply: ReplyData);
    /// Write bytes below its size.
    fn write(&self, start: u64, data: &[u8], reply: ReplyWrite);
    /// Empty its cache.
    fn flush(&self, reply: ReplyEmpty);
    /// Discard bytes below its size; takes no time.
    fn discard(&self, start: u64, bytes: u64, reply: ReplyEmpty);
}

/// How many descriptors of disks are open.
#[derive(Debug, Default)]
pub struct Open {
    count: Mutex<u64>,
    none: Condvar,
}

impl Open {
    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open after so long at most, or earlier none.
    pub fn after(&self, most: Duration) -> u64 {
        let waited = self.none.wait_timeout_while(self.count(), most, |count| *count > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The files of disks.
pub struct Files {
    disks: Vec<Arc<dyn Device>>,
    open: Arc<Open>,
    /// Called when the last descriptor is closed.
    closed: Box<dyn Fn() + Send + Sync>,
}

impl Files {
    /// The file system of these disks.
    pub fn new(
        disks: Vec<Arc<dyn Device>>,
        open: Arc<Open>,
        closed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { disks, open, closed: Box::new(closed) }
    }

    fn disk(&self, inode: INodeNo) -> Option<&Arc<dyn Device>> {
        self.disks.get(usize::try_from(inode.0.checked_sub(2)?).ok()?)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let root = inode == INodeNo::ROOT;
        let size = if root { 0 } else { self.disk(inode)?.size() };
        let epoch = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: epoch,
            mtime: epoch,
            ctime: epoch,
            crtime: epoch,
            kind: if root { FileType::Directory } else { FileType::RegularFile },
            perm: if root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

/// Mount the files at a folder.
/// Errors: Why the kernel refuses.
pub fn mount(files: Files, folder: &Path) -> io::Result<Session<Files>> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("weighbridge".to_owned()),
        MountOption::Subtype("vdisk".to_owned()),
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(READERS);
    Session::new(files, folder, &config)
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A loop device's requests stay asynchronous; without this a thread would wait for each.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "this kernel's FUSE has no direct I/O")
        })?;
        let smaller = |_| io::Error::new(io::ErrorKind::Unsupported, "this kernel's FUSE is small");
        config.set_max_background(MOST_REQUESTS).map_err(smaller)?;
        config.set_congestion_threshold(MOST_REQUESTS).map_err(smaller)?;
        let smaller = |_| io::Error::new(io::ErrorKind::Unsupported, "this kernel's FUSE is small");
        config.set_max_write(LARGEST_WRITE_BYTES).map_err(smaller)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let index = self.disks.iter().position(|disk| name.to_str() == Some(disk.name()));
        match index.filter(|_| parent == INodeNo::ROOT) {
            Some(index) => {
                let inode = INodeNo(index as u64 + 2);
                let attributes = self.attributes(inode).expect("it was found");
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.disk(inode).is_none() {
            return reply.error(Errno::ENOENT);
        }
        *self.open.count() += 1;
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), direct);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        let left = disk.size().saturating_sub(offset).min(u64::from(size));
        if left == 0 {
            return reply.data(&[]);
        }
        disk.read(offset, left as u32, reply);
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > disk.size()) {
            return reply.error(Errno::ENOSPC);
        }
        disk.write(offset, data, reply);
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        disk.flush(reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // fallocate(2): discards and zeros keep the size; nothing else is asked of a disk.
        const KEEP_SIZE: i32 = 1;
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        let inside = offset.checked_add(length).is_some_and(|end| end <= disk.size());
        let known = mode & KEEP_SIZE != 0 && mode & (PUNCH_HOLE | ZERO_RANGE) != 0;
        if !known || !inside {
            return reply.error(Errno::EOPNOTSUPP);
        }
        disk.discard(offset, length, reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok(); // close(2), which is no flush of a disk
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        let mut count = self.open.count();
        *count -= 1;
        if *count == 0 {
            self.open.none.notify_all();
            drop(count);
            (self.closed)();
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let parents = [".", ".."].map(|name| (1, FileType::Directory, name));
        let names = self.disks.iter().enumerate();
        let files =
            names.map(|(index, disk)| (index as u64 + 2, FileType::RegularFile, disk.name()));
        let all = parents.into_iter().chain(files).enumerate();
        for (index, (inode, kind, name)) in all.skip(offset as usize) {
            if reply.add(INodeNo(inode), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
