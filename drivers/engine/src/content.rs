//! Content of objects: bytes derived from a seed and the object's size, cheap to make, to send and
//! to check at any offset.

use crate::random::{Random, mix};
use crate::shared::lock;
use std::sync::{Arc, Mutex};

/// Length of the repeated pattern, in bytes: a prime, so that a misplaced block never matches, and
/// small enough to stay in a core's cache while it is sent over and over.
pub const PERIOD_BYTES: usize = 262_139;

/// The same of content with a stated share of compressible bytes: a prime beyond the windows of
/// compressors, so that they find no repetition.
pub const LONG_PERIOD_BYTES: usize = 8_388_593;

/// Compressible content alternates between random bytes and zeros in blocks of this size.
const BLOCK_BYTES: usize = 1024;

/// How far apart the beginnings of an object's versions are in the pattern: no factor of a period,
/// so that none are at the same place.
const VERSIONS_APART_BYTES: u64 = 65_537;

/// Bodies up to this size are always one slice of the pattern.
pub const SINGLE_PIECE_BYTES: usize = 65_536;

/// The seeded pattern. Objects of one size are equal, version by version; objects of different
/// sizes, and versions of one, begin at different offsets in it.
#[derive(Debug)]
pub struct Content {
    bytes: Arc<[u8]>,
    period: usize,
    version: u64,
}

impl Content {
    /// Generates the pattern of `seed`.
    pub fn new(seed: u64) -> Self {
        Self::made(seed, PERIOD_BYTES, 0.0)
    }

    /// The pattern of `seed`, of which this share of bytes compresses to nothing; `None`: as `new`.
    pub fn with_share(seed: u64, compressible: Option<f64>) -> Self {
        match compressible {
            None => Self::new(seed),
            Some(share) => Self::made(seed, LONG_PERIOD_BYTES, share),
        }
    }

    fn made(seed: u64, period: usize, compressible: f64) -> Self {
        let mut random = Random::new(mix(seed ^ 0x636f_6e74_656e_7421));
        let mut bytes = Vec::with_capacity(period + SINGLE_PIECE_BYTES + 8);
        while bytes.len() < period {
            bytes.extend_from_slice(&random.next_u64().to_le_bytes());
        }
        bytes.truncate(period);
        let zeros = (compressible * BLOCK_BYTES as f64).round() as usize;
        if zeros > 0 {
            for block in bytes.chunks_mut(BLOCK_BYTES) {
                let from = block.len().saturating_sub(zeros);
                block[from..].fill(0);
            }
        }
        bytes.extend_from_within(..SINGLE_PIECE_BYTES);
        Self { bytes: bytes.into(), period, version: 0 }
    }

    /// What objects hold in version number `version`; 0: as where none are kept.
    pub fn of_version(&self, version: u64) -> Self {
        Self { bytes: Arc::clone(&self.bytes), version, ..*self }
    }

    /// The number of the version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The pattern of `seed` and share; the last one made is kept.
    pub fn of(seed: u64, compressible: Option<f64>) -> Arc<Self> {
        type Made = (u64, Option<u64>, Arc<Content>);
        static LAST: Mutex<Option<Made>> = Mutex::new(None);
        let share = compressible.map(f64::to_bits);
        let mut last = lock(&LAST);
        match &*last {
            Some((known, same, content)) if *known == seed && *same == share => Arc::clone(content),
            _ => {
                let content = Arc::new(Self::with_share(seed, compressible));
                *last = Some((seed, share, Arc::clone(&content)));
                content
            }
        }
    }

    /// Bytes of an object of `size` from `offset` on: as many, up to `most`, as are contiguous;
    /// empty at its end.
    pub fn piece(&self, size: u64, offset: u64, most: usize) -> &[u8] {
        let left = size.saturating_sub(offset).min(most as u64) as usize;
        let period = self.period as u64;
        let version = self.version * VERSIONS_APART_BYTES % period;
        let start = ((mix(size) % period + version + offset) % period) as usize;
        &self.bytes[start..self.bytes.len().min(start + left)]
    }

