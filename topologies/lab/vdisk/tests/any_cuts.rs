//! Whatever is written, flushed and marked on several disks: after a cut at any mark each block has
//! its flushed content, or one of those written since.

use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use vdisk::dirty::BLOCK;
use vdisk::journal::{Journal, Off};

const DISKS: usize = 2;
const BLOCKS: usize = 8;
const LENGTH: usize = BLOCK as usize;
const SIZE: usize = BLOCKS * LENGTH;

#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, Vec<u8>),
    Flush(usize),
    Read(usize, usize, usize),
    Mark,
}

#[derive(Clone, Debug)]
struct Restore {
    mark: prop::sample::Index,
    keep: f64,
    seed: u64,
    then: Vec<Step>,
    cut: bool,
}

fn write() -> impl Strategy<Value = Step> {
    let block = (0..DISKS, 0..BLOCKS, any::<u8>())
        .prop_map(|(disk, block, byte)| (disk, block * LENGTH, LENGTH, byte));
    let any = (0..DISKS, 0..SIZE, 1..3 * LENGTH, any::<u8>())
        .prop_map(|(disk, at, length, byte)| (disk, at, length.min(SIZE - at), byte));
    prop_oneof![block, any]
        .prop_map(|(disk, at, length, byte)| Step::Write(disk, at, vec![byte; length]))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let read = (0..DISKS, 0..SIZE, 1..SIZE)
        .prop_map(|(disk, at, length)| Step::Read(disk, at, length.min(SIZE - at)));
    let flush = (0..DISKS).prop_map(Step::Flush);
    prop::collection::vec(
        prop_oneof![6 => write(), 2 => flush, 2 => read, 2 => Just(Step::Mark)],
        1..40,
    )
}

fn restores() -> impl Strategy<Value = Vec<Restore>> {
    let keep = prop_oneof![Just(0.0), Just(0.5), Just(1.0)];
    let one = (any::<prop::sample::Index>(), keep, any::<u64>(), steps(), any::<bool>())
        .prop_map(|(mark, keep, seed, then, cut)| Restore { mark, keep, seed, then, cut });
    prop::collection::vec(one, 1..6)
}

