//! Where a worker's requests come from, and what becomes of those that failed.

use crate::config::Config;
use crate::job::Job;
use crate::picker::{Object, Picker, Request};
use crate::random::{Random, hash, hash_text};
use crate::recorder::Failure;
use crate::ring::replica;
use crate::shared::{Ledger, lock};
use crate::workload::{Operation, Whose};
use std::sync::Arc;

/// How often a job tries an object.
const MOST_TRIES: u32 = 10;

/// Where a worker's requests come from.
#[derive(Debug)]
pub enum Source {
    /// A step: an endless sequence.
    Step(Step),
    /// A prepare or delete job shared by several workers.
    Job {
        /// The job.
        job: Arc<Job>,
        /// What this worker does now, and how often it was tried.
        item: Option<Item>,
    },
}

/// What one worker of a job does now.
#[derive(Debug)]
pub struct Item {
    request: Request,
    whose: Whose,
    replica: u64,
    /// How often it was tried.
    tries: u32,
}

/// The part of a step one worker does.
#[derive(Debug)]
pub struct Step {
    /// Its sequence.
    pub picker: Picker,
    /// At a constant rate: when its next request is meant to start, and how far apart they are, in
    /// nanoseconds.
    pub pace: Option<(f64, f64)>,
    /// Which requests are looked at closely.
    pub sample: Random,
    /// Requests drawn so far.
    pub turn: u64,
    /// Writes that failed or whose deletion did: they may be there, so a clean-up must try.
    pub doubtful: Vec<u64>,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setback {
    /// On with the next request after a short rest.
    GoOn,
    /// A rest that doubles with every failure in a row.
    BackOff,
    /// No more of this.
    GiveUp,
}

impl Source {
    /// Number of the step worker; `None` for one of a job.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Step(step) => Some(step.picker.whose().worker),
            Self::Job { .. } => None,
        }
    }

    /// Whose objects the current request is about.
    #[must_use]
    pub fn whose(&self) -> Whose {
        match self {
            Self::Step(step) => *step.picker.whose(),
            Self::Job { item, .. } => item.as_ref().map_or(Whose::NOBODY, |item| item.whose),
        }
    }

    /// Which replica of its object the current request is about, where object servers are asked;
    /// else 0.
    #[must_use]
    pub fn replica(&self, config: &Config, request: &Request) -> u64 {
        match self {
            Self::Step(step) => {
                let whose = step.picker.whose();
                replica(
                    config.copies(),
                    config.seed,
                    &config.workload.name,
                    whose,
                    step.turn,
                    request,
                )
            }
            Self::Job { item, .. } => item.as_ref().map_or(0, |item| item.replica),
        }
    }

    /// The next request, or in a job the same again until it succeeded; `None` at the end.
    pub fn next(&mut self, config: &Config) -> Option<Request> {
        match self {
            Self::Step(step) => {
                step.turn += 1;
                step.picker.next()
            }
            Self::Job { job, item } => {
                if item.is_none() {
                    *item = job.take(config).map(|(request, whose, replica)| Item {
                        request,
                        whose,
                        replica,
                        tries: 0,
                    });
                }
                item.as_ref().map(|item| item.request)
            }
        }
    }

    /// Whether the content of the request just drawn is checked: a seeded share of those of a step.
    pub fn checks(&mut self, config: &Config) -> bool {
        match self {
            Self::Step(step) => {
                config.verify > 0.0 && (config.verify >= 1.0 || step.sample.unit() < config.verify)
            }
            Self::Job { .. } => false,
        }
    }

    /// The request succeeded.
    pub fn succeeded(&mut self) {
        if let Self::Job { item, .. } = self {
            *item = None;
        }
    }

    /// The request failed.
    pub fn failed(&mut self, request: &Request, class: Failure) -> Setback {
        match self {
            Self::Step(step) => {
                step.doubt(request);
                if class == Failure::Connect { Setback::BackOff } else { Setback::GoOn }
            }
            Self::Job { job, item } => {
                // Tried again a few times: an object that is missing would spoil every step after
                // it.
                let tries = item.as_mut().map_or(MOST_TRIES, |item| {
                    item.tries += 1;
                    item.tries
                });
                if tries < MOST_TRIES {
                    return Setback::BackOff;
                }
                job.abandon();
                Setback::GiveUp
            }
        }
    }

    /// The worker has ended, with this request not done: notes in the ledger what it wrote and did
    /// not delete.
    pub fn settle(self, unfinished: Option<&Request>, ledger: &Ledger) {
        match self {
            Self::Step(mut step) => {
                if let Some(request) = unfinished {
                    step.doubt(request);
                }
                let whose = *step.picker.whose();
                let indices = step.doubtful.into_iter().chain(step.picker.into_kept());
                lock(ledger).extend(indices.map(|index| (whose, index)));
            }
            Self::Job { job, item: Some(item) } => job.give_back(&item.request, item.whose),
            Self::Job { .. } => {}
        }
    }
}

impl Step {
    /// What the worker of `picker` does of a workload, from its first request on.
    #[must_use]
    pub fn new(picker: Picker, pace: Option<(f64, f64)>, config: &Config) -> Self {
        let Whose { workers, repeat, worker } = *picker.whose();
        let sample = Random::new(hash(&[
            config.seed,
            hash_text(&config.workload.name),
            4,
            workers,
            repeat,
            worker,
        ]));
        Self { picker, pace, sample, turn: 0, doubtful: Vec::new() }
    }

    /// The requests that were to start before `closed_ns` and have not been: of each the operation,
    /// and how long it has waited in nanoseconds. `drawn` is the next of them, where it is drawn
    /// already. Nothing of the sequence is used up.
    #[must_use]
    pub fn waiting(&self, drawn: Option<Operation>, closed_ns: u64) -> Vec<(Operation, u64)> {
        let Some((mut next_ns, apart_ns)) = self.pace else { return Vec::new() };
        let (mut waiting, mut drawn) = (Vec::new(), drawn);
        let mut ahead: Option<Picker> = None;
        while (next_ns as u64) < closed_ns {
            let operation = drawn.take().or_else(|| self.picker.only_operation()).or_else(|| {
                ahead
                    .get_or_insert_with(|| self.picker.clone())
                    .next()
                    .map(|request| request.operation)
            });
            let Some(operation) = operation else { break };
            waiting.push((operation, closed_ns - next_ns as u64));
            next_ns += apart_ns;
        }
        waiting
    }

    /// Whether the object of a write or delete that was not seen to succeed is there, nobody knows.
    fn doubt(&mut self, request: &Request) {
        if let (Operation::Write | Operation::Delete, Object::Written(index)) =
            (request.operation, request.object)
        {
            if request.operation == Operation::Write {
                self.picker.withdraw(index);
            }
            self.doubtful.push(index);
        }
    }
}
