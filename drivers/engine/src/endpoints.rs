//! Several endpoints of one target: which one a request goes to, what came of it there, and which
//! are left out.

use crate::config::{Config, Spread};
use crate::histograms::{empty, encoded};
use crate::recorder::{Failure, whole_us};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Failed connections in a row after which a dead endpoint is left out.
pub const DEAD_AFTER: u32 = 3;

/// The endpoints of a target.
#[derive(Debug)]
pub struct Endpoints {
    states: Vec<State>,
    spread: Spread,
    drop_dead: bool,
}

#[derive(Debug)]
struct State {
    name: String,
    /// Failed connections since the last that was made.
    refused: AtomicU32,
    left_out: AtomicBool,
}

impl Endpoints {
    /// The endpoints of a config.
    pub fn new(config: &Config) -> Self {
        let state = |name: &String| State {
            name: name.clone(),
            refused: AtomicU32::new(0),
            left_out: AtomicBool::new(false),
        };
        Self {
            states: config.endpoints.iter().map(|one| state(&one.name)).collect(),
            spread: config.spread,
            drop_dead: config.drop_dead,
        }
    }

    /// Whether there is more than one.
    pub fn several(&self) -> bool {
        self.states.len() > 1
    }

    /// The endpoint of a worker's request number `asked`: always the same, or one after the other.
    /// Those that are left out have their share spread evenly over the rest. A `job` takes turns,
    /// so that what one endpoint refuses is tried at another.
    pub fn choose(&self, worker: u64, asked: u64, job: bool) -> usize {
        let rotates = job || self.spread == Spread::RoundRobin;
        let turn = if rotates { worker.wrapping_add(asked) } else { worker };
        let count = self.states.len() as u64;
        let wished = (turn % count) as usize;
        if !self.is_left_out(wished) {
            return wished;
        }
        let alive: Vec<usize> =
            (0..self.states.len()).filter(|&index| !self.is_left_out(index)).collect();
        // Empty only while two threads leave out the last two at the same time.
        if alive.is_empty() { wished } else { alive[(turn / count) as usize % alive.len()] }
    }

    fn is_left_out(&self, endpoint: usize) -> bool {
        self.states[endpoint].left_out.load(Ordering::Relaxed)
    }

    /// A connection to an endpoint was made.
    pub fn connected(&self, endpoint: usize) {
        if self.several() {
            self.states[endpoint].refused.store(0, Ordering::Relaxed);
        }
    }

    /// A connection to an endpoint could not be made: it may be left out from now on, unless it is
    /// the last one.
    pub fn refused(&self, endpoint: usize) {
        if !self.several() {
            return;
        }
        let state = &self.states[endpoint];
        let refused = state.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let others = (0..self.states.len()).any(|one| one != endpoint && !self.is_left_out(one));
        if self.drop_dead && refused >= DEAD_AFTER && others {
            state.left_out.store(true, Ordering::Relaxed);
        }
    }

    /// What came of the requests to each endpoint, as `EndpointTally` of
    /// results.run.measurement; empty for a single one.
    pub fn records(&self, tallies: &[Tally]) -> Vec<EndpointRecord> {
        if !self.several() {
            return Vec::new();
        }
        let none = Tally::default();
        self.states
            .iter()
            .enumerate()
            .map(|(index, state)| {
                let tally = tallies.get(index).unwrap_or(&none);
                EndpointRecord {
                    name: state.name.clone(),
                    count: tally.count,
                    errors: tally
                        .errors
                        .iter()
                        .map(|(class, count)| (class.to_string(), *count))
                        .collect(),
                    latency: tally.latency.as_ref().map(encoded),
                    left_out: self.is_left_out(index),
                }
            })
            .collect()
    }
}

/// Counts of one endpoint's requests in the window, all operations together.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    errors: BTreeMap<Failure, u64>,
    latency: Option<Histogram<u64>>,
}

impl Tally {
    /// Counts a success.
    pub fn success(&mut self, latency_ns: u64) {
        self.count += 1;
        self.latency.get_or_insert_with(empty).saturating_record(whole_us(latency_ns));
    }

