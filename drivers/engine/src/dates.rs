//! Dates as signatures and listings have them.

use std::time::{SystemTime, UNIX_EPOCH};

/// `YYYYMMDDTHHMMSSZ` of a UNIX time (days to civil date after H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
pub fn date(unix_s: u64) -> [u8; 16] {
    let (year, month, day) = civil(unix_s / 86_400);
    let clock = unix_s % 86_400;
    let mut text = *b"00000000T000000Z";
    let mut put = |at: usize, width: usize, mut value: u64| {
        for place in (at..at + width).rev() {
            text[place] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    put(0, 4, year);
    put(4, 2, month);
    put(6, 2, day);
    put(9, 2, clock / 3600);
    put(11, 2, clock / 60 % 60);
    put(13, 2, clock % 60);
    text
}

/// Formats `YYYY-MM-DDTHH:MM:SS.000Z` as in S3's listings.
pub fn iso_time(time: SystemTime) -> String {
    let unix_s = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(unix_s / 86_400);
    let clock = unix_s % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.000Z",
        clock / 3600,
        clock / 60 % 60,
        clock % 60
    )
}

fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_the_calendar() {
        assert_eq!(&date(0), b"19700101T000000Z");
        assert_eq!(&date(951_782_399), b"20000228T235959Z");
        assert_eq!(&date(951_782_400), b"20000229T000000Z");
        assert_eq!(&date(1_401_192_000), b"20140527T120000Z");
        assert_eq!(&date(4_107_542_400), b"21000301T000000Z");
    }
}
