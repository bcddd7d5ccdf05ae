//! Counts of the window, by operation and by second: latencies, bytes, classes of error.

use crate::endpoints;
use crate::histograms::empty;
use crate::records::{SecondRecord, TallyRecord};
use crate::workload::Operation;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::ops::Range;

mod failure;
pub use failure::Failure;

/// A successful request.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// From the (intended) start to the last byte of the answer, in nanoseconds.
    pub latency_ns: u64,
    /// From the (intended) start to the first byte of the answer, in nanoseconds; only of reads and lists.
    pub first_byte_ns: Option<u64>,
    /// Bytes of the object transferred.
    pub bytes: u64,
    /// The part of the latency before the window was opened, in nanoseconds.
    pub before_ns: u64,
}

/// A request that failed, or that the end of the window cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// From the (intended) start to that, in nanoseconds.
    pub age_ns: u64,
    /// The part of `age_ns` before the window was opened, in nanoseconds.
    pub before_ns: u64,
    /// From the (intended) start to the first byte of the answer, if it had come.
    pub first_byte_ns: Option<u64>,
}

/// Bands of a second's latencies: four per octave, up to 2^32 us.
const BANDS: usize = 128;

/// The band of a latency: its power of two, and the quarter of that octave it is in, as in
/// results.run.histogram.
fn band(us: u64) -> usize {
    let octave = us.max(1).ilog2();
    let quarter = if octave < 2 { us << (2 - octave) } else { us >> (octave - 2) } & 3;
    (usize::try_from(u64::from(octave) * 4 + quarter).expect("a small number")).min(BANDS - 1)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    count: u64,
    bytes: u64,
    errors: u64,
    max_us: u64,
    sum_us: u64,
    in_flight: u64,
    bands: [u32; BANDS],
}

impl Default for Cell {
    fn default() -> Self {
        let bands = [0; BANDS];
        Self { count: 0, bytes: 0, errors: 0, max_us: 0, sum_us: 0, in_flight: 0, bands }
    }
}

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: BTreeMap<Failure, u64>,
    pub(crate) latency: Histogram<u64>,
    pub(crate) first_byte: Option<Histogram<u64>>,
    pub(crate) min_us: u64,
    pub(crate) max_us: u64,
    pub(crate) sum_us: u64,
    pub(crate) failed_us: u64,
    pub(crate) outstanding_us: u64,
    pub(crate) before_us: u64,
    /// Ages of requests whose end was not observed; few operations of few windows have any.
    pub(crate) in_flight: Option<Box<Histogram<u64>>>,
    pub(crate) in_flight_max_us: u64,
    /// Those among them that had not had their first byte; what others had is in `first_byte`.
    pub(crate) awaiting: Option<Box<Histogram<u64>>>,
    pub(crate) seconds: Vec<Cell>,
    /// Failures by second and class.
    pub(crate) failures: BTreeMap<(usize, Failure), u64>,
}

/// Microseconds, rounded, but never 0: a histogram begins at 1.
pub(crate) fn whole_us(ns: u64) -> u64 {
    ((ns + 500) / 1000).max(1)
}

