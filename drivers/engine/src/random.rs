//! Random numbers that are the same on every machine and in every version, to repeat sequences.

use std::collections::HashSet;

/// Spreads every bit of `z` over all 64: the finaliser of `SplitMix64` (Steele, Lea and Flood,
/// OOPSLA 2014).
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes numbers; their order matters.
pub fn hash(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(GOLDEN, |sum, part| mix(sum.wrapping_add(GOLDEN) ^ mix(part.wrapping_add(GOLDEN))))
}

/// Hashes text (FNV-1a, mixed).
pub fn hash_text(text: &str) -> u64 {
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// A `SplitMix64` stream: 8 bytes of state, period 2^64.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number in `0..n` (Lemire's multiplication; its bias is below n / 2^64). `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// `count` distinct numbers of `0..population`, in the order they are drawn (Floyd and Bentley,
    /// "A sample of brilliance", CACM 1987). `count` must not be above `population`.
    pub fn sample(&mut self, population: u64, count: u64) -> Vec<u64> {
        let mut seen = HashSet::with_capacity(count as usize);
        let mut drawn = Vec::with_capacity(count as usize);
        for last in population - count..population {
            let number = self.below(last + 1);
            let number = if seen.insert(number) { number } else { last };
            seen.insert(number);
            drawn.push(number);
        }
        drawn
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Zipf's law over ranks `1..=n`: rank k in proportion to `1 / k^s`, by rejection-inversion
/// (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996): no table, O(1) a draw.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    s: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// The distribution over `n >= 1` ranks with exponent `s > 0`.
    pub fn new(n: u64, s: f64) -> Self {
        let n = n as f64;
        Self {
            n,
            s,
            integral_first: integral(1.5, s) - 1.0,
            integral_last: integral(n + 0.5, s),
            shortcut: 2.0 - inverse(integral(2.5, s) - 2f64.powf(-s), s),
        }
    }

    /// A rank in `0..n`, 0 the most popular.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = inverse(u, self.s);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= integral(k + 0.5, self.s) - k.powf(-self.s) {
                return k as u64 - 1;
            }
        }
    }
}

/// The integral of `x^-s` from 1, in a form that is exact near s = 1.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    growth((1.0 - s) * log) * log
}

fn inverse(x: f64, s: f64) -> f64 {
    // Rounding can bring the argument just below -1, where the logarithm is undefined.
    let t = (x * (1.0 - s)).max(-1.0);
    (shrink(t) * x).exp()
}

/// `(e^x - 1) / x`, and its limit 1 at 0.
fn growth(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`, and its limit 1 at 0.
fn shrink(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_matches_the_published_one() {
        // SplitMix64 of seed 1234567, as in the reference implementation's test vector.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_draws_each_number_equally_often() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn a_sample_has_distinct_numbers_each_equally_likely() {
        let mut seen = [0u32; 10];
        for seed in 0..5000 {
            let drawn = Random::new(hash(&[seed])).sample(10, 4);
            assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 4, "{drawn:?}");
            for number in drawn {
                seen[number as usize] += 1;
            }
        }
        assert!(seen.iter().all(|&count| (1850..2150).contains(&count)), "{seen:?}");
        assert_eq!(Random::new(1).sample(5, 5).into_iter().collect::<HashSet<_>>().len(), 5);
        assert!(Random::new(1).sample(5, 0).is_empty());
    }

    #[test]
    fn zipf_draws_ranks_by_the_law() {
        for s in [0.5, 0.99, 1.0, 1.2, 3.0] {
            let (n, draws) = (50u64, 400_000u32);
            let zipf = Zipf::new(n, s);
            let mut random = Random::new(7);
            let mut seen = vec![0f64; n as usize];
            for _ in 0..draws {
                seen[zipf.draw(&mut random) as usize] += 1.0;
            }
            let total: f64 = (1..=n).map(|k| (k as f64).powf(-s)).sum();
            for (k, seen) in seen.into_iter().enumerate() {
                let wanted = f64::from(draws) * ((k + 1) as f64).powf(-s) / total;
                let spread = 5.0 * wanted.sqrt() + 1.0;
                assert!((seen - wanted).abs() < spread, "s {s}, rank {k}: {seen} for {wanted}");
            }
        }
    }

    #[test]
    fn zipf_over_one_rank_always_draws_it() {
        let zipf = Zipf::new(1, 1.1);
        let mut random = Random::new(3);
        assert!((0..1000).all(|_| zipf.draw(&mut random) == 0));
    }
}
