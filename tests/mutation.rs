//! Valid bytes, mutated and split: the input of the property tests of every parser in Rust.
//!
//! The same cases in every run; `WEIGHBRIDGE_FUZZ_SEED=N` draws other cases and
//! `WEIGHBRIDGE_FUZZ_CASES=N` that many. A failing case is shrunk and printed.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestError, TestRunner};
use std::cell::Cell;
use std::env;
use std::fmt;

/// Default number of cases of a property.
const CASES: u32 = 20_000;

/// Bytes with a meaning for many parsers.
const HOSTILE: &[u8] = b"\0\t\n\r \"0:;<";

/// Bytes that are shown as text.
#[derive(Clone, Eq, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A small mutation, at a position or at the end.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Flip(u32),
    Replace(u8),
    Insert(u8),
    Append(u8),
    Delete(usize),
    Repeat(usize),
    Shorten(usize),
    Truncate,
}

/// Up to three faults with their positions.
pub fn faults() -> impl Strategy<Value = Vec<(Index, Fault)>> {
    let byte = || prop_oneof![any::<u8>(), select(HOSTILE)];
    let fault = prop_oneof![
        (0..u8::BITS).prop_map(Fault::Flip),
        byte().prop_map(Fault::Replace),
        byte().prop_map(Fault::Insert),
        byte().prop_map(Fault::Append),
        (0..9_usize).prop_map(Fault::Delete),
        (0..9_usize).prop_map(Fault::Repeat),
        (0..9_usize).prop_map(Fault::Shorten),
        Just(Fault::Truncate),
    ];
    vec((any::<Index>(), fault), 0..4)
}

/// Valid bytes with these faults.
pub fn with_faults(mut bytes: Vec<u8>, faults: &[(Index, Fault)]) -> Bytes {
    for (place, fault) in faults {
        let at = place.index(bytes.len() + 1);
        let part = |length| at..bytes.len().min(at + length);
        match *fault {
            Fault::Flip(bit) => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << bit),
            Fault::Replace(new) => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = new),
            Fault::Insert(byte) => bytes.insert(at, byte),
            Fault::Append(byte) => bytes.push(byte),
            Fault::Delete(length) => drop(bytes.drain(part(length))),
            Fault::Repeat(length) => {
                let again = bytes[part(length)].to_vec();
                bytes.splice(at..at, again);
            }
            Fault::Shorten(length) => bytes.truncate(bytes.len().saturating_sub(length)),
            Fault::Truncate => bytes.truncate(at),
        }
    }
    Bytes(bytes)
}

/// Valid bytes with a few faults.
pub fn spoilt(good: &[u8]) -> impl Strategy<Value = Bytes> {
    faults().prop_map(move |faults| with_faults(good.to_vec(), &faults))
}

/// Sizes of parts, each of at most `most` bytes.
pub fn sizes(most: usize) -> impl Strategy<Value = Vec<usize>> {
    vec(1..=most, 0..40)
}

/// The bytes in non-empty parts of these sizes, and the rest as one more.
pub fn cut<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    for &size in sizes.iter().chain([&usize::MAX]) {
        let (part, rest) = bytes.split_at(size.min(bytes.len()));
        parts.push(part);
        bytes = rest;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Checks a property, which panics where it does not hold and returns whether the case was valid.
/// Some cases must be valid and some not, else little would be tested; below 1000 cases that is
/// left to chance.
pub fn hold<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> bool) {
    let cases = number("WEIGHBRIDGE_FUZZ_CASES")
        .map_or(CASES, |cases| u32::try_from(cases.max(1)).unwrap_or(u32::MAX));
    let seed = number("WEIGHBRIDGE_FUZZ_SEED").unwrap_or(0);
    let config = Config {
        cases,
        rng_algorithm: RngAlgorithm::XorShift, // in debug builds five times as fast as the default
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let good = Cell::new(0_u32);
    let tried = TestRunner::new(config).run(&strategy, |case| {
        good.set(good.get() + u32::from(property(case)));
        Ok(())
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => {
            eprintln!("seed {seed}: {case:?}");
            property(case); // again, so that the panic shows its place
            panic!("seed {seed}: the property failed but not when repeated: {why}");
        }
        Err(TestError::Abort(why)) => panic!("seed {seed}: {why}"),
    }
    let good = good.get();
    assert!(
        cases < 1000 || (good > cases / 10 && good < cases),
        "seed {seed}: {good} of {cases} cases were valid"
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