    /// Whether `data` is what an object of `size` holds at `offset`.
    pub fn holds(&self, size: u64, offset: u64, data: &[u8]) -> bool {
        let (mut offset, mut data) = (offset, data);
        while !data.is_empty() {
            let piece = self.piece(size, offset, data.len());
            if piece.is_empty() || *piece != data[..piece.len()] {
                return false;
            }
            offset += piece.len() as u64;
            data = &data[piece.len()..];
        }
        true
    }

    /// A copy of bytes `offset .. offset + length`, cut at the end of the object.
    pub fn copy(&self, size: u64, offset: u64, length: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(length.min(size.saturating_sub(offset) as usize));
        while copy.len() < length {
            let piece = self.piece(size, offset + copy.len() as u64, length - copy.len());
            if piece.is_empty() {
                break;
            }
            copy.extend_from_slice(piece);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_share_of_compressible_content_is_zeros_in_each_part_of_an_object() {
        let content = Content::with_share(5, Some(0.75));
        let copy = content.copy(4_194_304, 0, 4_194_304);
        for part in copy.chunks(65_536) {
            let zeros: usize = part.iter().map(|&byte| usize::from(byte == 0)).sum();
            let share = zeros as f64 / part.len() as f64;
            assert!((share - 0.75).abs() < 0.02, "{share}");
        }
        assert!(content.holds(4_194_304, 0, &copy));
        assert!(!Content::new(5).holds(4_194_304, 0, &copy));
        let random = Content::with_share(5, Some(0.0)).copy(4_194_304, 0, 4_194_304);
        assert_ne!(random[..1000], random[PERIOD_BYTES..PERIOD_BYTES + 1000], "it repeats itself");
    }

    #[test]
    fn pieces_add_up_to_the_content() {
        let content = Content::new(5);
        let size = 3 * PERIOD_BYTES as u64 + 17;
        let all = content.copy(size, 0, size as usize);
        assert_eq!(all.len() as u64, size);
        for offset in [0, 1, 65_535, 65_536, 262_138, 262_139, 500_000, size - 1, size] {
            let copy = content.copy(size, offset, 100_000);
            assert_eq!(copy, all[offset as usize..all.len().min(offset as usize + 100_000)]);
            assert!(content.holds(size, offset, &copy));
        }
    }

    #[test]
    fn versions_differ_from_one_another_and_the_first_is_the_usual_content() {
        let content = Content::new(5);
        for size in [16, 1000, 300_000] {
            let all: std::collections::BTreeSet<_> =
                (0..100).map(|one| content.of_version(one).copy(size, 0, 16)).collect();
            assert_eq!(all.len(), 100, "{size}");
            assert_eq!(content.of_version(0).copy(size, 0, 16), content.copy(size, 0, 16));
            let third = content.of_version(2);
            let copy = third.copy(size, 0, size as usize);
            assert!(third.holds(size, 0, &copy) && !content.holds(size, 0, &copy));
        }
    }

    #[test]
    fn small_bodies_are_one_piece() {
        let content = Content::new(5);
        for size in (0..=SINGLE_PIECE_BYTES as u64).step_by(111) {
            assert_eq!(content.piece(size, 0, usize::MAX).len() as u64, size);
        }
    }

    #[test]
    fn a_wrong_byte_offset_size_seed_or_length_is_detected() {
        let content = Content::new(5);
        let mut copy = content.copy(10_000, 0, 10_000);
        assert!(!content.holds(10_001, 0, &copy));
        assert!(!Content::new(6).holds(10_000, 0, &copy));
        assert!(!content.holds(10_000, 1, &copy));
        copy.push(copy[0]);
        assert!(!content.holds(10_000, 0, &copy));
        copy.pop();
        copy[9_999] ^= 1;
        assert!(!content.holds(10_000, 0, &copy));
        let large = 4 << 20;
        let block = content.copy(large, 1 << 20, 4096);
        assert!(!content.holds(large, 2 << 20, &block));
    }
}
