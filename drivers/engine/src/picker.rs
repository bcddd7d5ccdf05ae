//! The request sequence of one worker. It depends on seed, workload, worker count, repeat and
//! worker number alone, so that every gateway gets the same requests.

use crate::options::{At, Multipart, parts};
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

/// What of an operation, and of its object, a request is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Bytes of the object.
    Bytes {
        /// From this one on.
        offset: u64,
        /// So many.
        length: u64,
    },
    /// A part of an object that was uploaded in parts.
    Numbered {
        /// Its number, from 1.
        number: u64,
        /// Where it begins in the object.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// The object is made of a prepared one.
    From {
        /// Index of its container.
        container: u64,
        /// Its index there.
        index: u64,
    },
    /// So many objects, the named one and those after it.
    Several(u64),
    /// What is noted of the object: a value.
    Note(u64),
    /// The beginning of an upload in parts.
    Begin,
    /// A part of an upload.
    Piece {
        /// Its number, from 1.
        number: u64,
        /// Where it begins in the object.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// The end of an upload in parts.
    Finish,
    /// A page of a listing, by its number from 0.
    Page(u64),
    /// A version of a prepared object, by its number from 0, the oldest.
    Version(u64),
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
    /// What of the operation and the object it is about.
    pub part: Part,
}

impl Request {
    /// An operation of one request on a complete object.
    pub fn whole(operation: Operation, container: u64, object: Object, size: u64) -> Self {
        Self { operation, container, object, size, part: Part::Whole }
    }

    /// Where the bytes of the object that are sent or received begin, and how many they are.
    pub fn span(&self) -> (u64, u64) {
        match self.part {
            Part::Bytes { offset, length }
            | Part::Numbered { offset, length, .. }
            | Part::Piece { offset, length, .. } => (offset, length),
            _ => (0, self.size),
        }
    }

    /// The version whose content it is about, where each prepared object has so many: without a
    /// number the latest, which is also what overwrites it.
    pub fn version(&self, versions: u64) -> u64 {
        match (self.part, self.object) {
            (Part::Version(number), _) => number,
            (Part::From { .. }, _) | (_, Object::Prepared(_)) => versions.saturating_sub(1),
            (_, Object::Written(_)) => 0,
        }
    }

    /// Bytes of the object in the request.
    pub fn body_bytes(&self) -> u64 {
        match (self.operation, self.part) {
            (operation, _) if operation.puts() => self.size,
            (_, Part::Piece { length, .. }) => length,
            _ => 0,
        }
    }
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
    /// Number of the next prepared object, or batch of them, of this worker's share to delete.
    share: u64,
    /// Weights of the operations.
    weights: Box<[f64; OPERATIONS.len()]>,
    /// The next range to read of an object: its container, index, and where it begins.
    next_range: Option<(u64, u64, u64)>,
}

impl Picker {
    /// The sequence of a worker.
    pub fn new(workload: Arc<Workload>, seed: u64, id: WorkerId) -> Self {
        let WorkerId { workers, repeat, worker } = id;
        let random =
            Random::new(hash(&[seed, hash_text(&workload.name), 3, workers, repeat, worker]));
        let zipf = match workload.pick {
            Pick::Zipf { zipf } => Some(Zipf::new(workload.count(), zipf)),
            Pick::Named(_) => None,
        };
        let weights = OPERATIONS.map(|one| workload.operations.get(&one).copied().unwrap_or(0.0));
        Self {
            workload,
            weights: Box::new(weights),
            next_range: None,
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
    pub fn into_kept(self) -> VecDeque<u64> {
        self.kept
    }

    /// The only operation of the workload, if there is just one.
    pub fn only_operation(&self) -> Option<Operation> {
        let mut operations = self.workload.operations.keys();
        operations.next().copied().filter(|_| operations.next().is_none())
    }

    fn operation(&mut self, without_delete: bool) -> Option<Operation> {
        let mut weights = *self.weights;
        if without_delete {
            for (operation, weight) in OPERATIONS.into_iter().zip(&mut weights) {
                if operation.deletes() {
                    *weight = 0.0;
                }
            }
        }
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
        if !self.workload.deletes_prepared() || self.share >= self.workload.count() {
            return None;
        }
        let (container, index) = self.workload.place(self.share);
        self.share += self.id.workers;
        Some(self.prepared(Operation::Delete, container, index))
    }

    fn prepared(&self, operation: Operation, container: u64, index: u64) -> Request {
        let size = self.workload.object_size(self.seed, container, index);
        Request::whole(operation, container, Object::Prepared(index), size)
    }

    fn written(&self, operation: Operation, index: u64) -> Request {
        let size = self.workload.written_size(self.seed, &self.id, index);
        let container = index % self.workload.objects.containers;
        Request::whole(operation, container, Object::Written(index), size)
    }

    /// The next several objects of one container that this worker deletes. Batches are numbered
    /// like objects: neighbours are in different containers.
    fn batch(&mut self) -> Option<Request> {
        let objects = &self.workload.objects;
        let most = self.workload.delete_many?.max(1);
        let per_container = objects.per_container.div_ceil(most);
        if self.share >= objects.containers * per_container {
            return None;
        }
        let container = self.share % objects.containers;
        let first = self.share / objects.containers * most;
        let count = most.min(objects.per_container - first);
        self.share += self.id.workers;
        let part = Part::Several(count);
        let object = Object::Prepared(first);
        Some(Request { operation: Operation::DeleteMany, container, object, size: 0, part })
    }

    /// The next range to read.
    fn range(&mut self) -> Request {
        let (bytes, at) =
            self.workload.range.map_or((u64::MAX, At::Start), |range| (range.bytes, range.at));
        let (container, index, offset) = self.next_range.take().unwrap_or_else(|| {
            let (container, index) = self.pick();
            (container, index, 0)
        });
        let mut request = self.prepared(Operation::ReadRange, container, index);
        let offset = match at {
            At::Random => self.random.below(parts(request.size, bytes)) * bytes,
            At::Start | At::Sequential => offset,
        };
        let length = bytes.min(request.size - offset);
        if at == At::Sequential && offset + length < request.size {
            self.next_range = Some((container, index, offset + length));
        }
        request.part = Part::Bytes { offset, length };
        request
    }

    /// Any part of an object that was uploaded in parts.
    fn numbered(&mut self) -> Request {
        let (container, index) = self.pick();
        let request = self.prepared(Operation::ReadPart, container, index);
        let whole = Multipart { part: u64::MAX, at_once: 1 };
        let multipart = self.workload.multipart.unwrap_or(whole);
        let number = 1 + self.random.below(parts(request.size, multipart.part));
        let (offset, length) = multipart.span(request.size, number);
        Request { part: Part::Numbered { number, offset, length }, ..request }
    }

    /// The first request of a new object: with all of it, with its first part, or before that.
    fn new_object(&mut self, operation: Operation) -> Request {
        let index = self.writes;
        self.writes += 1;
        self.kept.push_back(index);
        let mut request = self.written(operation, index);
        if operation == Operation::Copy {
            let (container, source) = self.pick();
            request.size = self.workload.object_size(self.seed, container, source);
            request.part = Part::From { container, index: source };
        } else if operation == Operation::WriteMultipart {
            request.part = Part::Begin;
        }
        request
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
                Operation::Read
                | Operation::Head
                | Operation::ReadIfNoneMatch
                | Operation::ReadIfMatch
                | Operation::RewriteIfNoneMatch
                | Operation::Overwrite => {
                    let (container, index) = self.pick();
                    return Some(self.prepared(operation, container, index));
                }
                Operation::UpdateMetadata | Operation::Tag => {
                    let (container, index) = self.pick();
                    let part = Part::Note(self.random.below(1 << 32));
                    return Some(Request { part, ..self.prepared(operation, container, index) });
                }
                Operation::ReadVersion => {
                    let (container, index) = self.pick();
                    let part = Part::Version(self.random.below(self.workload.versions().max(1)));
                    return Some(Request { part, ..self.prepared(operation, container, index) });
                }
                Operation::ReadRange => return Some(self.range()),
                Operation::ReadPart => return Some(self.numbered()),
                Operation::List
                | Operation::ListAll
                | Operation::ListPage
                | Operation::ListVersions
                | Operation::VersionsPage => {
                    let (container, _) = self.pick();
                    let mut request = Request::whole(operation, container, Object::Prepared(0), 0);
                    if operation.turns_pages() {
                        request.part = Part::Page(0);
                    }
                    return Some(request);
                }
                Operation::Write
                | Operation::WriteIfNoneMatch
                | Operation::Copy
                | Operation::WriteMultipart
                | Operation::WritePart => return Some(self.new_object(operation)),
                Operation::Delete => match self.delete_target() {
                    Some(request) => return Some(request),
                    None => without_delete = true,
                },
                Operation::DeleteMany => match self.batch() {
                    Some(request) => return Some(request),
                    None => without_delete = true,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
