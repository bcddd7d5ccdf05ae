//! The counts as they are serialised in a measurement.

use crate::histograms::encoded;
use crate::recorder::Tally;
use crate::workload::Operation;
use serde::Serialize;
use std::collections::BTreeMap;

/// `Tally` of results.run.measurement.
#[derive(Debug, Serialize)]
pub struct TallyRecord {
    pub(crate) operation: Operation,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) latency: Option<String>,
    pub(crate) first_byte: Option<String>,
    pub(crate) min_us: Option<u64>,
    pub(crate) max_us: Option<u64>,
    pub(crate) sum_us: u64,
    pub(crate) failed_us: u64,
    pub(crate) outstanding_us: u64,
    pub(crate) before_us: u64,
    pub(crate) in_flight: Option<String>,
    pub(crate) in_flight_max_us: Option<u64>,
    pub(crate) awaiting: Option<String>,
}

impl TallyRecord {
    pub(crate) fn of(operation: Operation, tally: &Tally) -> Self {
        let some = tally.count > 0;
        Self {
            operation,
            count: tally.count,
            bytes: tally.bytes,
            errors: tally.errors.iter().map(|(class, count)| (class.to_string(), *count)).collect(),
            latency: some.then(|| encoded(&tally.latency)),
            first_byte: tally
                .first_byte
                .as_ref()
                .filter(|histogram| !histogram.is_empty())
                .map(encoded),
            min_us: some.then_some(tally.min_us),
            max_us: some.then_some(tally.max_us),
            sum_us: tally.sum_us,
            failed_us: tally.failed_us,
            outstanding_us: tally.outstanding_us,
            before_us: tally.before_us,
            in_flight: tally.in_flight.as_ref().map(|histogram| encoded(histogram)),
            in_flight_max_us: tally.in_flight.is_some().then_some(tally.in_flight_max_us),
            awaiting: tally.awaiting.as_ref().map(|histogram| encoded(histogram)),
        }
    }
}

/// `Second` of results.run.measurement.
#[derive(Debug, Serialize)]
pub struct SecondRecord {
    pub(crate) second: usize,
    pub(crate) operation: Operation,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
    pub(crate) max_us: u64,
    pub(crate) sum_us: u64,
    pub(crate) in_flight: u64,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) bands: Vec<(usize, u32)>,
}
