//! The request sequence of one worker. It depends on seed, workload, worker count, repeat and
//! worker number alone, so that every gateway gets the same requests.

use crate::random::{Random, Zipf, hash, hash_text};
use crate::workload::{OPERATIONS, Operation, Order, Pick, WorkerId, Workload};
use std::collections::VecDeque;
use std::sync::Arc;

/// An object by its index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Object {
    /// Index among the prepared objects of its container.
    Prepared(u64),
    /// Index among the objects the worker wrote.
    Written(u64),
}

/// One request of the sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// Index of the container.
    pub container: u64,
    /// The object; meaningless for a list.
    pub object: Object,
    /// Size of the object, in bytes.
    pub size: u64,
}

/// The sequence of one worker.
#[derive(Clone, Debug)]
pub struct Picker {
    workload: Arc<Workload>,
    seed: u64,
    id: WorkerId,
    random: Random,
    zipf: Option<Zipf>,
    turn: u64,
    writes: u64,
    /// Writes not deleted yet, oldest first.
    kept: VecDeque<u64>,
    /// Number of the next prepared object of this worker's share to delete.
    share: u64,
}

impl Picker {
    /// The sequence of a worker.
    #[must_use]
    pub fn new(workload: Arc<Workload>, seed: u64, id: WorkerId) -> Self {
        let WorkerId { workers, repeat, worker } = id;
        let random =
            Random::new(hash(&[seed, hash_text(&workload.name), 3, workers, repeat, worker]));
        let zipf = match workload.pick {
            Pick::Zipf { zipf } => Some(Zipf::new(workload.count(), zipf)),
            Pick::Named(_) => None,
        };
        Self {
            workload,
            seed,
            id,
            random,
            zipf,
            turn: 0,
            writes: 0,
            kept: VecDeque::new(),
            share: worker,
        }
    }

    /// The worker whose sequence it is.
    #[must_use]
    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// Forgets the last write, which failed, so that it is not deleted.
    pub fn withdraw(&mut self, index: u64) {
        if self.kept.back() == Some(&index) {
            self.kept.pop_back();
        }
    }

    /// Writes not deleted yet, oldest first.
    #[must_use]
    pub fn into_kept(self) -> VecDeque<u64> {
        self.kept
    }

    /// The only operation of the workload, if there is just one.
    #[must_use]
    pub fn only_operation(&self) -> Option<Operation> {
        let mut operations = self.workload.operations.keys();
        operations.next().copied().filter(|_| operations.next().is_none())
    }

    fn operation(&mut self, without_delete: bool) -> Option<Operation> {
        let weights = OPERATIONS.map(|operation| match operation {
            Operation::Delete if without_delete => 0.0,
            operation => self.workload.operations.get(&operation).copied().unwrap_or(0.0),
        });
        let mut at = self.random.unit() * weights.iter().sum::<f64>();
        let mut last = None;
        for (operation, weight) in OPERATIONS.into_iter().zip(weights) {
            if weight > 0.0 {
                last = Some(operation);
                at -= weight;
                if at < 0.0 {
                    break;
                }
            }
        }
        last
    }

    fn pick(&mut self) -> (u64, u64) {
        let count = self.workload.count();
        let number = match (self.workload.pick, &self.zipf) {
            (Pick::Named(Order::Sequential), _) => {
                let turn = self.turn;
                self.turn += 1;
                ((u128::from(turn) * u128::from(self.id.workers) + u128::from(self.id.worker))
                    % u128::from(count)) as u64
            }
            (_, Some(zipf)) => zipf.draw(&mut self.random),
            (_, None) => self.random.below(count),
        };
        self.workload.place(number)
    }

    fn delete_target(&mut self) -> Option<Request> {
        if let Some(index) = self.kept.pop_front() {
            return Some(self.written(Operation::Delete, index));
        }
        // Prepared objects that may be read are not deleted.
        let others_pick = [Operation::Read, Operation::Head]
            .iter()
            .any(|other| self.workload.operations.contains_key(other));
        if others_pick || self.share >= self.workload.count() {
            return None;
        }
        let (container, index) = self.workload.place(self.share);
        self.share += self.id.workers;
        Some(self.prepared(Operation::Delete, container, index))
    }

    fn prepared(&self, operation: Operation, container: u64, index: u64) -> Request {
        let size = self.workload.object_size(self.seed, container, index);
        Request { operation, container, object: Object::Prepared(index), size }
    }

    fn written(&self, operation: Operation, index: u64) -> Request {
        let size = self.workload.written_size(self.seed, &self.id, index);
        let container = index % self.workload.objects.containers;
        Request { operation, container, object: Object::Written(index), size }
    }
}

/// The next request; `None` when only deletes are left in the mix and nothing is left to delete.
impl Iterator for Picker {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let mut without_delete = false;
        loop {
            let operation = self.operation(without_delete)?;
            match operation {
                Operation::Read | Operation::Head => {
                    let (container, index) = self.pick();
                    return Some(self.prepared(operation, container, index));
                }
                Operation::List => {
                    let (container, _) = self.pick();
                    return Some(Request {
                        operation,
                        container,
                        object: Object::Prepared(0),
                        size: 0,
                    });
                }
                Operation::Write => {
                    let index = self.writes;
                    self.writes += 1;
                    self.kept.push_back(index);
                    return Some(self.written(operation, index));
                }
                Operation::Delete => match self.delete_target() {
                    Some(request) => return Some(request),
                    None => without_delete = true,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
                request.operation != Operation::Delete
                    || matches!(request.object, Object::Written(_)),
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
}
