//! Numbers that look random and follow from a seed: `SplitMix64` (Steele, Lea and Flood, "Fast
//! splittable pseudorandom number generators", OOPSLA 2014).

/// A sequence that its seed decides.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The next number, from 0 up to but not 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
