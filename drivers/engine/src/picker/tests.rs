use super::*;
use crate::workload::tests::workload;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

fn picker(keys: &Value, workers: u64, worker: u64) -> Picker {
    Picker::new(Arc::new(workload(keys)), 11, WorkerId { workers, repeat: 0, worker })
}

#[test]
fn a_sequence_is_repeatable_and_differs_by_worker_count_repeat_and_seed() {
    let keys = json!({"operations": {
        "read": 3.0, "write": 1.0, "list": 1.0, "head": 1.0, "delete": 1.0,
    }});
    let take = |seed, id| {
        let mut picker = Picker::new(Arc::new(workload(&keys)), seed, id);
        (0..200).map(|_| picker.next().expect("endless")).collect::<Vec<_>>()
    };
    let id = WorkerId { workers: 4, repeat: 0, worker: 1 };
    assert_eq!(take(1, id), take(1, id));
    assert_ne!(take(1, id), take(2, id));
    assert_ne!(take(1, id), take(1, WorkerId { workers: 8, ..id }));
    assert_ne!(take(1, id), take(1, WorkerId { repeat: 1, ..id }));
    assert_ne!(take(1, id), take(1, WorkerId { worker: 2, ..id }));
}

#[test]
fn operations_are_drawn_by_weight() {
    let mut picker =
        picker(&json!({"operations": {"read": 70.0, "write": 20.0, "head": 10.0}}), 1, 0);
    let mut seen = HashMap::new();
    for _ in 0..20_000 {
        *seen.entry(picker.next().expect("endless").operation).or_insert(0u32) += 1;
    }
    assert!((13_700..14_300).contains(&seen[&Operation::Read]), "{seen:?}");
    assert!((3_700..4_300).contains(&seen[&Operation::Write]), "{seen:?}");
    assert!((1_750..2_250).contains(&seen[&Operation::Head]), "{seen:?}");
}

#[test]
fn sequential_workers_together_visit_every_object_in_turn() {
    let mut pickers: Vec<_> =
        (0..3).map(|k| picker(&json!({"pick": "sequential"}), 3, k)).collect();
    let numbers: Vec<u64> = (0..100)
        .map(|i| {
            let request = pickers[i % 3].next().expect("endless");
            let Object::Prepared(index) = request.object else { panic!("not prepared") };
            index * 4 + request.container
        })
        .collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn deletes_visit_every_prepared_object_once_and_then_end() {
    let mut seen = HashSet::new();
    for worker in 0..3 {
        let picker = picker(&json!({"operations": {"delete": 1.0}}), 3, worker);
        for request in picker {
            assert!(
                seen.insert((request.container, format!("{:?}", request.object))),
                "{request:?} twice"
            );
        }
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn deletes_prefer_own_writes_and_are_redrawn_when_nothing_is_left() {
    let keys = json!({"operations": {"delete": 3.0, "write": 1.0},
        "objects": {"size": 1, "containers": 1, "per_container": 1}});
    let mut picker = picker(&keys, 1, 0);
    let (mut existing, mut prepared) = (HashSet::new(), 0);
    for _ in 0..1000 {
        let request = picker.next().expect("writes never end");
        match (request.operation, request.object) {
            (Operation::Write, Object::Written(index)) => assert!(existing.insert(index)),
            (Operation::Delete, Object::Written(index)) => assert!(existing.remove(&index)),
            (Operation::Delete, Object::Prepared(_)) => {
                assert!(existing.is_empty());
                prepared += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(prepared, 1);
    assert_eq!(picker.into_kept().len(), existing.len());
}

#[test]
fn prepared_objects_that_are_read_are_not_deleted() {
    let mut picker =
        picker(&json!({"operations": {"delete": 3.0, "write": 1.0, "read": 1.0}}), 1, 0);
    let requests: Vec<_> = (0..1000).map(|_| picker.next().expect("endless")).collect();
    assert!(requests.iter().any(|request| request.operation == Operation::Delete));
    for request in requests {
        assert!(
            request.operation != Operation::Delete || matches!(request.object, Object::Written(_)),
            "{request:?}"
        );
    }
}

#[test]
fn a_failed_write_is_not_deleted() {
    let mut picker = picker(&json!({"operations": {"write": 1.0}}), 1, 0);
    picker.next();
    picker.next();
    picker.withdraw(1);
    assert_eq!(picker.into_kept(), [0]);
}

#[test]
fn ranges_are_parts_of_objects() {
    let ranges = |at: &str| {
        let keys = json!({"operations": {"read-range": 1.0}, "pick": "sequential",
            "range": {"bytes": 40, "at": at}});
        let mut picker = picker(&keys, 1, 0);
        (0..300)
            .map(|_| {
                let request = picker.next().expect("endless");
                let Part::Bytes { offset, length } = request.part else { panic!("{request:?}") };
                (request.container, offset, length)
            })
            .collect::<Vec<_>>()
    };
    assert!(ranges("start").iter().all(|&(_, offset, length)| (offset, length) == (0, 40)));
    let in_turn = ranges("sequential");
    assert_eq!(in_turn[..4], [(0, 0, 40), (0, 40, 40), (0, 80, 20), (1, 0, 40)]);
    let random: HashSet<_> =
        ranges("random").into_iter().map(|(_, offset, length)| (offset, length)).collect();
    assert_eq!(random, HashSet::from([(0, 40), (40, 40), (80, 20)]));
}

#[test]
fn parts_are_drawn_by_their_numbers_and_are_those_of_an_upload() {
    let keys = json!({"operations": {"read-part": 1.0}, "multipart": {"part": 40}});
    let taken = |seed| {
        let workload = Arc::new(workload(&keys));
        let picker = Picker::new(workload, seed, WorkerId { workers: 1, repeat: 0, worker: 0 });
        picker.take(300).map(|request| request.part).collect::<Vec<_>>()
    };
    let seen: Vec<_> = taken(11);
    assert_eq!(seen, taken(11));
    assert_ne!(seen, taken(12));
    for (number, offset, length) in [(1, 0, 40), (2, 40, 40), (3, 80, 20)] {
        let count =
            seen.iter().filter(|&&one| one == Part::Numbered { number, offset, length }).count();
        assert!((70..130).contains(&count), "{number}: {count}");
    }
}

#[test]
fn batches_of_all_workers_cover_every_prepared_object_once() {
    let keys = json!({"operations": {"delete-many": 1.0}, "delete_many": 7});
    let mut seen = HashSet::new();
    for worker in 0..3 {
        for request in picker(&keys, 3, worker) {
            let (Object::Prepared(first), Part::Several(count)) = (request.object, request.part)
            else {
                panic!("{request:?}")
            };
            assert!((1..=7).contains(&count));
            for index in first..first + count {
                assert!(seen.insert((request.container, index)), "{request:?} twice");
            }
        }
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn a_copy_is_of_a_prepared_object_and_can_be_deleted() {
    let keys = json!({"operations": {"copy": 1.0, "delete": 1.0}});
    let mut copies = 0;
    for request in picker(&keys, 1, 0).take(200) {
        assert!(matches!(request.object, Object::Written(_)), "{request:?}");
        if request.operation == Operation::Copy {
            assert!(matches!(request.part, Part::From { .. }));
            assert_eq!(request.size, 100);
            copies += 1;
        }
    }
    assert!(copies > 50);
}
