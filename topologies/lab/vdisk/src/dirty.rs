//! Which blocks wait in a disk's volatile cache, and for which flush.

use std::collections::BTreeMap;

/// Bytes of a block of the cache.
pub const BLOCK: u64 = 4096;

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub block: u64,
    /// How many.
    pub count: u64,
}

impl Extent {
    /// The blocks that these bytes touch.
    pub fn of(start: u64, bytes: u64) -> Self {
        let block = start / BLOCK;
        Self { block, count: (start + bytes).div_ceil(BLOCK) - block }
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.count * BLOCK
    }
}

/// What is being written to the media, and is in the cache until it is there.
#[derive(Debug)]
pub struct Staged {
    /// The blocks.
    pub extent: Extent,
    epochs: Vec<u64>,
}

/// The blocks of a cache. Epochs are the times between two flushes: a flush has to wait for the
/// blocks of its own epoch and those before.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    blocks: BTreeMap<u64, u64>,
    waiting: BTreeMap<u64, u64>,
    epoch: u64,
    staged: u64,
    runs: usize,
}

impl Dirty {
    /// Bytes in the cache, those on their way to the media included.
    pub fn bytes(&self) -> u64 {
        (self.blocks.len() as u64 + self.staged) * BLOCK
    }

    /// Runs of consecutive blocks that are left to be destaged.
    pub fn places(&self) -> usize {
        self.runs
    }

    /// Whether nothing is left to be destaged.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether the cache has all of an extent.
    pub fn has(&self, extent: Extent) -> bool {
        let range = extent.block..extent.block + extent.count;
        self.blocks.range(range).count() as u64 == extent.count
    }

    /// Room that an extent needs beyond what the cache has of it.
    pub(crate) fn room(&self, extent: Extent) -> u64 {
        let range = extent.block..extent.block + extent.count;
        (extent.count - self.blocks.range(range).count() as u64) * BLOCK
    }

    /// Take an extent in. A block that waits for an earlier flush goes on to.
    pub fn add(&mut self, extent: Extent) {
        for block in extent.block..extent.block + extent.count {
            if self.blocks.contains_key(&block) {
                continue;
            }
            self.runs = self.runs + 1 - self.neighbours(block);
            self.blocks.insert(block, self.epoch);
            *self.waiting.entry(self.epoch).or_default() += 1;
        }
    }

    /// Forget an extent that was discarded.
    pub fn discard(&mut self, extent: Extent) {
        let range = extent.block..extent.block + extent.count;
        let found: Vec<u64> = self.blocks.range(range).map(|(&block, _)| block).collect();
        for block in found {
            let epoch = self.remove(block);
            self.leave(epoch);
        }
    }

    /// Begin the next epoch; returns the one that has ended.
    pub fn flush(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch - 1
    }

    /// Whether everything of an epoch, and those before, is on the media.
    pub(crate) fn is_durable(&self, epoch: u64) -> bool {
        self.waiting.first_key_value().is_none_or(|(&oldest, _)| oldest > epoch)
    }

    /// The runs of blocks from a place on, wrapping at the end, of at most `longest` blocks each.
    pub(crate) fn runs(&self, from: u64, longest: u64, most: usize) -> Vec<Extent> {
        let mut runs: Vec<Extent> = Vec::with_capacity(most.min(64));
        let around = self.blocks.range(from..).chain(self.blocks.range(..from));
        for (&block, _) in around {
            if let Some(last) = runs.last_mut() {
                if last.block + last.count == block && last.count < longest {
                    last.count += 1;
                    continue;
                }
            }
            if runs.len() == most {
                break;
            }
            runs.push(Extent { block, count: 1 });
        }
        runs
    }

    /// Begin to write an extent, all of which is in the cache, to the media.
    pub(crate) fn stage(&mut self, extent: Extent) -> Staged {
        let epochs: Vec<u64> =
            (extent.block..extent.block + extent.count).map(|block| self.remove(block)).collect();
        self.staged += extent.count;
        Staged { extent, epochs }
    }

    /// An extent is on the media.
    pub fn done(&mut self, staged: &Staged) {
        self.staged -= staged.extent.count;
        for &epoch in &staged.epochs {
            self.leave(epoch);
        }
    }

    fn neighbours(&self, block: u64) -> usize {
        let before = block.checked_sub(1).is_some_and(|one| self.blocks.contains_key(&one));
        usize::from(before) + usize::from(self.blocks.contains_key(&(block + 1)))
    }

    /// Take a block out, which is there.
    fn remove(&mut self, block: u64) -> u64 {
        self.runs = self.runs + self.neighbours(block) - 1;
        self.blocks.remove(&block).expect("the caller found it")
    }

    fn leave(&mut self, epoch: u64) {
        let count = self.waiting.get_mut(&epoch).expect("its blocks were counted");
        *count -= 1;
        if *count == 0 {
            self.waiting.remove(&epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(block: u64, count: u64) -> Extent {
        Extent { block, count }
    }

    #[test]
    fn a_flush_waits_for_what_was_written_before_it_and_for_nothing_after() {
        let mut dirty = Dirty::default();
        dirty.add(extent(0, 2));
        let flushed = dirty.flush();
        dirty.add(extent(10, 1));
        let staged = dirty.stage(extent(0, 2));
        assert!(!dirty.is_durable(flushed));
        dirty.done(&staged);
        assert!(dirty.is_durable(flushed));
        assert_eq!(dirty.bytes(), BLOCK);
    }

    #[test]
    fn a_block_that_is_written_again_still_counts_for_the_earlier_flush() {
        let mut dirty = Dirty::default();
        dirty.add(extent(5, 1));
        let flushed = dirty.flush();
        dirty.add(extent(5, 1));
        assert!(!dirty.is_durable(flushed));
        let staged = dirty.stage(extent(5, 1));
        dirty.add(extent(5, 1));
        dirty.done(&staged);
        assert!(dirty.is_durable(flushed));
        assert!(!dirty.is_empty());
    }

    #[test]
    fn runs_begin_at_the_head_and_wrap() {
        let mut dirty = Dirty::default();
        for one in [extent(1, 2), extent(8, 5), extent(20, 1)] {
            dirty.add(one);
        }
        let runs = dirty.runs(9, 3, 9);
        assert_eq!(runs, [extent(9, 3), extent(12, 1), extent(20, 1), extent(1, 2), extent(8, 1)]);
        assert_eq!(dirty.runs(0, 9, 1), [extent(1, 2)]);
    }

    #[test]
    fn bytes_that_touch_two_blocks_are_two_blocks() {
        assert_eq!(Extent::of(4095, 2), extent(0, 2));
        assert_eq!(Extent::of(8192, 4096), extent(2, 1));
    }
}
