//! MD5s of written bodies, which the `ETag`s of answers are checked against.

use crate::content::Content;
use crate::shared::lock;
use crate::workload::Workload;
use md5::{Digest as _, Md5};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Larger bodies of drawn sizes are not hashed: other requests would wait.
pub const LARGEST_DRAWN_BYTES: u64 = 1 << 20;

/// Parts of uploads are hashed as far as this into objects of each fixed size: an engine is made
/// before each step.
pub const HASHED_PARTS_BYTES: u64 = 64 << 20;

const PIECE_BYTES: usize = 256 * 1024;

/// An MD5.
pub type Sum = [u8; 16];

/// The MD5s of one workload's bodies, which follow from their sizes.
#[derive(Debug)]
pub struct Digests {
    /// Sizes that recur.
    fixed: BTreeSet<u64>,
    /// By size and version.
    known: Mutex<BTreeMap<(u64, u64), Sum>>,
    /// Of parts of uploads, by the size of the object and where they begin.
    parts: BTreeMap<(u64, u64), Sum>,
}

impl Digests {
    /// MD5s for a workload. If it writes, those of fixed sizes are computed now: hashing during a
    /// step would delay requests.
    pub fn new(workload: &Workload, content: &Content) -> Self {
        let fixed = workload.objects.size.fixed();
        let mut parts = BTreeMap::new();
        if let Some(multipart) = workload.multipart.filter(|one| one.part > 0) {
            for &size in &fixed {
                let mut offset = 0;
                while offset < size.min(HASHED_PARTS_BYTES) {
                    let length = multipart.part.min(size - offset);
                    parts.insert((size, offset), part_sum(content, size, offset, length));
                    offset += length;
                }
            }
        }
        let digests = Self { fixed, known: Mutex::default(), parts };
        if workload.operations.keys().any(|one| one.needs_sum()) {
            // Of versions all are written in preparation, and in steps the latest.
            for version in 0..workload.versions().max(1) {
                let content = content.of_version(version);
                for &size in &digests.fixed {
                    let _ = digests.of(&content, size, false);
                }
            }
        }
        digests
    }

    /// The MD5 of a body of `size`. For drawn sizes it is computed only if the body is `sampled`
    /// and not large.
    pub fn of(&self, content: &Content, size: u64, sampled: bool) -> Option<Sum> {
        if self.fixed.contains(&size) {
            let key = (size, content.version());
            return Some(*lock(&self.known).entry(key).or_insert_with(|| sum(content, size)));
        }
        (sampled && size <= LARGEST_DRAWN_BYTES).then(|| sum(content, size))
    }

    /// The MD5 of the part that begins at `offset` of an object of `size`, if it was hashed.
    pub fn of_part(&self, size: u64, offset: u64) -> Option<Sum> {
        self.parts.get(&(size, offset)).copied()
    }
}

fn sum(content: &Content, size: u64) -> Sum {
    part_sum(content, size, 0, size)
}

/// The MD5 of `length` bytes from `offset` on of a body of `size`.
pub fn part_sum(content: &Content, size: u64, offset: u64, length: u64) -> Sum {
    let (mut md5, mut at) = (Md5::new(), offset);
    while at < offset + length {
        let most = (offset + length - at).min(PIECE_BYTES as u64) as usize;
        let piece = content.piece(size, at, most);
        md5.update(piece);
        at += piece.len() as u64;
    }
    md5.finalize().into()
}

/// The MD5 in an `ETag`; `None` where it is something else (RFC 9110 leaves it to the server).
pub fn of_etag(value: &[u8]) -> Option<Sum> {
    let text = value.trim_ascii();
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    if text.len() != 32 {
        return None;
    }
    let (mut sum, mut seen) = ([0; 16], 0);
    for (byte, pair) in sum.iter_mut().zip(text.chunks_exact(2)) {
        let (high, low) = (hex_value(pair[0]), hex_value(pair[1]));
        seen |= high | low;
        *byte = high << 4 | (low & 15);
    }
    (seen < 16).then_some(sum)
}

/// Value of a hexadecimal digit; 16 or more: it is none.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::workload;
    use serde_json::json;

    #[test]
    fn a_sum_covers_the_complete_content() {
        let content = Content::new(3);
        for size in [0, 1, 65_536, 262_139, 1_000_000] {
            let md5: Sum = Md5::digest(content.copy(size, 0, size as usize)).into();
            assert_eq!(sum(&content, size), md5, "{size}");
        }
    }

    #[test]
    fn fixed_sizes_are_hashed_at_once_and_drawn_ones_only_in_a_small_sample() {
        let content = Content::new(3);
        let of = |size: serde_json::Value| {
            let objects = json!({"size": size, "containers": 1, "per_container": 1});
            Digests::new(
                &workload(&json!({"objects": objects, "operations": {"write": 1.0}})),
                &content,
            )
        };
        let bars = of(json!({"histogram": [
            {"size": 10, "weight": 1.0},
            {"size": [20, 3_000_000], "weight": 1.0},
        ]}));
        assert_eq!(lock(&bars.known).len(), 1);
        assert!(bars.of(&content, 10, false).is_some());
        assert_eq!(
            (bars.of(&content, 30, false), bars.of(&content, 30, true)),
            (None, Some(sum(&content, 30)))
        );
        assert_eq!(bars.of(&content, LARGEST_DRAWN_BYTES + 1, true), None);
        assert!(of(json!(5_000_000)).of(&content, 5_000_000, false).is_some());
    }

    #[test]
    fn parts_of_fixed_sizes_are_hashed_as_far_as_the_bound() {
        let content = Content::new(3);
        let of = |size: u64, part: u64| {
            let objects = json!({"size": size, "containers": 1, "per_container": 1});
            let asked = json!({"objects": objects, "operations": {"write-multipart": 1.0},
                "multipart": {"part": part}});
            Digests::new(&workload(&asked), &content)
        };
        let two = of(6_000_000, 5_000_000);
        assert_eq!(two.of_part(6_000_000, 0), Some(part_sum(&content, 6_000_000, 0, 5_000_000)));
        let tail = part_sum(&content, 6_000_000, 5_000_000, 1_000_000);
        assert_eq!(two.of_part(6_000_000, 5_000_000), Some(tail));
        assert_eq!((two.of_part(6_000_000, 1), two.parts.len()), (None, 2));
        let half = HASHED_PARTS_BYTES / 2;
        assert_eq!(of(5 * half, half).parts.len(), 2);
    }

    #[test]
    fn only_an_etag_of_32_digits_is_an_md5() {
        let text = "00112233445566778899aAbBcCdDeEfF";
        let wanted = [
            0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
            0xff,
        ];
        assert_eq!(of_etag(text.as_bytes()), Some(wanted));
        assert_eq!(of_etag(format!(" \"{text}\"").as_bytes()), Some(wanted));
        for other in [
            format!("\"{text}-3\""),
            text[1..].into(),
            format!("W/\"{text}\""),
            text.replace('a', "g"),
        ] {
            assert_eq!(of_etag(other.as_bytes()), None, "{other}");
        }
    }
}
