//! What was recorded, and what of it is on the disks after a power cut.

use crate::chance::Chance;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Blocks of a disk, and the places in the journal that have their content.
pub type Places = HashMap<u64, u64>;

/// Something that was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    /// A block was written; its content is at a place of the journal.
    Write {
        /// The number of the disk.
        disk: u32,
        /// The block of the disk.
        block: u64,
        /// The block of the journal.
        place: u64,
    },
    /// Everything that was written to a disk before has become durable.
    Flush {
        /// The number of the disk.
        disk: u32,
    },
}

/// What a disk was given from the begin of the recording until a mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AtMark {
    /// Its name.
    pub name: String,
    /// Requests.
    pub writes: u64,
    /// Requests.
    pub flushes: u64,
    /// Blocks that were written and not flushed since.
    pub unflushed_blocks: u64,
}

/// A disk after a power cut at a mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AfterCut {
    /// What it had been given.
    #[serde(flatten)]
    pub at: AtMark,
    /// Blocks of those not flushed that are there nevertheless.
    pub kept_blocks: u64,
}

/// A disk at a place in what was recorded.
#[derive(Debug, Default)]
struct Replayed {
    flushed: Places,
    /// Each version of a block since the last flush, the oldest first. In order of the blocks, so
    /// that the seed alone decides which are kept.
    unflushed: BTreeMap<u64, Vec<u64>>,
}

/// All disks at a place in what was recorded.
#[derive(Debug)]
pub(crate) struct Replay {
    done: usize,
    disks: Vec<Replayed>,
}

impl Replay {
    /// So many disks at the begin.
    pub fn new(disks: usize) -> Self {
        Self { done: 0, disks: (0..disks).map(|_| Replayed::default()).collect() }
    }

    /// Go on, or back, to the end of `entries`, the first ones of all that was recorded.
    pub(crate) fn go(&mut self, entries: &[Entry]) {
        if entries.len() < self.done {
            *self = Self::new(self.disks.len());
        }
        for entry in &entries[self.done..] {
            match *entry {
                Entry::Write { disk, block, place } => {
                    self.disks[disk as usize].unflushed.entry(block).or_default().push(place);
                }
                Entry::Flush { disk } => {
                    let Replayed { flushed, unflushed } = &mut self.disks[disk as usize];
                    let newest =
                        |(block, versions): (u64, Vec<u64>)| Some((block, *versions.last()?));
                    flushed.extend(std::mem::take(unflushed).into_iter().filter_map(newest));
                }
            }
        }
        self.done = entries.len();
    }

    /// Where the newest flushed content of a block is; None: in the disk's file.
    pub fn flushed(&self, disk: usize, block: u64) -> Option<u64> {
        self.disks[disk].flushed.get(&block).copied()
    }

    /// What disks have written by themselves: of each block that is not flushed, with the
    /// probability `keep`, one of its versions.
    pub fn kept(&self, keep: f64, seed: u64) -> Vec<Places> {
        let mut chance = Chance::new(seed);
        let mut choose = |(&block, versions): (&u64, &Vec<u64>)| {
            if chance.share() >= keep {
                return None;
            }
            let version = (chance.share() * versions.len() as f64) as usize;
            Some((block, versions[version]))
        };
        self.disks
            .iter()
            .map(|one| one.unflushed.iter().filter_map(&mut choose).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(disk: u32, block: u64, place: u64) -> Entry {
        Entry::Write { disk, block, place }
    }

    #[test]
    fn a_flush_is_of_its_own_disk_and_of_what_was_before_it() {
        let entries = [
            write(0, 5, 0),
            write(1, 5, 1),
            write(0, 5, 2),
            Entry::Flush { disk: 0 },
            write(0, 5, 3),
        ];
        let mut replay = Replay::new(2);
        replay.go(&entries);
        assert_eq!((replay.flushed(0, 5), replay.flushed(1, 5)), (Some(2), None));
        assert_eq!(replay.kept(1.0, 0), [Places::from([(5, 3)]), Places::from([(5, 1)])]);
        assert_eq!(replay.kept(0.0, 0), [Places::new(), Places::new()]);
    }

    #[test]
    fn going_back_is_as_never_having_gone_further() {
        let entries = [write(0, 1, 0), Entry::Flush { disk: 0 }, write(0, 2, 1)];
        let mut replay = Replay::new(1);
        replay.go(&entries);
        replay.go(&entries[..1]);
        assert_eq!(replay.flushed(0, 1), None);
        assert_eq!(replay.kept(1.0, 0), [Places::from([(1, 0)])]);
    }

    #[test]
    fn the_seed_decides_which_blocks_and_versions_are_kept_and_the_share_how_many() {
        let entries: Vec<Entry> = (0..4000).map(|at| write(0, at % 1000, at)).collect();
        let mut replay = Replay::new(1);
        replay.go(&entries);
        let [kept] = &replay.kept(0.3, 7)[..] else { panic!("one disk") };
        assert!((250..350).contains(&kept.len()), "{}", kept.len());
        for version in 0..4 {
            let of_it = kept.values().filter(|&&place| place / 1000 == version).count();
            assert!((50..100).contains(&of_it), "{of_it} of version {version}");
        }
        assert_eq!(&replay.kept(0.3, 7)[0], kept);
        assert_ne!(&replay.kept(0.3, 8)[0], kept);
    }
}