fn temporary(name: &str, size: usize) -> File {
    let name = format!("vdisk-{}-{:?}-{name}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let options = File::options().read(true).write(true).create_new(true).clone();
    let file = options.open(&path).expect("a file");
    std::fs::remove_file(&path).expect("it was made");
    file.set_len(size as u64).expect("its size");
    file
}

/// A disk: what it has, and what each block could be after a cut, the flushed content first.
#[derive(Clone)]
struct Expected {
    now: Vec<u8>,
    versions: Vec<Vec<Vec<u8>>>,
    writes: u64,
    flushes: u64,
}

impl Expected {
    fn new(now: Vec<u8>) -> Self {
        let versions = now.chunks(LENGTH).map(|block| vec![block.to_vec()]).collect();
        Self { now, versions, writes: 0, flushes: 0 }
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        self.now[at..at + data.len()].copy_from_slice(data);
        for block in at / LENGTH..(at + data.len()).div_ceil(LENGTH) {
            self.versions[block].push(self.now[block * LENGTH..(block + 1) * LENGTH].to_vec());
        }
        self.writes += 1;
    }

    fn flush(&mut self) {
        *self = Self {
            writes: self.writes,
            flushes: self.flushes + 1,
            ..Self::new(std::mem::take(&mut self.now))
        };
    }

    fn unflushed(&self) -> u64 {
        self.versions.iter().filter(|versions| versions.len() > 1).count() as u64
    }
}

fn run(
    journal: &Journal,
    disks: &mut [Expected],
    steps: &[Step],
    mut mark: impl FnMut(&[Expected]),
) {
    for step in steps {
        match step {
            Step::Write(disk, at, data) => {
                journal.write(*disk, *at as u64, data).expect("there is power");
                disks[*disk].write(*at, data);
            }
            Step::Flush(disk) => {
                journal.flush(*disk).expect("there is power");
                disks[*disk].flush();
            }
            Step::Read(disk, at, length) => {
                let read = journal.read(*disk, *at as u64, *length).expect("there is power");
                assert!(read == disks[*disk].now[*at..at + length], "not the newest content");
            }
            Step::Mark => mark(disks),
        }
    }
}

fn marked(journal: &Journal, disks: &[Expected]) {
    let mark = journal.mark().expect("it is recorded");
    for (said, one) in mark.disks.iter().zip(disks) {
        let given = (said.writes, said.flushes, said.unflushed_blocks);
        assert_eq!(given, (one.writes, one.flushes, one.unflushed()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_a_cut_blocks_are_as_flushed_or_as_written_since(
        before in steps(), load in steps(), late in steps(), restores in restores()
    ) {
        let files: Vec<File> = (0..DISKS).map(|disk| temporary(&disk.to_string(), SIZE)).collect();
        let named = files.iter().map(|file| (String::new(), file.try_clone().expect("a descriptor")));
        let journal = Journal::new(temporary("journal", 0), named.collect());
        let mut disks = vec![Expected::new(vec![0; SIZE]); DISKS];
        run(&journal, &mut disks, &before, |_| ());
        journal.record(true).expect("for the first time");
        let mut disks: Vec<_> = disks.into_iter().map(|one| Expected::new(one.now)).collect();
        let original: Vec<_> = disks.iter().map(|one| one.now.clone()).collect();
        let mut marks = Vec::new();
        run(&journal, &mut disks, &load, |disks| {
            marked(&journal, disks);
            marks.push(disks.to_vec());
        });
        marked(&journal, &disks);
        marks.push(disks.clone());
        run(&journal, &mut disks, &late, |_| ());
        journal.cut().expect("it was recorded");
        prop_assert_eq!(journal.read(0, 0, LENGTH), Err(Off));
        prop_assert_eq!(journal.write(0, 0, &[1]), Err(Off));
        prop_assert_eq!(journal.flush(0), Err(Off));

        for Restore { mark, keep, seed, then, cut } in restores {
            let number = mark.index(marks.len());
            let after = journal.restore(number + 1, keep, seed).expect("it was marked");
            let mut second = Vec::new();
            for (disk, marked) in marks[number].iter().enumerate() {
                let content = journal.read(disk, 0, SIZE).expect("there is power");
                let flushed = |block: &usize| {
                    content[block * LENGTH..(block + 1) * LENGTH] == marked.versions[*block][0]
                };
                for (block, versions) in marked.versions.iter().enumerate() {
                    let allowed = if keep <= 0.0 {
                        &versions[..1]
                    } else if keep >= 1.0 && versions.len() > 1 {
                        &versions[1..]
                    } else {
                        &versions[..]
                    };
                    let is = &content[block * LENGTH..(block + 1) * LENGTH];
                    prop_assert!(allowed.iter().any(|one| one == is), "block {block} of disk {disk}");
                }
                let others = BLOCKS - (0..BLOCKS).filter(flushed).count();
                let said = &after[disk];
                prop_assert_eq!(said.at.unflushed_blocks, marked.unflushed());
                prop_assert!(said.kept_blocks >= others as u64);
                prop_assert!(said.kept_blocks <= marked.unflushed());
                prop_assert!(keep < 1.0 || said.kept_blocks == marked.unflushed());
                second.push(Expected::new(content));
            }
            // A life of its own, of which the next restore shows nothing.
            run(&journal, &mut second, &then, |_| ());
            for (disk, one) in second.iter().enumerate() {
                prop_assert!(journal.read(disk, 0, SIZE).expect("there is power") == one.now);
            }
            if cut {
                journal.cut().expect("it was recorded");
            }
        }
        for (file, original) in files.iter().zip(&original) {
            let mut content = vec![0; SIZE];
            file.read_exact_at(&mut content, 0).expect("it has its size");
            prop_assert!(&content == original, "a disk's file has changed since it was recorded");
        }
    }
}

fn one_disk(journal: File) -> Journal {
    Journal::new(journal, vec![("a".to_owned(), temporary("disk", SIZE))])
}

#[test]
fn orders_out_of_turn_are_refused_and_change_nothing() {
    let journal = one_disk(temporary("journal", 0));
    assert!(journal.mark().is_err() && journal.cut().is_err());
    assert!(journal.restore(1, 0.0, 0).is_err());
    journal.write(0, 0, b"before").expect("there is power");
    journal.record(true).expect("for the first time");
    assert_eq!(journal.record(true), Err("disks were recorded already".to_owned()));
    assert_eq!(journal.discard(0, 0, BLOCK), Ok(false));
    assert_eq!(journal.mark().expect("it is recorded").number, 1);
    assert!(journal.restore(1, 0.0, 0).is_err(), "it is being recorded");
    journal.cut().expect("it was recorded");
    assert!(journal.mark().is_err());
    for (mark, keep) in [(0, 0.0), (2, 0.0), (1, 1.1), (1, f64::NAN)] {
        assert!(journal.restore(mark, keep, 0).is_err());
        assert_eq!(journal.read(0, 0, 6), Err(Off));
    }
    journal.restore(1, 0.0, 0).expect("it was marked");
    assert_eq!(journal.read(0, 0, 6).expect("there is power"), b"before");
    assert!(journal.mark().is_err() && journal.record(true).is_err());
}

#[test]
fn disks_that_ignore_flushes_keep_nothing_that_was_written_since_they_are_recorded() {
    let journal = one_disk(temporary("journal", 0));
    journal.write(0, 0, b"before").expect("there is power");
    journal.record(false).expect("for the first time");
    for text in [b"first ", b"second"] {
        journal.write(0, 0, text).expect("there is power");
        journal.flush(0).expect("there is power");
    }
    let [disk] = &journal.mark().expect("it is recorded").disks[..] else { panic!("one disk") };
    assert_eq!((disk.flushes, disk.unflushed_blocks), (2, 1));
    journal.cut().expect("it was recorded");
    for (keep, is) in [(0.0, &b"before"[..]), (1.0, b"second")] {
        journal.restore(1, keep, 1).expect("it was marked");
        assert_eq!(journal.read(0, 0, 6).expect("there is power"), is);
    }
}

#[test]
fn without_a_place_for_its_journal_all_io_and_all_orders_fail() {
    let full = File::options().read(true).write(true).open("/dev/full").expect("Linux has it");
    let journal = one_disk(full);
    journal.record(true).expect("for the first time");
    journal.mark().expect("it is recorded");
    assert_eq!(journal.write(0, 0, b"x"), Err(Off));
    assert_eq!(journal.read(0, 0, 1), Err(Off));
    assert_eq!(journal.flush(0), Err(Off));
    for refused in [journal.mark().err(), journal.cut().err(), journal.restore(1, 0.0, 0).err()] {
        assert!(refused.expect("an error").contains("No space left on device"));
    }
}

#[test]
fn discarded_bytes_are_zeros_until_it_is_recorded() {
    let journal = one_disk(temporary("journal", 0));
    journal.write(0, 0, &[7; 3 * LENGTH]).expect("there is power");
    assert_eq!(journal.discard(0, BLOCK, BLOCK), Ok(true));
    let read = journal.read(0, 0, 3 * LENGTH).expect("there is power");
    assert_eq!(read, [[7; LENGTH], [0; LENGTH], [7; LENGTH]].concat());
}

#[test]
fn what_is_written_after_a_restore_takes_no_place_after_the_next() {
    let file = temporary("journal", 0);
    let journal = one_disk(file.try_clone().expect("a descriptor"));
    let blocks = || file.metadata().expect("it is open").len() / BLOCK;
    journal.record(true).expect("for the first time");
    journal.write(0, 0, &[1; 2 * LENGTH]).expect("there is power");
    journal.mark().expect("it is recorded");
    journal.cut().expect("it was recorded");
    for _ in 0..2 {
        journal.restore(1, 1.0, 0).expect("it was marked");
        assert_eq!(blocks(), 2);
        journal.write(0, 0, &[2; 3 * LENGTH]).expect("there is power");
        assert_eq!(blocks(), 5);
    }
}
