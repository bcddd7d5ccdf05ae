//! Disks whose power can be cut: each write and flush is remembered, so that the disks can be made
//! again as a cut at any mark would have left them.
//!
//! One lock is held over all disks while something is written, flushed or marked: a mark is one
//! instant on all of them. Disks' files stay as they were when recording began. Contents are only
//! ever appended to the journal's file, by blocks, so that a place in it keeps its content.

use crate::dirty::{BLOCK, Extent};
use crate::replay::{AfterCut, AtMark, Entry, Places, Replay};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const LENGTH: usize = BLOCK as usize;

/// What is done with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Writes go to the disks' files.
    Before,
    /// Writes go to the journal.
    Recorded,
    /// There is no power.
    Off,
    /// Writes go to the journal's file, beyond what was recorded, and are not remembered.
    Again,
}

/// A number of an instant, and what disks had been given until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// From 1 on.
    pub number: usize,
    /// All disks.
    pub disks: Vec<AtMark>,
}

struct Marked {
    entries: usize,
    disks: Vec<AtMark>,
}

struct Disk {
    counts: AtMark,
    /// What this life has written.
    newest: Places,
    /// Places before this one were flushed.
    flushed: u64,
}

struct State {
    life: Life,
    /// Whether what is flushed is kept, or flushes are answered only.
    flushes: bool,
    disks: Vec<Disk>,
    /// Blocks in the journal's file.
    blocks: u64,
    /// Those of them that were recorded.
    recorded: u64,
    entries: Vec<Entry>,
    marks: Vec<Marked>,
    replay: Replay,
    /// Why nothing is served any more.
    failed: Option<String>,
}

/// The disks of a deployment, and what was written to them.
pub struct Journal {
    file: File,
    disks: Vec<File>,
    state: Mutex<State>,
}

/// No power, or a file of this program that failed: the latter was said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off;

/// Where content is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Disk(u64),
    Journal(u64),
}

impl Source {
    fn next(self) -> Self {
        match self {
            Source::Disk(block) => Source::Disk(block + 1),
            Source::Journal(place) => Source::Journal(place + 1),
        }
    }
}

impl State {
    fn source(&self, disk: usize, block: u64) -> Source {
        let newest = self.disks[disk].newest.get(&block).copied();
        let place = newest.or_else(|| self.replay.flushed(disk, block));
        place.map_or(Source::Disk(block), Source::Journal)
    }

    fn works(&self) -> Result<(), String> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Remember a failure of a file: from then on nothing is served, and each order says why.
    fn fail(&mut self, error: &io::Error) -> Off {
        if self.failed.is_none() {
            let what = format!("a file of the disks or their journal: {error}");
            eprintln!("vdisk: {what}; all disks fail from now on");
            self.failed = Some(what);
        }
        Off
    }
}

impl Journal {
    /// Disks by name and file, which has a multiple of `BLOCK` bytes, and an empty file.
    pub fn new(file: File, disks: Vec<(String, File)>) -> Self {
        let (names, disks): (Vec<String>, Vec<File>) = disks.into_iter().unzip();
        let state = State {
            life: Life::Before,
            flushes: true,
            replay: Replay::new(disks.len()),
            disks: names
                .into_iter()
                .map(|name| Disk {
                    counts: AtMark { name, ..AtMark::default() },
                    newest: Places::new(),
                    flushed: 0,
                })
                .collect(),
            blocks: 0,
            recorded: 0,
            entries: Vec::new(),
            marks: Vec::new(),
            failed: None,
        };
        Self { file, disks, state: Mutex::new(state) }
    }

    /// Read bytes of a disk, which are below its size.
    /// Errors: Without power.
    pub fn read(&self, disk: usize, start: u64, bytes: usize) -> Result<Vec<u8>, Off> {
        let extent = Extent::of(start, bytes as u64);
        let sources: Vec<Source> = {
            let state = self.served()?;
            let blocks = extent.block..extent.block + extent.count;
            blocks.map(|block| state.source(disk, block)).collect()
        };
        // Without the lock: nothing changes at a place of the journal, nor in a disk's file once
        // the journal has content.
        let mut data = self.content(disk, &sources).map_err(|error| self.state().fail(&error))?;
        data.truncate((start - extent.block * BLOCK) as usize + bytes);
        data.drain(..data.len() - bytes);
        Ok(data)
    }

    /// Write bytes below a disk's size.
    /// Errors: Without power.
    pub fn write(&self, disk: usize, start: u64, data: &[u8]) -> Result<(), Off> {
        let mut state = self.served()?;
        let done = if state.life == Life::Before {
            self.disks[disk].write_all_at(data, start)
        } else {
            self.append(&mut state, disk, start, data)
        };
        done.map_err(|error| state.fail(&error))
    }

    /// Make durable what was written to a disk.
    /// Errors: Without power.
    pub fn flush(&self, disk: usize) -> Result<(), Off> {
        let mut state = self.served()?;
        if state.life == Life::Recorded {
            state.disks[disk].counts.flushes += 1;
            if state.flushes {
                state.entries.push(Entry::Flush { disk: disk as u32 });
                state.disks[disk].flushed = state.blocks;
                state.disks[disk].counts.unflushed_blocks = 0;
            }
        }
        Ok(())
    }

