use super::*;
use crate::histograms::encoded;

fn sample(latency_ns: u64, bytes: u64) -> Sample {
    Sample { latency_ns, first_byte_ns: Some(latency_ns / 2), bytes, before_ns: 0 }
}

fn cut(age_ns: u64) -> Cut {
    Cut { age_ns, before_ns: 0, first_byte_ns: None }
}

#[test]
fn min_max_and_sum_are_exact_unlike_the_histogram() {
    let mut recorder = Recorder::new([Operation::Read]);
    recorder.success(Operation::Read, 0, &sample(123_456_789, 10));
    recorder.success(Operation::Read, 2, &sample(400, 10));
    let (tallies, seconds) = recorder.records();
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

fn histogram(values_us: &[u64]) -> Histogram<u64> {
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
    a.failure(Operation::Read, 0, Failure::Http(503), cut(1_000_000));
    a.failure(Operation::Read, 0, Failure::Http(503), cut(1_000_000));
    b.failure(Operation::Read, 1, Failure::Http(503), cut(2_000_000));
    b.failure(Operation::Write, 0, Failure::ShortBody, cut(5_000));
    b.failure(Operation::Read, 1, Failure::Timeout, cut(60_000_000_000));
    for (recorder, age_ns, before_ns, first_byte_ns) in
        [(&mut a, 7_000_000, 3_000_000, 6_000_000), (&mut b, 9_000_000, 2_000_000, 9_500_000)]
    {
        let cut = Cut { age_ns, before_ns, first_byte_ns: Some(first_byte_ns) };
        recorder.outstanding(Operation::Read, cut);
    }
    b.paused(Operation::Read, 10_000_000);
    a.begun();
    b.begun();
    b.waiting(Operation::Write, 4_000_000);
    a.merge(&b);
    assert_eq!(a.pace(), (2, 4000));
    let (tallies, seconds) = a.records();
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
        (60_014_000, 16_000, 5000)
    );
    assert_eq!(
        (tallies[0].in_flight_max_us, tallies[1].in_flight_max_us),
        (Some(60_000_000), Some(4000))
    );
    assert_eq!(tallies[0].in_flight, Some(encoded(&histogram(&[7000, 9000, 60_000_000]))));
    assert_eq!(tallies[0].awaiting, Some(encoded(&histogram(&[9000, 60_000_000]))));
    assert_eq!(tallies[0].first_byte, Some(encoded(&histogram(&[500, 1500, 6000]))));
    assert!(tallies[1].awaiting.is_none(), "writes have no first byte");
    assert_eq!(seconds.iter().map(|second| second.errors).sum::<u64>(), 5);
}

#[test]
fn failures_alone_have_no_latency() {
    let mut recorder = Recorder::new([Operation::Write]);
    recorder.failure(Operation::Write, 0, Failure::Reset, cut(1000));
    let (tallies, _) = recorder.records();
    assert!(
        tallies[0].latency.is_none() && tallies[0].min_us.is_none() && tallies[0].max_us.is_none()
    );
    assert!(tallies[0].in_flight.is_none() && tallies[0].in_flight_max_us.is_none());
    assert_eq!(tallies[0].errors["reset"], 1);
}

#[test]
fn failures_and_requests_in_flight_are_counted_by_second_and_the_longest_stall_is_kept() {
    let (mut a, mut b) = (Recorder::new([Operation::Read]), Recorder::new([Operation::Read]));
    a.failure(Operation::Read, 1, Failure::Timeout, cut(1000));
    a.failure(Operation::Read, 1, Failure::Http(503), cut(1000));
    b.failure(Operation::Read, 1, Failure::Http(503), cut(1000));
    b.failure(Operation::Read, 2, Failure::Http(500), cut(1000));
    a.in_flight(Operation::Read, 0..3);
    b.in_flight(Operation::Read, 2..3);
    b.in_flight(Operation::Read, 2..2);
    a.stalled(3_000_000);
    b.stalled(2_000_000);
    a.merge(&b);
    let (_, seconds) = a.records();
    let failures: Vec<_> = seconds.iter().map(|second| second.failures.clone()).collect();
    let classes = |some: &[(&str, u64)]| {
        some.iter().map(|&(name, count)| (name.to_string(), count)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(
        failures,
        [classes(&[]), classes(&[("http-503", 2), ("timeout", 1)]), classes(&[("http-500", 1)])]
    );
    assert_eq!(seconds.iter().map(|second| second.in_flight).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(a.stall_us(), 3000);
}
