//! Work with an end, shared by several workers: writing a workload's objects, and deleting what is
//! there.

use crate::config::Config;
use crate::picker::{Object, Request};
use crate::ring::replica;
use crate::shared::{Shared, lock};
use crate::workload::{Operation, Whose};
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
    },
    /// Prepared objects by their numbers.
    Listed(Vec<u64>),
    /// Objects that workers wrote.
    Written(Vec<(Whose, u64)>),
}

/// A job. When it ends early, written objects that it did not delete go back to the ledger.
#[derive(Debug)]
pub struct Job {
    operation: Operation,
    items: Items,
    next: AtomicU64,
    shared: Arc<Shared>,
}

impl Job {
    /// A job of `operation`, `Write` or `Delete`, over `items`.
    #[must_use]
    pub fn new(operation: Operation, items: Items, shared: Arc<Shared>) -> Self {
        Self { operation, items, next: AtomicU64::new(0), shared }
    }

    /// How many requests it is: a prepared object is written and deleted on each of its disks,
    /// where those are asked.
    fn len(&self) -> u64 {
        match &self.items {
            Items::Prepared { count, .. } => *count * self.shared.config.copies(),
            Items::Listed(numbers) => numbers.len() as u64 * self.shared.config.copies(),
            Items::Written(written) => written.len() as u64,
        }
    }

    /// The next request, whose object it is, and which replica of it.
    pub fn take(&self, config: &Config) -> Option<(Request, Whose, u64)> {
        let turn = self
            .next
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| {
                (next < self.len()).then_some(next + 1)
            })
            .ok()?;
        let workload = &config.workload;
        let operation = self.operation;
        Some(match &self.items {
            Items::Prepared { first, stride, .. } => {
                let (turn, replica) = (turn / config.copies(), turn % config.copies());
                (prepared(config, operation, first + turn * stride), Whose::NOBODY, replica)
            }
            Items::Listed(numbers) => {
                let (turn, replica) = (turn / config.copies(), turn % config.copies());
                (prepared(config, operation, numbers[turn as usize]), Whose::NOBODY, replica)
            }
            Items::Written(written) => {
                let (whose, index) = written[turn as usize];
                let size = workload.written_size(config.seed, &whose, index);
                let container = index % workload.objects.containers;
                let request =
                    Request { operation, container, object: Object::Written(index), size };
                (
                    request,
                    whose,
                    replica(config.copies(), config.seed, &workload.name, &whose, 0, &request),
                )
            }
        })
    }

    /// No more is taken from it.
    pub fn abandon(&self) {
        self.keep_from(self.next.swap(self.len(), Ordering::SeqCst));
    }

    /// One item could not be done.
    pub fn give_back(&self, request: &Request, whose: Whose) {
        if let Object::Written(index) = request.object {
            lock(&self.shared.ledger).push((whose, index));
        }
    }

    fn keep_from(&self, turn: u64) {
        if let Items::Written(written) = &self.items {
            lock(&self.shared.ledger).extend_from_slice(&written[turn as usize..]);
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
    Request { operation, container, object: Object::Prepared(index), size }
}
