//! Latency histograms as in a measurement: 1 us to 1 h, 3 significant digits, V2 deflate in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use std::io::Read as _;

/// Largest latency a histogram resolves: 1 h. Exact maxima are recorded beside it.
pub const LARGEST_US: u64 = 3_600_000_000;
/// Significant digits.
const DIGITS: u8 = 3;
/// Magic number of the deflated form; the length of the rest follows.
const DEFLATED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const HEAD_BYTES: usize = 8;

/// An empty histogram.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LARGEST_US, DIGITS).expect("bounds that fit each other")
}

/// Encodes a histogram for any tool of `HdrHistogram`.
pub fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to a vector cannot fail");
    STANDARD.encode(bytes)
}

/// Adds encoded histograms.
/// Errors: One of them cannot be decoded, or has other bounds or digits.
pub fn added<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<String, String> {
    let (mut sum, mut reader) = (empty(), Deserializer::new());
    for text in texts {
        let one = decoded(text, &mut reader)?;
        sum.add(&one).map_err(|error| format!("a histogram cannot be added: {error}"))?;
    }
    Ok(encoded(&sum))
}

/// Decodes a histogram. The library's reader of the deflated form stops before the checksum and
/// would not detect corruption.
fn decoded(text: &str, reader: &mut Deserializer) -> Result<Histogram<u64>, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("a histogram cannot be decoded: {why}");
    let bytes = STANDARD.decode(text).map_err(|error| unreadable(&error))?;
    let (head, deflated) =
        bytes.split_at_checked(HEAD_BYTES).ok_or_else(|| unreadable(&"it is too short"))?;
    let length = deflated.len() as u32;
    if head[..4] != DEFLATED || head[4..] != length.to_be_bytes() {
        return Err(unreadable(&"not the V2 deflate form, or truncated"));
    }
    let mut counts = Vec::new();
    let mut inflater = ZlibDecoder::new(deflated);
    inflater.read_to_end(&mut counts).map_err(|error| unreadable(&error))?;
    if inflater.total_in() != deflated.len() as u64 {
        return Err(unreadable(&"data follows it"));
    }
    let one: Histogram<u64> =
        reader.deserialize(&mut counts.as_slice()).map_err(|error| unreadable(&error))?;
    let (low, high, digits) = (one.low(), one.high(), one.sigfig());
    if (low, high, digits) == (1, LARGEST_US, DIGITS) {
        return Ok(one);
    }
    Err(format!(
        "a histogram of {low}..{high} with {digits} digits, not 1..{LARGEST_US} us with {DIGITS} \
         digits"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values_us: &[u64]) -> Histogram<u64> {
        let mut made = empty();
        for &value in values_us {
            made.record(value).expect("a value within the bounds");
        }
        made
    }

    #[test]
    fn the_sum_is_the_histogram_of_all_samples() {
        let parts =
            [encoded(&of(&[1, 40_000, 40_000])), encoded(&empty()), encoded(&of(&[7, LARGEST_US]))];
        assert_eq!(
            added(parts.iter().map(String::as_str)),
            Ok(encoded(&of(&[1, 7, 40_000, 40_000, LARGEST_US])))
        );
        assert_eq!(added([]), Ok(encoded(&empty())));
    }

    #[test]
    fn a_foreign_or_corrupt_histogram_is_refused() {
        let good = encoded(&of(&[5]));
        let other = encoded(&Histogram::new_with_bounds(1, 1000, 2).expect("bounds"));
        let longer = STANDARD.encode([STANDARD.decode(&good).expect("base64"), vec![0]].concat());
        let mut flipped = STANDARD.decode(&good).expect("base64");
        *flipped.last_mut().expect("bytes") ^= 1;
        let flipped = STANDARD.encode(flipped);
        for bad in
            ["", "not base64!", "AAAA", &good[..good.len() / 2 / 4 * 4], &other, &longer, &flipped]
        {
            assert!(added([good.as_str(), bad]).is_err(), "{bad}");
        }
    }
}
