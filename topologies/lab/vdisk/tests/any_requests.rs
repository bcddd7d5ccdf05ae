//! Whatever is asked of a disk: each request is answered once and not too early, a flush keeps its
//! promise, and the same requests take the same times.

use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use vdisk::dirty::{BLOCK, Extent};
use vdisk::drive::{Drive, Event, Op, Request};
use vdisk::model::{Model, Nanos};

const SIZE: u64 = 1 << 30;

fn model(kind: &str, write_cache: u64, queue_depth: u64) -> Model {
    let common = serde_json::json!({
        "kind": kind, "base": "test", "seed": 5, "queue_depth": queue_depth,
        "write_cache": write_cache, "link_rate": 5e8, "command": 1e-5, "overhead": 5e-5,
    });
    let scatter = (queue_depth % 2 == 0).then_some(1 << 20);
    let own = if kind == "spinning" {
        serde_json::json!({
            "write_cache_runs": 16, "rpm": 7200.0, "seek_track": 0.0008, "seek_avg": 0.0085,
            "seek_full": 0.016, "transfer_rate": 175e6, "transfer_rate_inner": 83e6,
            "read_ahead": 8_388_608, "longest_wait": 0.2, "scatter": scatter,
        })
    } else {
        serde_json::json!({
            "channels": 4, "read_latency": 1e-4, "read_bytes": 16384, "write_latency": 5e-5,
            "program_latency": 7e-4, "program_bytes": 36864, "variation": 0.1,
        })
    };
    let mut all = common.as_object().expect("an object").clone();
    all.extend(own.as_object().expect("an object").clone());
    let model: Model = serde_json::from_value(all.into()).expect("a model");
    model.check().expect("a valid model");
    model
}

/// Requests: which operation, where, how long, how many microseconds after the one before.
type Asked = Vec<(u8, u64, u64, u64)>;

fn asked() -> impl Strategy<Value = Asked> {
    let places = prop_oneof![0..64_u64, 0..SIZE / BLOCK - 512];
    let lengths = prop_oneof![1..9_u64, 1..300_u64];
    prop::collection::vec((0..8_u8, places, lengths, 0..20_000_u64), 1..60)
}

fn requests(asked: &Asked) -> Vec<Request> {
    let mut at = 0;
    let one = |(index, &(kind, block, blocks, wait)): (usize, &(u8, u64, u64, u64))| {
        at += wait * 1000;
        let op = match kind {
            0..=2 => Op::Read,
            3..=6 => Op::Write,
            _ => Op::Flush,
        };
        let bytes = if op == Op::Flush { 0 } else { blocks * BLOCK };
        Request { id: index as u64, op, start: block * BLOCK, bytes, arrived: at }
    };
    asked.iter().enumerate().map(one).collect()
}

/// All events, each of which is later than the one before.
fn run(model: &Model, requests: &[Request]) -> Vec<Event> {
    let mut drive = Drive::new(model, SIZE);
    let mut events = Vec::new();
    for &request in requests {
        drive.advance(request.arrived, &mut events);
        drive.arrive(request);
    }
    while let Some(next) = drive.next() {
        drive.advance(next, &mut events);
    }
    assert_eq!(drive.cached_bytes(), 0, "an idle disk has emptied its cache");
    events
}

fn blocks(extent: Extent) -> impl Iterator<Item = u64> {
    extent.block..extent.block + extent.count
}