impl Tally {
    fn new(operation: Operation) -> Self {
        Self {
            count: 0,
            bytes: 0,
            errors: BTreeMap::new(),
            latency: empty(),
            first_byte: operation.has_body().then(empty),
            min_us: u64::MAX,
            max_us: 0,
            sum_us: 0,
            failed_us: 0,
            outstanding_us: 0,
            before_us: 0,
            in_flight: None,
            in_flight_max_us: 0,
            awaiting: None,
            seconds: Vec::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Counts a request of this age whose end was not observed, and its first byte, if it had come.
    fn record_in_flight(&mut self, cut: Cut) {
        let us = whole_us(cut.age_ns);
        self.in_flight.get_or_insert_with(|| Box::new(empty())).saturating_record(us);
        self.in_flight_max_us = self.in_flight_max_us.max(us);
        let Some(first_byte) = &mut self.first_byte else { return };
        let awaiting = self.awaiting.get_or_insert_with(|| Box::new(empty()));
        match cut.first_byte_ns.filter(|&ns| ns <= cut.age_ns) {
            Some(ns) => first_byte.saturating_record(whole_us(ns)),
            None => awaiting.saturating_record(us),
        }
    }

    fn second(&mut self, second: usize) -> &mut Cell {
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Cell::default());
        }
        &mut self.seconds[second]
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        for (class, count) in &other.errors {
            *self.errors.entry(*class).or_default() += count;
        }
        self.latency.add(&other.latency).expect("histograms of the same bounds");
        if let (Some(mine), Some(theirs)) = (&mut self.first_byte, &other.first_byte) {
            mine.add(theirs).expect("histograms of the same bounds");
        }
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
        self.sum_us += other.sum_us;
        self.failed_us += other.failed_us;
        self.outstanding_us += other.outstanding_us;
        self.before_us += other.before_us;
        for (mine, theirs) in
            [(&mut self.in_flight, &other.in_flight), (&mut self.awaiting, &other.awaiting)]
        {
            if let Some(theirs) = theirs {
                mine.get_or_insert_with(|| Box::new(empty()))
                    .add(&**theirs)
                    .expect("histograms of the same bounds");
            }
        }
        self.in_flight_max_us = self.in_flight_max_us.max(other.in_flight_max_us);
        for (second, cell) in other.seconds.iter().enumerate() {
            let mine = self.second(second);
            mine.count += cell.count;
            mine.bytes += cell.bytes;
            mine.errors += cell.errors;
            mine.max_us = mine.max_us.max(cell.max_us);
            mine.sum_us += cell.sum_us;
            mine.in_flight += cell.in_flight;
            for (band, count) in mine.bands.iter_mut().zip(cell.bands) {
                *band += count;
            }
        }
        for (place, count) in &other.failures {
            *self.failures.entry(*place).or_default() += count;
        }
    }

    /// Failures in a second, by the name of their class.
    fn failures_in(&self, second: usize) -> BTreeMap<String, u64> {
        self.failures
            .range((second, Failure::Http(0))..)
            .take_while(|((in_second, _), _)| *in_second == second)
            .map(|((_, class), count)| (class.to_string(), *count))
            .collect()
    }
}

/// Counts of one thread, or their sum.
#[derive(Debug)]
pub struct Recorder {
    tallies: BTreeMap<Operation, Tally>,
    begun: u64,
    behind_us: u64,
    connections: u64,
    stall_us: u64,
    endpoints: Vec<endpoints::Tally>,
}

impl Recorder {
    /// Makes an empty recorder for these operations.
    pub fn new(operations: impl IntoIterator<Item = Operation>) -> Self {
        let tallies = operations
            .into_iter()
            .flat_map(|operation| [Some(operation), operation.part()])
            .flatten()
            .map(|operation| (operation, Tally::new(operation)))
            .collect();
        let endpoints = Vec::new();
        Self { tallies, begun: 0, behind_us: 0, connections: 0, stall_us: 0, endpoints }
    }

    fn tally(&mut self, operation: Operation) -> &mut Tally {
        self.tallies.entry(operation).or_insert_with(|| Tally::new(operation))
    }

    /// Counts a success that completed in second number `second` of the window.
    pub fn success(&mut self, operation: Operation, second: usize, sample: &Sample) {
        let tally = self.tally(operation);
        let us = whole_us(sample.latency_ns);
        tally.count += 1;
        tally.bytes += sample.bytes;
        tally.latency.saturating_record(us);
        if let (Some(histogram), Some(ns)) = (&mut tally.first_byte, sample.first_byte_ns) {
            histogram.saturating_record(whole_us(ns));
        }
        tally.min_us = tally.min_us.min(us);
        tally.max_us = tally.max_us.max(us);
        tally.sum_us += us;
        tally.before_us += sample.before_ns / 1000;
        let cell = tally.second(second);
        cell.count += 1;
        cell.bytes += sample.bytes;
        cell.max_us = cell.max_us.max(us);
        cell.sum_us += us;
        cell.bands[band(us)] += 1;
    }

    /// Counts a failure in second number `second` of the window. A request that timed out might
    /// have ended at any time later.
    pub fn failure(&mut self, operation: Operation, second: usize, class: Failure, cut: Cut) {
        let tally = self.tally(operation);
        *tally.errors.entry(class).or_default() += 1;
        tally.failed_us += whole_us(cut.age_ns);
        tally.before_us += cut.before_ns / 1000;
        if class == Failure::Timeout {
            tally.record_in_flight(cut);
        }
        tally.second(second).errors += 1;
        *tally.failures.entry((second, class)).or_default() += 1;
    }

