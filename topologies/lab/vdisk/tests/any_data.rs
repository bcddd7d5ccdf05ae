//! Whatever is written, cached, persisted and discarded: reads give the last content, and the file
//! has nothing that is only cached.

use proptest::prelude::*;
use std::os::unix::fs::FileExt;
use vdisk::dirty::{BLOCK, Extent};
use vdisk::store::Store;

const SIZE: usize = 16 * BLOCK as usize;

#[derive(Clone, Debug)]
enum Step {
    Cache(usize, Vec<u8>),
    Persist(u64, u64),
    PersistAll,
    Discard(usize, usize),
    Read(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = 0..SIZE - 9000;
    let length = prop_oneof![Just(4096_usize), 1..9000_usize];
    let data = (place.clone(), length.clone(), any::<u8>());
    let extent = (0..16_u64, 1..16_u64);
    let step = prop_oneof![
        4 => data.prop_map(|(at, length, byte)| Step::Cache(at, vec![byte; length])),
        2 => extent.prop_map(|(block, count)| Step::Persist(block, count.min(16 - block))),
        1 => Just(Step::PersistAll),
        1 => (place.clone(), length.clone()).prop_map(|(at, length)| Step::Discard(at, length)),
        3 => (place, length).prop_map(|(at, length)| Step::Read(at, length)),
    ];
    prop::collection::vec(step, 1..50)
}

fn temporary() -> std::fs::File {
    let name = format!("vdisk-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let options = std::fs::File::options().read(true).write(true).create_new(true).clone();
    let file = options.open(&path).expect("a file");
    std::fs::remove_file(&path).expect("it was made");
    file.set_len(SIZE as u64).expect("its size");
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_give_the_last_content_and_only_what_was_persisted_is_durable(steps in steps()) {
        let file = temporary();
        let store = Store::new(file.try_clone().expect("a descriptor"));
        let (mut now, mut durable) = (vec![0_u8; SIZE], vec![0_u8; SIZE]);
        for step in steps {
            match step {
                Step::Cache(at, data) => {
                    store.cache(at as u64, &data).expect("it fits");
                    now[at..at + data.len()].copy_from_slice(&data);
                }
                Step::Persist(block, count) => {
                    store.persist(Extent { block, count }).expect("it is there");
                    let range = (block * BLOCK) as usize..((block + count) * BLOCK) as usize;
                    durable[range.clone()].copy_from_slice(&now[range]);
                }
                Step::PersistAll => {
                    store.persist_all().expect("it is there");
                    durable.copy_from_slice(&now);
                }
                Step::Discard(at, length) => {
                    store.discard(at as u64, length as u64).expect("it is there");
                    now[at..at + length].fill(0);
                    durable[at..at + length].fill(0);
                }
                Step::Read(at, length) => {
                    let read = store.read(at as u64, length).expect("it is there");
                    prop_assert_eq!(&read, &now[at..at + length]);
                }
            }
            let mut kept = vec![0_u8; SIZE];
            file.read_exact_at(&mut kept, 0).expect("it is there");
            prop_assert!(kept == durable, "the file has what is only cached, or lacks what is not");
        }
    }
}
