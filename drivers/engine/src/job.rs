//! A finite task shared by several workers: writing the objects of a workload, or deleting objects.

use crate::config::Config;
use crate::picker::{Object, Part, Request};
use crate::ring::replica;
use crate::shared::{Shared, lock};
use crate::workload::{Operation, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The objects of a job.
#[derive(Debug)]
pub enum Items {
    /// Prepared objects number `first`, `first + stride`, ...
    Prepared {
        /// The first.
        first: u64,
        /// How far apart.
        stride: u64,
        /// How many.
        count: u64,
        /// Of those that are written, which version.
        version: Option<u64>,
    },
    /// Prepared objects by their numbers.
    Listed(Vec<u64>),
    /// Objects that workers wrote.
    Written(Vec<(WorkerId, u64)>),
}

/// A job. When it ends early, written objects that it did not delete remain in `Shared::written`.
#[derive(Debug)]
pub struct Job {
    operation: Operation,
    items: Items,
    next: AtomicU64,
    shared: Arc<Shared>,
}

impl Job {
    /// A job of `operation`, `Write` or `Delete`, over `items`.
    pub fn new(operation: Operation, items: Items, shared: Arc<Shared>) -> Self {
        Self { operation, items, next: AtomicU64::new(0), shared }
    }

    /// How many requests it is: a prepared object is written and deleted once for each copy.
    fn len(&self) -> u64 {
        match &self.items {
            Items::Prepared { count, .. } => *count * self.shared.config.copies(),
            Items::Listed(numbers) => numbers.len() as u64 * self.shared.config.copies(),
            Items::Written(written) => written.len() as u64,
        }
    }

    /// The next request, whose object it is, and which replica of it.
    pub fn take(&self, config: &Config) -> Option<(Request, WorkerId, u64)> {
        let turn = self
            .next
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| {
                (next < self.len()).then_some(next + 1)
            })
            .ok()?;
        let (copies, operation) = (config.copies(), self.operation);
        let (item, copy) = (turn / copies, turn % copies);
        Some(match &self.items {
            Items::Prepared { first, stride, version, .. } => {
                let request = prepared(config, operation, first + item * stride);
                let part = version.map_or(request.part, Part::Version);
                (Request { part, ..request }, WorkerId::NONE, copy)
            }
            Items::Listed(numbers) => {
                (prepared(config, operation, numbers[item as usize]), WorkerId::NONE, copy)
            }
            Items::Written(written) => {
                let (id, index) = written[turn as usize];
                let Config { workload, seed, .. } = config;
                let size = workload.written_size(*seed, &id, index);
                let container = index % workload.objects.containers;
                let request = Request::whole(operation, container, Object::Written(index), size);
                (request, id, replica(copies, *seed, &workload.name, &id, 0, &request))
            }
        })
    }

    /// Stops handing out requests.
    pub fn abandon(&self) {
        self.keep_from(self.next.swap(self.len(), Ordering::SeqCst));
    }

    /// Returns the object of a failed request.
    pub fn give_back(&self, request: &Request, id: WorkerId) {
        if let Object::Written(index) = request.object {
            lock(&self.shared.written).push((id, index));
        }
    }

    fn keep_from(&self, turn: u64) {
        if let Items::Written(written) = &self.items {
            lock(&self.shared.written).extend_from_slice(&written[turn as usize..]);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.keep_from(self.next.load(Ordering::SeqCst));
    }
}

fn prepared(config: &Config, operation: Operation, number: u64) -> Request {
    let (container, index) = config.workload.place(number);
    let size = config.workload.object_size(config.seed, container, index);
    let request = Request::whole(operation, container, Object::Prepared(index), size);
    if operation == Operation::Write && config.workload.has(Operation::ReadPart) {
        return Request { operation: Operation::WriteMultipart, part: Part::Begin, ..request };
    }
    request
}
