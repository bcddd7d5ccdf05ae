//! The mechanics of a spinning disk: seeks, rotation, transfer. All pure functions of time and
//! place.

use crate::chance::Chance;
use crate::model::{Nanos, Spinning, nanos};

/// Platters and arm; places are bytes of the disk, whose last byte is on the innermost track.
#[derive(Clone, Debug)]
pub struct Platter {
    size: u64,
    turn: Nanos,
    phase: Nanos,
    track: f64,
    root: f64,
    linear: f64,
    rate: f64,
    slope: f64,
}

impl Platter {
    /// The mechanics of a disk of `size` bytes.
    ///
    /// Seeks follow Lee and Katz ("An analytic performance model of disk arrays", SIGMETRICS 1993):
    /// with d the share of all tracks that is crossed, track + a sqrt(d) + b d, where a and b follow
    /// from the mean and the longest seek. The square root is acceleration, the linear part
    /// coasting (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 1994).
    /// The mean over random places of sqrt(d) is 8/15, that of d is 1/3. Figures for which a or b
    /// would be negative are no disk's: b is then 0.
    #[must_use]
    pub fn new(model: &Spinning, size: u64) -> Self {
        let (mean, full) = (model.seek_avg - model.seek_track, model.seek_full - model.seek_track);
        let root = (5.0 * (mean - full / 3.0)).clamp(0.0, full);
        let turn = nanos(60.0 / model.rpm);
        let phase = Chance::new(model.seed).next_u64() % turn;
        let slope = (model.transfer_rate - model.transfer_rate_inner) / size.max(1) as f64;
        Self {
            size: size.max(1),
            turn,
            phase,
            track: model.seek_track,
            root,
            linear: full - root,
            rate: model.transfer_rate,
            slope,
        }
    }

    /// How long the arm takes from one place to another; none within a track.
    #[must_use]
    pub fn seek(&self, from: u64, to: u64) -> Nanos {
        let here = self.turns(from).floor();
        if (self.turns(to).floor() - here).abs() < 0.5 {
            return 0;
        }
        let share = from.abs_diff(to) as f64 / self.size as f64;
        nanos(self.track + self.root * share.sqrt() + self.linear * share)
    }

    /// Turns of the platters that reading the disk from its first byte up to `place` takes.
    ///
    /// The rate falls evenly with the place: the integral of 1 / (rate - slope x).
    fn turns(&self, place: u64) -> f64 {
        let x = place as f64;
        let seconds = if self.slope * self.size as f64 > self.rate * 1e-9 {
            -(-self.slope * x / self.rate).ln_1p() / self.slope
        } else {
            x / self.rate
        };
        seconds * 1e9 / self.turn as f64
    }

    /// How long from `at` until `place` passes below the head. Tracks are skewed so that reading
    /// on over their end loses no turn.
    #[must_use]
    pub fn rotation(&self, at: Nanos, place: u64) -> Nanos {
        let wanted = (self.turns(place).fract() * self.turn as f64) as Nanos % self.turn;
        let now = (at + self.phase) % self.turn;
        let wait = (wanted + self.turn - now) % self.turn;
        // Rounding must not cost a turn where one request follows another without a gap.
        if wait + 2000 >= self.turn { 0 } else { wait }
    }

    /// How long from `at` until the head is at `to`, ready to read.
    #[must_use]
    pub fn position(&self, at: Nanos, from: u64, to: u64) -> Nanos {
        let seek = self.seek(from, to);
        seek + self.rotation(at + seek, to)
    }

    /// How long the head takes over these bytes.
    #[must_use]
    pub fn transfer(&self, start: u64, bytes: u64) -> Nanos {
        ((self.turns(start + bytes) - self.turns(start)) * self.turn as f64) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn drive() -> Spinning {
        serde_json::from_value(serde_json::json!({
            "base": "test", "seed": 7, "queue_depth": 32, "write_cache": 0, "write_cache_runs": 64, "link_rate": 6e8,
            "command": 0.0, "overhead": 0.0, "rpm": 7200.0, "seek_track": 0.0008,
            "seek_avg": 0.0085, "seek_full": 0.016, "transfer_rate": 175e6,
            "transfer_rate_inner": 83e6, "read_ahead": 8_388_608, "longest_wait": 0.5
        }))
        .expect("valid")
    }

    const SIZE: u64 = 20 << 30;

    #[test]
    fn the_mean_seek_between_random_places_is_that_of_the_model() {
        let platter = Platter::new(&drive(), SIZE);
        let mut chance = Chance::new(1);
        let count = 200_000;
        let mut place = || (chance.share() * SIZE as f64) as u64;
        let sum: u64 = (0..count).map(|_| platter.seek(place(), place())).sum();
        let mean_ms = sum as f64 / f64::from(count) / 1e6;
        assert!((mean_ms - 8.5).abs() < 0.05, "{mean_ms}");
        assert_eq!(platter.seek(0, SIZE), 16_000_000);
    }

    #[test]
    fn a_random_place_is_half_a_turn_away_on_average() {
        let platter = Platter::new(&drive(), SIZE);
        let mut chance = Chance::new(2);
        let sum: u64 = (0..100_000)
            .map(|_| {
                platter.rotation(chance.next_u64() >> 20, (chance.share() * SIZE as f64) as u64)
            })
            .sum();
        let mean_ms = sum as f64 / 100_000.0 / 1e6;
        assert!((mean_ms - 4.167).abs() < 0.05, "{mean_ms}");
    }

    #[test]
    fn what_follows_without_a_gap_needs_no_turn() {
        let platter = Platter::new(&drive(), SIZE);
        let (mut at, mut place) = (12_345, SIZE / 3);
        at += platter.position(at, 0, place);
        for _ in 0..1000 {
            at += platter.transfer(place, 65_536);
            place += 65_536;
            assert!(platter.rotation(at, place) < 5_000, "{}", platter.rotation(at, place));
        }
    }

    #[test]
    fn the_outer_tracks_are_read_at_the_higher_rate() {
        let platter = Platter::new(&drive(), SIZE);
        let rate = |start| 1e6 / platter.transfer(start, 1_000_000) as f64 * 1e9;
        assert!((rate(0) / 175e6 - 1.0).abs() < 0.001, "{}", rate(0));
        assert!((rate(SIZE - 1_000_000) / 83e6 - 1.0).abs() < 0.001);
    }
}