    /// Discard bytes, until recording begins: then nothing is done, and the answer is false.
    /// Errors: Without power.
    pub fn discard(&self, disk: usize, start: u64, bytes: u64) -> Result<bool, Off> {
        let mut state = self.served()?;
        if state.life != Life::Before {
            return Ok(false);
        }
        let done = crate::store::punch(&self.disks[disk], start, bytes);
        done.map(|()| true).map_err(|error| state.fail(&error))
    }

    /// Record from now on. Without `flushes`, those are answered, and keep nothing.
    /// Errors: If it was recorded before, or a file failed.
    pub fn record(&self, flushes: bool) -> Result<(), String> {
        let mut state = self.state();
        state.works()?;
        if state.life != Life::Before {
            return Err("disks were recorded already".to_owned());
        }
        state.life = Life::Recorded;
        state.flushes = flushes;
        Ok(())
    }

    /// Remember this instant.
    /// Errors: If nothing is recorded, or a file failed.
    pub fn mark(&self) -> Result<Mark, String> {
        let mut state = self.state();
        state.works()?;
        if state.life != Life::Recorded {
            return Err("a mark is for disks that are being recorded".to_owned());
        }
        let disks: Vec<AtMark> = state.disks.iter().map(|one| one.counts.clone()).collect();
        let entries = state.entries.len();
        state.marks.push(Marked { entries, disks: disks.clone() });
        Ok(Mark { number: state.marks.len(), disks })
    }

    /// Serve nothing from now on.
    /// Errors: Disks were never recorded, or a file failed before: what was written is not known.
    pub fn cut(&self) -> Result<(), String> {
        let mut state = self.state();
        if state.life == Life::Before {
            return Err("power is cut of disks that were recorded".to_owned());
        }
        state.life = Life::Off;
        state.works()
    }

    /// Serve again, after a power cut at a mark: what was flushed is there, and of each other block
    /// that was written, with the probability `keep`, one version. Nobody has a disk open.
    /// Errors: If there is no such mark, disks are being recorded, or a file failed.
    pub fn restore(&self, mark: usize, keep: f64, seed: u64) -> Result<Vec<AfterCut>, String> {
        let mut guard = self.state();
        let state = &mut *guard;
        state.works()?;
        if state.life == Life::Before || state.life == Life::Recorded {
            return Err("disks are restored after a cut".to_owned());
        }
        if !(0.0..=1.0).contains(&keep) {
            return Err(format!("keep is {keep}, not from 0 to 1"));
        }
        let marks = state.marks.len();
        let marked = mark.checked_sub(1).and_then(|index| state.marks.get(index));
        let marked = marked.ok_or_else(|| format!("there is no mark {mark}, but 1 to {marks}"))?;
        state.replay.go(&state.entries[..marked.entries]);
        let kept = state.replay.kept(keep, seed);
        let after = |(at, kept): (&AtMark, &Places)| AfterCut {
            at: at.clone(),
            kept_blocks: kept.len() as u64,
        };
        let answer = marked.disks.iter().zip(&kept).map(after).collect();
        for (disk, places) in state.disks.iter_mut().zip(kept) {
            disk.newest = places;
        }
        state.blocks = state.recorded;
        if let Err(error) = self.file.set_len(state.recorded * BLOCK) {
            state.fail(&error);
            return state.works().map(|()| answer);
        }
        state.life = Life::Again;
        Ok(answer)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked ends the process (see main): nobody sees what it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, while there is power.
    fn served(&self) -> Result<MutexGuard<'_, State>, Off> {
        let state = self.state();
        if state.life == Life::Off || state.failed.is_some() { Err(Off) } else { Ok(state) }
    }

    /// The content of blocks.
    fn content(&self, disk: usize, sources: &[Source]) -> io::Result<Vec<u8>> {
        let mut data = vec![0; sources.len() * LENGTH];
        let mut rest = data.as_mut_slice();
        for run in sources.chunk_by(|one, then| one.next() == *then) {
            let (part, after) = rest.split_at_mut(run.len() * LENGTH);
            match run[0] {
                Source::Disk(block) => self.disks[disk].read_exact_at(part, block * BLOCK)?,
                Source::Journal(place) => self.file.read_exact_at(part, place * BLOCK)?,
            }
            rest = after;
        }
        Ok(data)
    }

    /// Append the blocks that bytes touch; what the bytes do not cover of them is as it was.
    fn append(&self, state: &mut State, disk: usize, start: u64, data: &[u8]) -> io::Result<()> {
        let extent = Extent::of(start, data.len() as u64);
        let place = state.blocks;
        if extent.bytes() == data.len() as u64 {
            self.file.write_all_at(data, place * BLOCK)?;
        } else {
            let blocks = extent.block..extent.block + extent.count;
            let sources: Vec<Source> = blocks.map(|block| state.source(disk, block)).collect();
            let mut complete = self.content(disk, &sources)?;
            let from = (start - extent.block * BLOCK) as usize;
            complete[from..from + data.len()].copy_from_slice(data);
            self.file.write_all_at(&complete, place * BLOCK)?;
        }
        state.blocks += extent.count;
        let recorded = state.life == Life::Recorded;
        if recorded {
            state.recorded = state.blocks;
            state.disks[disk].counts.writes += 1;
        }
        for (block, place) in (extent.block..).zip(place..state.blocks) {
            let one = &mut state.disks[disk];
            let before = one.newest.insert(block, place);
            if recorded {
                let unflushed = before.is_some_and(|before| before >= one.flushed);
                one.counts.unflushed_blocks += u64::from(!unflushed);
                state.entries.push(Entry::Write { disk: disk as u32, block, place });
            }
        }
        Ok(())
    }
}
