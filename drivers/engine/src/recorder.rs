//! What is counted inside the window, by operation: latencies, bytes, errors by class, and the same
//! second by second.

use crate::histograms::empty;
use crate::shown::{ShownSecond, ShownTally};
use crate::workload::Operation;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::fmt;

/// Why a request failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Failure {
    /// The answer's status was no success.
    Http(u16),
    /// No connection could be made.
    Connect,
    /// The connection ended before the answer did.
    Reset,
    /// No answer within the time given.
    Timeout,
    /// Fewer bytes than the object has.
    ShortBody,
    /// Other bytes than were written, or more of them.
    WrongContent,
    /// HEAD told another length than the object has, or none.
    WrongLength,
    /// The `ETag` of a write is the MD5 of something else.
    WrongEtag,
    /// A listing that cannot be read, or has other keys than were asked for.
    BadList,
    /// A success whose body is an error.
    ErrorBody,
    /// Not HTTP.
    Protocol,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http-{status}"),
            Self::Connect => f.write_str("connect"),
            Self::Reset => f.write_str("reset"),
            Self::Timeout => f.write_str("timeout"),
            Self::ShortBody => f.write_str("short-body"),
            Self::WrongContent => f.write_str("wrong-content"),
            Self::WrongLength => f.write_str("wrong-length"),
            Self::WrongEtag => f.write_str("wrong-etag"),
            Self::BadList => f.write_str("bad-list"),
            Self::ErrorBody => f.write_str("error-body"),
            Self::Protocol => f.write_str("protocol"),
        }
    }
}

/// One success.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// From the (intended) start to the last byte of the answer, in nanoseconds.
    pub latency_ns: u64,
    /// From the (intended) start to the first byte of the answer, in nanoseconds; only of reads.
    pub first_byte_ns: Option<u64>,
    /// Bytes of the object moved.
    pub bytes: u64,
    /// How much of the latency lies before the opening of the window, in nanoseconds.
    pub before_ns: u64,
}

/// One failure.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// As what it counts.
    pub class: Failure,
    /// From the (intended) start to the failure, in nanoseconds.
    pub age_ns: u64,
    /// How much of that lies before the opening of the window.
    pub before_ns: u64,
}

/// Bands that a second's latencies are counted in: four an octave, up to 2^32 us.
const BANDS: usize = 128;

/// The band of a latency: its power of two, and the quarter of that octave it lies in, as
/// results.record.bands has it.
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
    bands: [u32; BANDS],
}

impl Default for Cell {
    fn default() -> Self {
        Self { count: 0, bytes: 0, errors: 0, max_us: 0, sum_us: 0, bands: [0; BANDS] }
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
    /// Ages of requests that were not seen to end; few operations of few windows have any.
    pub(crate) in_flight: Option<Box<Histogram<u64>>>,
    pub(crate) in_flight_max_us: u64,
    pub(crate) seconds: Vec<Cell>,
}

/// Whole microseconds, rounded, but never 0: a histogram begins at 1.
fn whole_us(ns: u64) -> u64 {
    ((ns + 500) / 1000).max(1)
}

impl Tally {
    fn new(operation: Operation) -> Self {
        Self {
            count: 0,
            bytes: 0,
            errors: BTreeMap::new(),
            latency: empty(),
            first_byte: (operation == Operation::Read).then(empty),
            min_us: u64::MAX,
            max_us: 0,
            sum_us: 0,
            failed_us: 0,
            outstanding_us: 0,
            before_us: 0,
            in_flight: None,
            in_flight_max_us: 0,
            seconds: Vec::new(),
        }
    }