fn check(model: &Model, asked: &Asked) {
    let requests = requests(asked);
    let events = run(model, &requests);
    assert_eq!(run(model, &requests), events, "the same requests, the same events");
    let mut answered: HashMap<u64, Nanos> = HashMap::new();
    let mut since: Nanos = 0;
    // Blocks whose write was answered, and those of them that are not on the media yet.
    let mut volatile: BTreeSet<u64> = BTreeSet::new();
    let mut written: HashMap<u64, Nanos> = HashMap::new();
    let mut flushing: HashMap<u64, BTreeSet<u64>> = HashMap::new();
    let mut coming = requests.iter().filter(|one| one.op == Op::Flush).peekable();
    for &event in &events {
        let at = match event {
            Event::Done { at, .. } | Event::Durable { at, .. } => at,
        };
        while let Some(flush) = coming.next_if(|flush| flush.arrived < at) {
            flushing.insert(flush.id, volatile.clone());
        }
        assert!(at >= since, "events are in order");
        since = at;
        match event {
            Event::Durable { extent, .. } => {
                for block in blocks(extent) {
                    written.insert(block, at);
                    volatile.remove(&block);
                    for left in flushing.values_mut() {
                        left.remove(&block);
                    }
                }
            }
            Event::Done { id, at } => {
                let request = requests[id as usize];
                assert!(at >= request.arrived, "no answer before the question");
                assert_eq!(answered.insert(id, at), None, "one answer");
                if request.op == Op::Write && model.write_cache() > 0 {
                    // A small cache may have written the first blocks before it has the last.
                    let extent = Extent::of(request.start, request.bytes);
                    let left =
                        |block: &u64| written.get(block).is_none_or(|&at| at < request.arrived);
                    volatile.extend(blocks(extent).filter(left));
                }
                if request.op == Op::Flush {
                    let left = flushing.remove(&id).unwrap_or_default();
                    assert!(left.is_empty(), "flush {id} left {left:?}");
                }
            }
        }
    }
    assert_eq!(answered.len(), requests.len(), "every request is answered");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spinning_disk_answers_all_once_and_keeps_what_it_flushed(asked in asked()) {
        check(&model("spinning", 4 << 20, 8), &asked);
        check(&model("spinning", 0, 1), &asked);
    }

    #[test]
    fn a_flash_disk_answers_all_once_and_keeps_what_it_flushed(asked in asked()) {
        check(&model("flash", 4 << 20, 8), &asked);
        check(&model("flash", 0, 1), &asked);
    }

    #[test]
    fn draining_answers_everything_and_empties_the_cache(asked in asked(), after in 0..60_usize) {
        for kind in ["spinning", "flash"] {
            let requests = requests(&asked);
            let count = after.min(requests.len());
            let mut drive = Drive::new(&model(kind, 4 << 20, 8), SIZE);
            let mut events = Vec::new();
            for &request in &requests[..count] {
                drive.advance(request.arrived, &mut events);
                drive.arrive(request);
            }
            drive.drain(requests.last().expect("one at least").arrived, &mut events);
            let done = events.iter().filter(|one| matches!(one, Event::Done { .. })).count();
            prop_assert_eq!(done, count);
            prop_assert_eq!(drive.cached_bytes(), 0);
            prop_assert_eq!(drive.next(), None);
        }
    }
}

#[test]
fn nothing_waits_much_longer_than_the_bound_while_nearer_requests_keep_coming() {
    let model = model("spinning", 0, 32);
    let mut drive = Drive::new(&model, SIZE);
    let far = Request { id: 0, op: Op::Read, start: SIZE - BLOCK, bytes: BLOCK, arrived: 0 };
    let near = |id| Request { id, op: Op::Read, start: id % 7 * BLOCK, bytes: BLOCK, arrived: 0 };
    drive.arrive(near(1));
    drive.arrive(far);
    (2..9).for_each(|id| drive.arrive(near(id)));
    let (mut events, mut ids) = (Vec::new(), 9);
    while let Some(now) = drive.next() {
        drive.advance(now, &mut events);
        for event in std::mem::take(&mut events) {
            match event {
                Event::Done { id: 0, at } => {
                    assert!(at < 250_000_000, "{at}");
                    assert!(at > 200_000_000, "without the bound it is not served at all: {at}");
                    return;
                }
                Event::Done { at, .. } => {
                    drive.arrive(Request { arrived: at, ..near(ids) });
                    ids += 1;
                }
                Event::Durable { .. } => {}
            }
        }
    }
    panic!("it was never served");
}
