//! The mechanics of a spinning disk: seeks, rotation, transfer. All pure functions of time and
//! place.

use std::iter::successors;

use crate::chance::Chance;
use crate::model::{Nanos, Spinning, nanos};

/// Platters and arm; places are bytes of the disk, whose last byte is on the innermost track.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    size: u64,
    turn: Nanos,
    phase: Nanos,
    track: f64,
    root: f64,
    linear: f64,
    rate: f64,
    slope: f64,
    scatter: Option<Scatter>,
}

/// Pieces of a disk in use: neighbours are far apart, as in multiplicative hashing by the golden
/// section (Knuth, The Art of Computer Programming 3, 6.4), which spreads any few of them evenly.
#[derive(Clone, Debug)]
struct Scatter {
    piece: u64,
    pieces: u64,
    step: u64,
}

impl Scatter {
    /// Pieces of `piece` bytes; None where there are fewer than two.
    fn new(piece: u64, size: u64) -> Option<Self> {
        let pieces = size / piece.max(1);
        let divisor = |a: u64, b: u64| {
            let pairs = successors(Some((a, b)), |(a, b)| (*b != 0).then(|| (*b, a % b)));
            pairs.last().map_or(1, |(last, _)| last)
        };
        let golden = (pieces as f64 * 0.618_033_988_75) as u64;
        let step = (golden.max(1)..=pieces.max(1)).find(|step| divisor(*step, pieces) == 1)?;
        (pieces > 1).then_some(Self { piece, pieces, step })
    }

    fn place(&self, place: u64) -> u64 {
        let number = place / self.piece;
        if number >= self.pieces {
            return place; // the rest beyond the last complete piece
        }
        let moved = u128::from(number) * u128::from(self.step) % u128::from(self.pieces);
        moved as u64 * self.piece + place % self.piece
    }
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
            scatter: model.scatter.and_then(|piece| Scatter::new(piece, size)),
        }
    }

    /// Where on the platters the byte at a place of the disk lies.
    pub(crate) fn on_platter(&self, place: u64) -> u64 {
        self.scatter.as_ref().map_or(place, |scatter| scatter.place(place))
    }

    /// Whether the byte at a place of the disk lies behind the one before it.
    pub(crate) fn continues(&self, place: u64) -> bool {
        self.scatter.as_ref().is_none_or(|scatter| place % scatter.piece != 0)
    }

    /// How long from `at`, with the head at `start`, until it has passed over these bytes of the
    /// disk; it seeks from each piece to the next.
    pub(crate) fn pass(&self, at: Nanos, start: u64, bytes: u64) -> Nanos {
        let Some(scatter) = &self.scatter else { return self.transfer(start, bytes) };
        let (mut now, mut place, end) = (at, start, start + bytes);
        while place < end {
            let length = (scatter.piece - place % scatter.piece).min(end - place);
            let here = self.on_platter(place);
            if place != start {
                now += self.position(now, self.on_platter(place - 1) + 1, here);
            }
            now += self.transfer(here, length);
            place += length;
        }
        now - at
    }

    /// How long the arm takes from one place to another; none within a track.
    pub(crate) fn seek(&self, from: u64, to: u64) -> Nanos {
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
    pub(crate) fn rotation(&self, at: Nanos, place: u64) -> Nanos {
        let wanted = (self.turns(place).fract() * self.turn as f64) as Nanos % self.turn;
        let now = (at + self.phase) % self.turn;
        let wait = (wanted + self.turn - now) % self.turn;
        // Rounding must not cost a turn where one request follows another without a gap.
        if wait + 2000 >= self.turn { 0 } else { wait }
    }

    /// How long from `at` until the head is at `to`, ready to read.
    pub(crate) fn position(&self, at: Nanos, from: u64, to: u64) -> Nanos {
        let seek = self.seek(from, to);
        seek + self.rotation(at + seek, to)
    }

    /// How long the head takes over these bytes.
    pub(crate) fn transfer(&self, start: u64, bytes: u64) -> Nanos {
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
            "seek_avg": 0.0085, "seek_full": 0.016, "transfer_rate": 175e6, "scatter": null,
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

    fn in_use(piece: u64) -> Platter {
        Platter::new(&Spinning { scatter: Some(piece), ..drive() }, SIZE)
    }

    #[test]
    fn every_piece_has_a_place_of_its_own_and_neighbours_are_far_apart() {
        for size in [SIZE, 1000 << 20, (7 << 20) + 4096, 2 << 20] {
            let scatter = Scatter::new(1 << 20, size).expect("pieces");
            let mut seen: Vec<u64> = (0..size >> 20).map(|at| scatter.place(at << 20)).collect();
            if size > 1 << 29 {
                assert!(seen.windows(2).all(|two| two[0].abs_diff(two[1]) > size / 3));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..size >> 20).map(|at| at << 20).collect::<Vec<_>>());
            assert_eq!(scatter.place(size & !0xf_ffff), size & !0xf_ffff);
        }
        assert!(Scatter::new(1 << 20, 1 << 20).is_none());
    }

    #[test]
    fn within_a_piece_bytes_lie_together_and_its_end_costs_a_seek() {
        let platter = in_use(1 << 20);
        assert!(platter.continues(4096) && !platter.continues(1 << 20));
        let place = platter.on_platter(5 << 20);
        assert_eq!(platter.on_platter((5 << 20) + 70_000), place + 70_000);
        let within = platter.pass(0, 5 << 20, 1 << 20);
        assert_eq!(within, platter.transfer(place, 1 << 20));
        let across = platter.pass(0, 5 << 20, 2 << 20);
        let seek = platter.seek(place + (1 << 20), platter.on_platter(6 << 20));
        assert!(across >= within + seek + platter.transfer(platter.on_platter(6 << 20), 1 << 20));
        assert!(seek > 5_000_000);
    }
}