    /// A request of this age was not seen to end.
    fn unseen(&mut self, us: u64) {
        self.in_flight.get_or_insert_with(|| Box::new(empty())).saturating_record(us);
        self.in_flight_max_us = self.in_flight_max_us.max(us);
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
        if let Some(theirs) = &other.in_flight {
            self.in_flight
                .get_or_insert_with(|| Box::new(empty()))
                .add(&**theirs)
                .expect("histograms of the same bounds");
        }
        self.in_flight_max_us = self.in_flight_max_us.max(other.in_flight_max_us);
        for (second, cell) in other.seconds.iter().enumerate() {
            let mine = self.second(second);
            mine.count += cell.count;
            mine.bytes += cell.bytes;
            mine.errors += cell.errors;
            mine.max_us = mine.max_us.max(cell.max_us);
            mine.sum_us += cell.sum_us;
            for (band, count) in mine.bands.iter_mut().zip(cell.bands) {
                *band += count;
            }
        }
    }
}

/// Counts of one thread, or of all of them added up.
#[derive(Debug)]
pub struct Recorder {
    tallies: BTreeMap<Operation, Tally>,
    begun: u64,
    behind_us: u64,
}

impl Recorder {
    /// An empty one for these operations.
    #[must_use]
    pub fn new(operations: impl IntoIterator<Item = Operation>) -> Self {
        let tallies =
            operations.into_iter().map(|operation| (operation, Tally::new(operation))).collect();
        Self { tallies, begun: 0, behind_us: 0 }
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

    /// Counts a failure in second number `second` of the window. What was given up might have ended
    /// at any time after.
    pub fn failure(&mut self, operation: Operation, second: usize, failed: &Failed) {
        let tally = self.tally(operation);
        *tally.errors.entry(failed.class).or_default() += 1;
        tally.failed_us += whole_us(failed.age_ns);
        tally.before_us += failed.before_ns / 1000;
        if failed.class == Failure::Timeout {
            tally.unseen(whole_us(failed.age_ns));
        }
        tally.second(second).errors += 1;
    }

    /// A worker rested for so long after a failure, inside the window.
    pub fn rested(&mut self, operation: Operation, ns: u64) {
        self.tally(operation).failed_us += ns / 1000;
    }

    /// When the window closed, a request was outstanding for `age_ns`, of which `before_ns` lie
    /// before its opening.
    pub fn outstanding(&mut self, operation: Operation, age_ns: u64, before_ns: u64) {
        let tally = self.tally(operation);
        let us = whole_us(age_ns);
        tally.unseen(us);
        tally.outstanding_us += us;
        tally.before_us += before_ns / 1000;
    }

    /// When the window closed, a request that was to start `age_ns` before had not been sent.
    pub fn waiting(&mut self, operation: Operation, age_ns: u64) {
        self.tally(operation).unseen(whole_us(age_ns));
        self.behind_us = self.behind_us.max(whole_us(age_ns));
    }

    /// At a rate: a request was sent inside the window.
    pub fn begun(&mut self) {
        self.begun += 1;
    }

    /// At a rate: how many requests were sent inside the window, and how far the latest worker was
    /// behind its intended starts when it closed, in microseconds.
    #[must_use]
    pub fn pace(&self) -> (u64, u64) {
        (self.begun, self.behind_us)
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (operation, tally) in &other.tallies {
            self.tally(*operation).merge(tally);
        }
        self.begun += other.begun;
        self.behind_us = self.behind_us.max(other.behind_us);
    }

    /// The counts as the records `Tally` and `Second` of results.record.measurement.
    #[must_use]
    pub fn show(&self) -> (Vec<ShownTally>, Vec<ShownSecond>) {
        let tallies = self
            .tallies
            .iter()
            .map(|(&operation, tally)| ShownTally::of(operation, tally))
            .collect();
        let mut seconds: Vec<ShownSecond> = self
            .tallies
            .iter()
            .flat_map(|(&operation, tally)| {
                tally.seconds.iter().enumerate().map(move |(second, cell)| ShownSecond {
                    second,
                    operation,
                    count: cell.count,
                    bytes: cell.bytes,
                    errors: cell.errors,
                    max_us: cell.max_us,
                    sum_us: cell.sum_us,
                    bands: (0..).zip(cell.bands).filter(|&(_, count)| count > 0).collect(),
                })
            })
            .collect();
        seconds.sort_by_key(|shown| (shown.second, shown.operation));
        (tallies, seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histograms::encoded;

    fn sample(latency_ns: u64, bytes: u64) -> Sample {
        Sample { latency_ns, first_byte_ns: Some(latency_ns / 2), bytes, before_ns: 0 }
    }

    fn failed(class: Failure, age_ns: u64) -> Failed {
        Failed { class, age_ns, before_ns: 0 }
    }

    #[test]
    fn min_max_and_sum_are_exact_where_the_histogram_is_not() {
        let mut recorder = Recorder::new([Operation::Read]);
        recorder.success(Operation::Read, 0, &sample(123_456_789, 10));
        recorder.success(Operation::Read, 2, &sample(400, 10));
        let (tallies, seconds) = recorder.show();
        let tally = &tallies[0];
        assert_eq!((tally.count, tally.bytes, tally.sum_us), (2, 20, 123_458));
        assert_eq!((tally.min_us, tally.max_us), (Some(1), Some(123_457)));
        assert_eq!(seconds.iter().map(|second| second.count).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(seconds[0].max_us, 123_457);
        assert_eq!(
            seconds.iter().map(|second| second.bands.clone()).collect::<Vec<_>>(),
            [vec![(67, 1)], vec![], vec![(0, 1)]]
        );
    }

    #[test]
    fn a_band_is_a_quarter_of_an_octave() {
        for (us, expected) in [
            (1, 0),
            (2, 4),
            (3, 6),
            (4, 8),
            (5, 9),
            (7, 11),
            (8, 12),
            (9, 12),
            (10, 13),
            (1000, 39),
            (1024, 40),
        ] {
            assert_eq!(band(us), expected, "{us} us");
        }
        assert_eq!(band(u64::MAX), BANDS - 1);
    }

    fn unseen(values_us: &[u64]) -> Histogram<u64> {
        let mut made = empty();
        for &us in values_us {
            made.record(us).expect("a value within the bounds");
        }
        made
    }

    #[test]
    fn merged_counts_are_the_sum_of_all() {
        let (mut a, mut b) = (Recorder::new([Operation::Read]), Recorder::new([Operation::Write]));
        a.success(Operation::Read, 0, &sample(1_000_000, 5));
        b.success(Operation::Read, 1, &sample(3_000_000, 5));
        a.failure(Operation::Read, 0, &failed(Failure::Http(503), 1_000_000));
        a.failure(Operation::Read, 0, &failed(Failure::Http(503), 1_000_000));
        b.failure(Operation::Read, 1, &failed(Failure::Http(503), 2_000_000));
        b.failure(Operation::Write, 0, &failed(Failure::ShortBody, 5_000));
        b.failure(Operation::Read, 1, &failed(Failure::Timeout, 60_000_000_000));
        a.outstanding(Operation::Read, 7_000_000, 3_000_000);
        b.outstanding(Operation::Read, 9_000_000, 0);
        b.rested(Operation::Read, 10_000_000);
        a.begun();
        b.begun();
        b.waiting(Operation::Write, 4_000_000);
        a.merge(&b);
        assert_eq!(a.pace(), (2, 4000));
        let (tallies, seconds) = a.show();
        assert_eq!(tallies.len(), 2);
        assert_eq!(
            (tallies[0].count, tallies[0].min_us, tallies[0].max_us),
            (2, Some(1000), Some(3000))
        );
        assert_eq!(
            tallies[0].errors,
            BTreeMap::from([("http-503".to_string(), 3), ("timeout".to_string(), 1)])
        );
        assert_eq!(
            (tallies[0].failed_us, tallies[0].outstanding_us, tallies[0].before_us),
            (60_014_000, 16_000, 3000)
        );
        assert_eq!(
            (tallies[0].in_flight_max_us, tallies[1].in_flight_max_us),
            (Some(60_000_000), Some(4000))
        );
        assert_eq!(tallies[0].in_flight, Some(encoded(&unseen(&[7000, 9000, 60_000_000]))));
        assert_eq!(seconds.iter().map(|second| second.errors).sum::<u64>(), 5);
    }

    #[test]
    fn failures_alone_give_no_latency() {
        let mut recorder = Recorder::new([Operation::Write]);
        recorder.failure(Operation::Write, 0, &failed(Failure::Reset, 1000));
        let (tallies, _) = recorder.show();
        assert!(
            tallies[0].latency.is_none()
                && tallies[0].min_us.is_none()
                && tallies[0].max_us.is_none()
        );
        assert!(tallies[0].in_flight.is_none() && tallies[0].in_flight_max_us.is_none());
        assert_eq!(tallies[0].errors["reset"], 1);
    }
}
