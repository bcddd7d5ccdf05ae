//! The requests of a worker, and what follows from their failures.

use crate::config::Config;
use crate::crew::Crew;
use crate::job::Job;
use crate::picker::{Object, Picker, Request};
use crate::random::{Random, hash, hash_text};
use crate::recorder::Failure;
use crate::ring::replica;
use crate::shared::{WrittenObjects, lock};
use crate::workload::{Operation, WorkerId};
use std::sync::Arc;

/// How many times a job tries an object.
const MOST_TRIES: u32 = 10;

/// The origin of a worker's requests.
#[derive(Debug)]
pub enum Source {
    /// A step: an endless sequence.
    Step(Step),
    /// A prepare or delete job shared by several workers.
    Job {
        /// The job.
        job: Arc<Job>,
        /// The current item of this worker.
        item: Option<Item>,
        /// Number of this worker in the job.
        worker: u64,
    },
    /// Parts of the uploads of a step's worker.
    Helper {
        /// That worker and its helpers.
        crew: Arc<Crew>,
        /// That worker.
        id: WorkerId,
    },
}

/// The current item of a worker of a job.
#[derive(Debug)]
pub struct Item {
    request: Request,
    id: WorkerId,
    replica: u64,
    /// How many times it was tried.
    tries: u32,
}

/// A worker's part of a step.
#[derive(Debug)]
pub struct Step {
    /// Its sequence.
    pub picker: Picker,
    /// At a constant rate: the intended start of its next request, and the interval, in
    /// nanoseconds.
    pub pace: Option<(f64, f64)>,
    /// Selects the requests whose content is checked.
    pub sample: Random,
    /// Requests drawn so far.
    pub turn: u64,
    /// Writes that failed or whose deletion did: they may exist, so a clean-up must try.
    pub doubtful: Vec<u64>,
    /// It and its helpers, if parts of an upload are sent at the same time.
    pub crew: Option<Arc<Crew>>,
}

/// What a worker does after a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AfterFailure {
    /// Continue with the next request after a short pause.
    GoOn,
    /// Pause, twice as long with every failure in a row.
    BackOff,
    /// Stop.
    GiveUp,
}

impl Source {
    /// Number of the step worker; `None` for one of a job.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Step(step) => Some(step.picker.id().worker),
            Self::Job { .. } | Self::Helper { .. } => None,
        }
    }

    /// Those that send parts of the same uploads.
    pub fn crew(&self) -> Option<Arc<Crew>> {
        match self {
            Self::Step(step) => step.crew.clone(),
            Self::Job { .. } => None,
            Self::Helper { crew, .. } => Some(Arc::clone(crew)),
        }
    }

    /// Number of the worker among those of its step or job.
    pub fn rank(&self) -> u64 {
        match self {
            Self::Step(step) => step.picker.id().worker,
            Self::Job { worker, .. } => *worker,
            Self::Helper { id, .. } => id.worker,
        }
    }

    /// Whose objects the current request is about.
    pub fn id(&self) -> WorkerId {
        match self {
            Self::Step(step) => *step.picker.id(),
            Self::Job { item, .. } => item.as_ref().map_or(WorkerId::NONE, |item| item.id),
            Self::Helper { id, .. } => *id,
        }
    }

    /// The replica of its object that the current request is about; 0 without a ring.
    pub fn replica(&self, config: &Config, request: &Request) -> u64 {
        match self {
            Self::Step(step) => {
                let id = step.picker.id();
                replica(config.copies(), config.seed, &config.workload.name, id, step.turn, request)
            }
            Self::Job { item, .. } => item.as_ref().map_or(0, |item| item.replica),
            Self::Helper { .. } => 0,
        }
    }

    /// The next request; in a job the same one until it succeeds; `None` at the end.
    pub fn next(&mut self, config: &Config) -> Option<Request> {
        match self {
            Self::Step(step) => {
                step.turn += 1;
                step.picker.next()
            }
            Self::Job { job, item, .. } => {
                if item.is_none() {
                    *item = job.take(config).map(|(request, id, replica)| Item {
                        request,
                        id,
                        replica,
                        tries: 0,
                    });
                }
                item.as_ref().map(|item| item.request)
            }
            Self::Helper { .. } => None,
        }
    }

    /// Whether the content of the request just drawn is checked: so is a seeded share in a step.
    pub fn checks(&mut self, config: &Config) -> bool {
        match self {
            Self::Step(step) => {
                config.verify > 0.0 && (config.verify >= 1.0 || step.sample.unit() < config.verify)
            }
            Self::Job { .. } | Self::Helper { .. } => false,
        }
    }

    /// The request succeeded.
    pub fn succeeded(&mut self) {
        if let Self::Job { item, .. } = self {
            *item = None;
        }
    }

    /// The request failed.
    pub fn failed(&mut self, request: &Request, class: Failure) -> AfterFailure {
        match self {
            Self::Step(step) => {
                step.doubt(request);
                if class == Failure::Connect { AfterFailure::BackOff } else { AfterFailure::GoOn }
            }
            Self::Job { job, item, .. } => {
                // Retried: a missing object would spoil every step after it.
                let tries = item.as_mut().map_or(MOST_TRIES, |item| {
                    item.tries += 1;
                    item.tries
                });
                if tries < MOST_TRIES {
                    return AfterFailure::BackOff;
                }
                job.abandon();
                AfterFailure::GiveUp
            }
            Self::Helper { .. } => AfterFailure::GoOn,
        }
    }

    /// Ends the source, with this request unfinished; adds to `written` what was written and not
    /// deleted.
    pub fn settle(self, unfinished: Option<&Request>, written: &WrittenObjects) {
        match self {
            Self::Step(mut step) => {
                if let Some(request) = unfinished {
                    step.doubt(request);
                }
                let id = *step.picker.id();
                let indices = step.doubtful.into_iter().chain(step.picker.into_kept());
                lock(written).extend(indices.map(|index| (id, index)));
            }
            Self::Job { job, item: Some(item), .. } => job.give_back(&item.request, item.id),
            Self::Job { .. } | Self::Helper { .. } => {}
        }
    }
}

impl Step {
    /// The part of the worker of `picker`, from its first request on.
    pub fn new(picker: Picker, pace: Option<(f64, f64)>, config: &Config) -> Self {
        let WorkerId { workers, repeat, worker } = *picker.id();
        let sample = Random::new(hash(&[
            config.seed,
            hash_text(&config.workload.name),
            4,
            workers,
            repeat,
            worker,
        ]));
        let is_crew = config.workload.multipart.is_some_and(|multipart| multipart.at_once > 1);
        let crew = is_crew.then(Arc::default);
        Self { picker, pace, sample, turn: 0, doubtful: Vec::new(), crew }
    }

    /// The requests that were due before `closed_ns` and have not been sent: of each the operation,
    /// and how long it has waited in nanoseconds. `drawn` is the next of them, if it is drawn
    /// already. Does not advance the sequence.
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

    /// Notes an object that may or may not exist: its write or delete was not seen to succeed.
    fn doubt(&mut self, request: &Request) {
        if let (operation, Object::Written(index)) = (request.operation, request.object) {
            if operation.writes() {
                self.picker.withdraw(index);
            }
            self.doubtful.push(index);
        }
    }
}
