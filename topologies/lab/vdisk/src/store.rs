//! The data of a disk: a durable file, and over it the blocks of the volatile cache. What is
//! cached is in memory alone until it is persisted.

use crate::dirty::{BLOCK, Extent};
use rustix::fs::FallocateFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

const LENGTH: usize = BLOCK as usize;

type Block = Arc<[u8; LENGTH]>;

/// A durable file and what is cached of it.
pub struct Store {
    file: File,
    cached: Mutex<HashMap<u64, Block>>,
    /// Held while blocks go to the file, so that no older one overwrites a newer one.
    persisting: Mutex<()>,
}

fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A thread that panicked ends the process (see main): nobody sees what it left.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// A store over a file, which has the disk's size.
    pub fn new(file: File) -> Self {
        Self { file, cached: Mutex::default(), persisting: Mutex::default() }
    }

    /// Read bytes, which are below the disk's size: what is cached first.
    /// Errors: Those of the file.
    pub fn read(&self, start: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; bytes];
        let extent = Extent::of(start, bytes as u64);
        let hits: Vec<(u64, Block)> = {
            let cached = held(&self.cached);
            if cached.is_empty() {
                Vec::new()
            } else {
                let blocks = extent.block..extent.block + extent.count;
                blocks.filter_map(|block| Some((block, cached.get(&block)?.clone()))).collect()
            }
        };
        // A block that is not cached now has its last content in the file.
        if hits.len() as u64 != extent.count {
            self.file.read_exact_at(&mut data, start)?;
        }
        for (block, content) in hits {
            let (to, from, length) = overlap(block, start, bytes);
            data[to..to + length].copy_from_slice(&content[from..from + length]);
        }
        Ok(data)
    }

    /// Put bytes into the cache.
    /// Errors: Those of the file, from which blocks that are written in part get their rest.
    pub fn cache(&self, start: u64, data: &[u8]) -> io::Result<()> {
        let extent = Extent::of(start, data.len() as u64);
        for block in extent.block..extent.block + extent.count {
            let (from, to, length) = overlap(block, start, data.len());
            let part = &data[from..from + length];
            let content = if length == LENGTH {
                Arc::new(part.try_into().expect("a complete block"))
            } else {
                let rest = self.read(block * BLOCK, LENGTH)?;
                let mut content: [u8; LENGTH] = rest.try_into().expect("a complete block");
                content[to..to + length].copy_from_slice(part);
                Arc::new(content)
            };
            held(&self.cached).insert(block, content);
        }
        Ok(())
    }

    /// Write bytes to the file; nothing is cached meanwhile.
    /// Errors: Those of the file.
    pub fn write(&self, start: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, start)
    }

    /// Move cached blocks to the file.
    /// Errors: Those of the file; the blocks stay in the cache.
    pub fn persist(&self, extent: Extent) -> io::Result<()> {
        let _alone = held(&self.persisting);
        let found: Vec<(u64, Block)> = {
            let cached = held(&self.cached);
            let blocks = extent.block..extent.block + extent.count;
            blocks.filter_map(|block| Some((block, cached.get(&block)?.clone()))).collect()
        };
        for run in found.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
            if let [(block, content)] = run {
                self.file.write_all_at(content.as_slice(), block * BLOCK)?;
                continue;
            }
            let joined: Vec<u8> =
                run.iter().flat_map(|(_, content)| content.as_slice()).copied().collect();
            self.file.write_all_at(&joined, run[0].0 * BLOCK)?;
        }
        let mut cached = held(&self.cached);
        for (block, content) in found {
            // One that was written again meanwhile stays.
            if cached.get(&block).is_some_and(|now| Arc::ptr_eq(now, &content)) {
                cached.remove(&block);
            }
        }
        Ok(())
    }

    /// Move everything to the file.
    /// Errors: Those of the file.
    pub fn persist_all(&self) -> io::Result<()> {
        let mut blocks: Vec<u64> = held(&self.cached).keys().copied().collect();
        blocks.sort_unstable();
        for run in blocks.chunk_by(|a, b| a + 1 == *b) {
            self.persist(Extent { block: run[0], count: run.len() as u64 })?;
        }
        Ok(())
    }

    /// Discard bytes: they are zeros from now on, and take no space.
    /// Errors: Those of the file.
    pub fn discard(&self, start: u64, bytes: u64) -> io::Result<()> {
        let _alone = held(&self.persisting);
        let mut cached = held(&self.cached);
        let extent = Extent::of(start, bytes);
        let covered: Vec<u64> = if (cached.len() as u64) < extent.count {
            let blocks = extent.block..extent.block + extent.count;
            cached.keys().copied().filter(|block| blocks.contains(block)).collect()
        } else {
            (extent.block..extent.block + extent.count).collect()
        };
        for block in covered {
            let (_, from, length) = overlap(block, start, bytes as usize);
            if length == LENGTH {
                cached.remove(&block);
            } else if let Some(content) = cached.get_mut(&block) {
                Arc::make_mut(content)[from..from + length].fill(0);
            }
        }
        punch(&self.file, start, bytes)
    }
}

/// Make bytes of a file zeros that take no space.
pub(crate) fn punch(file: &File, start: u64, bytes: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, flags, start, bytes)?)
}

/// Where a block and bytes from `start` on overlap: the place in the bytes, that in the block, and
/// the length.
fn overlap(block: u64, start: u64, bytes: usize) -> (usize, usize, usize) {
    let begin = (block * BLOCK).max(start);
    let end = ((block + 1) * BLOCK).min(start + bytes as u64);
    ((begin - start) as usize, (begin - block * BLOCK) as usize, (end - begin) as usize)
}