    /// Counts a failure.
    pub fn failure(&mut self, class: Failure) {
        *self.errors.entry(class).or_default() += 1;
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for (class, count) in &other.errors {
            *self.errors.entry(*class).or_default() += count;
        }
        if let Some(theirs) = &other.latency {
            self.latency
                .get_or_insert_with(empty)
                .add(theirs)
                .expect("histograms of the same bounds");
        }
    }
}

/// `EndpointTally` of results.run.measurement.
#[derive(Debug, Serialize)]
pub struct EndpointRecord {
    name: String,
    count: u64,
    errors: BTreeMap<String, u64>,
    latency: Option<String>,
    left_out: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(count: usize, spread: Spread, drop_dead: bool) -> Endpoints {
        let state = |index: usize| State {
            name: format!("e{index}"),
            refused: AtomicU32::new(0),
            left_out: AtomicBool::new(false),
        };
        Endpoints { states: (0..count).map(state).collect(), spread, drop_dead }
    }

    fn chosen(of: &Endpoints, worker: u64, job: bool) -> Vec<usize> {
        (0..6).map(|asked| of.choose(worker, asked, job)).collect()
    }

    #[test]
    fn a_worker_keeps_its_endpoint_or_takes_one_after_the_other() {
        let kept = endpoints(3, Spread::PerWorker, false);
        assert_eq!(chosen(&kept, 1, false), [1; 6]);
        assert_eq!(chosen(&kept, 5, false), [2; 6]);
        assert_eq!(chosen(&kept, 1, true), [1, 2, 0, 1, 2, 0]);
        let turning = endpoints(3, Spread::RoundRobin, false);
        assert_eq!(chosen(&turning, 2, false), [2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_dead_endpoint_is_left_out_only_if_asked_and_never_the_last() {
        let patient = endpoints(2, Spread::PerWorker, false);
        (0..9).for_each(|_| patient.refused(0));
        assert_eq!(patient.choose(0, 0, false), 0);
        let strict = endpoints(2, Spread::PerWorker, true);
        strict.refused(0);
        strict.refused(0);
        strict.connected(0);
        strict.refused(0);
        assert_eq!(strict.choose(0, 0, false), 0, "not three in a row");
        (0..2).for_each(|_| strict.refused(0));
        assert_eq!(strict.choose(0, 0, false), 1);
        (0..9).for_each(|_| strict.refused(1));
        assert_eq!(strict.choose(1, 0, false), 1);
        let records = strict.records(&[]);
        assert_eq!([records[0].left_out, records[1].left_out], [true, false]);
    }

    #[test]
    fn the_share_of_a_dead_endpoint_is_spread_evenly_over_the_others() {
        for spread in [Spread::PerWorker, Spread::RoundRobin] {
            let three = endpoints(3, spread, true);
            (0..DEAD_AFTER).for_each(|_| three.refused(1));
            let mut counts = [0; 3];
            for worker in 0..12 {
                for asked in 0..12 {
                    counts[three.choose(worker, asked, false)] += 1;
                }
            }
            assert_eq!(counts, [72, 0, 72], "{spread:?}");
        }
    }

    #[test]
    fn counts_of_threads_are_added_and_a_single_endpoint_has_none() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.success(2_000_000);
        one.failure(Failure::Reset);
        other.success(4_000_000);
        other.failure(Failure::Reset);
        other.failure(Failure::Connect);
        one.merge(&other);
        let records = endpoints(2, Spread::PerWorker, false).records(&[one]);
        assert_eq!((records[0].name.as_str(), records[0].count), ("e0", 2));
        assert_eq!(records[0].errors, BTreeMap::from([("connect".into(), 1), ("reset".into(), 2)]));
        assert!(records[0].latency.is_some());
        assert_eq!((records[1].count, records[1].latency.is_some()), (0, false));
        assert!(endpoints(1, Spread::PerWorker, false).records(&[]).is_empty());
    }
}