    /// Counts a request that was outstanding at the beginning of each of these seconds.
    pub fn in_flight(&mut self, operation: Operation, beginnings: Range<usize>) {
        let tally = self.tally(operation);
        for second in beginnings {
            tally.second(second).in_flight += 1;
        }
    }

    /// Counts how long a worker waited for a success, over all its tries, inside the window.
    pub fn stalled(&mut self, ns: u64) {
        self.stall_us = self.stall_us.max(whole_us(ns));
    }

    /// The longest time that a worker waited for a success, in microseconds.
    pub fn stall_us(&self) -> u64 {
        self.stall_us
    }

    /// Counts a pause of a worker after a failure, inside the window.
    pub fn paused(&mut self, operation: Operation, ns: u64) {
        self.tally(operation).failed_us += ns / 1000;
    }

    /// Counts a request that was outstanding when the window closed.
    pub fn outstanding(&mut self, operation: Operation, cut: Cut) {
        let tally = self.tally(operation);
        tally.record_in_flight(cut);
        tally.outstanding_us += whole_us(cut.age_ns);
        tally.before_us += cut.before_ns / 1000;
    }

    /// Counts a request that was due `age_ns` before the window closed and was not sent.
    pub fn waiting(&mut self, operation: Operation, age_ns: u64) {
        self.tally(operation).record_in_flight(Cut { age_ns, before_ns: 0, first_byte_ns: None });
        self.behind_us = self.behind_us.max(whole_us(age_ns));
    }

    /// Counts a request sent inside the window, at a constant rate.
    pub fn begun(&mut self) {
        self.begun += 1;
    }

    /// At a constant rate: how many requests were sent inside the window, and how far the latest
    /// worker was behind its intended starts when the window closed, in microseconds.
    pub fn pace(&self) -> (u64, u64) {
        (self.begun, self.behind_us)
    }

    /// Counts a connection that was made inside the window.
    pub fn connected(&mut self) {
        self.connections += 1;
    }

    /// Connections made inside the window.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// The counts of one of several endpoints.
    pub fn endpoint(&mut self, number: usize) -> &mut endpoints::Tally {
        if self.endpoints.len() <= number {
            self.endpoints.resize_with(number + 1, endpoints::Tally::default);
        }
        &mut self.endpoints[number]
    }

    /// The counts of all endpoints that requests went to.
    pub fn endpoints(&self) -> &[endpoints::Tally] {
        &self.endpoints
    }

    /// Adds the counts of another recorder.
    pub fn merge(&mut self, other: &Self) {
        for (operation, tally) in &other.tallies {
            self.tally(*operation).merge(tally);
        }
        self.begun += other.begun;
        self.behind_us = self.behind_us.max(other.behind_us);
        self.connections += other.connections;
        self.stall_us = self.stall_us.max(other.stall_us);
        for (number, tally) in other.endpoints.iter().enumerate() {
            self.endpoint(number).merge(tally);
        }
    }

    /// The counts as the records `Tally` and `Second` of results.run.measurement.
    pub fn records(&self) -> (Vec<TallyRecord>, Vec<SecondRecord>) {
        let tallies = self
            .tallies
            .iter()
            .map(|(&operation, tally)| TallyRecord::of(operation, tally))
            .collect();
        let mut seconds: Vec<SecondRecord> = self
            .tallies
            .iter()
            .flat_map(|(&operation, tally)| {
                tally.seconds.iter().enumerate().map(move |(second, cell)| SecondRecord {
                    second,
                    operation,
                    count: cell.count,
                    bytes: cell.bytes,
                    errors: cell.errors,
                    max_us: cell.max_us,
                    sum_us: cell.sum_us,
                    in_flight: cell.in_flight,
                    failures: tally.failures_in(second),
                    bands: (0..).zip(cell.bands).filter(|&(_, count)| count > 0).collect(),
                })
            })
            .collect();
        seconds.sort_by_key(|record| (record.second, record.operation));
        (tallies, seconds)
    }
}

#[cfg(test)]
mod tests;
