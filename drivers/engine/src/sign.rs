//! Signature Version 4 in the `Authorization` header, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>. To be cheap,
//! keys are derived once a day, dates formatted once a second, and the HMAC over what is constant
//! within a second is kept half done.
//!
//! The payload is signed as `UNSIGNED-PAYLOAD` in every request: hashing bodies would make the
//! client the bottleneck instead of the gateway. RGW, Swift's s3api and `MinIO` accept it over plain
//! HTTP.

use ring::{digest, hmac};
use std::time::{SystemTime, UNIX_EPOCH};

/// Value in place of the payload's hash.
pub const PAYLOAD: &[u8] = b"UNSIGNED-PAYLOAD";

const SIGNED_HEADERS: &[u8] = b"host;x-amz-content-sha256;x-amz-date";
const SIGNED_HEADERS_OF_COPY: &[u8] = b"host;x-amz-content-sha256;x-amz-copy-source;x-amz-date";
const SIGNED_HEADERS_OF_COPY_WITH_TOKEN: &[u8] =
    b"host;x-amz-content-sha256;x-amz-copy-source;x-amz-date;x-amz-security-token";
const SIGNED_HEADERS_WITH_TOKEN: &[u8] =
    b"host;x-amz-content-sha256;x-amz-date;x-amz-security-token";

/// Signs requests of one user.
#[derive(Clone, Debug)]
pub struct Signer {
    access_key: String,
    secret_key: String,
    region: String,
    /// The session token's header line as it is signed; empty without one.
    token_line: Vec<u8>,
    /// Value of `x-amz-copy-source` of the next request; empty without one.
    pub copy_source: Vec<u8>,
    second: u64,
    /// `20140527T120000Z` of `second`.
    date: [u8; 16],
    day: u64,
    key: Option<hmac::Key>,
    /// HMAC of the string to sign up to its last line.
    begun: Option<hmac::Context>,
    canonical: Vec<u8>,
}

impl Signer {
    /// Makes a signer; `token` is the session token of the keys, or empty.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str, region: &str, token: &str) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            region: region.into(),
            token_line: if token.is_empty() {
                Vec::new()
            } else {
                format!("x-amz-security-token:{token}\n").into_bytes()
            },
            copy_source: Vec::new(),
            second: u64::MAX,
            date: [0; 16],
            day: u64::MAX,
            key: None,
            begun: None,
            canonical: Vec::with_capacity(512),
        }
    }

    /// Appends the headers that sign a request: `x-amz-content-sha256`, `x-amz-date`,
    /// `x-amz-security-token` where there is one, and `Authorization`. `host` is the value of the
    /// `Host` header. `path` and `query` are canonical already: percent-encoded, the query's keys
    /// sorted. `unix_s` is the time of day.
    pub fn put_headers(
        &mut self,
        out: &mut Vec<u8>,
        method: &str,
        host: &[u8],
        path: &[u8],
        query: &[u8],
        unix_s: u64,
    ) {
        if self.second != unix_s || self.begun.is_none() {
            self.set_time(unix_s);
        }
        let signed = match (self.copy_source.is_empty(), self.token_line.is_empty()) {
            (true, true) => SIGNED_HEADERS,
            (true, false) => SIGNED_HEADERS_WITH_TOKEN,
            (false, true) => SIGNED_HEADERS_OF_COPY,
            (false, false) => SIGNED_HEADERS_OF_COPY_WITH_TOKEN,
        };
        let copy: [&[u8]; 2] = if self.copy_source.is_empty() {
            [b"", b""]
        } else {
            [b"\nx-amz-copy-source:", &self.copy_source]
        };
        let canonical = &mut self.canonical;
        canonical.clear();
        for part in [
            method.as_bytes(),
            b"\n",
            path,
            b"\n",
            query,
            b"\nhost:",
            host,
            b"\nx-amz-content-sha256:",
            PAYLOAD,
            copy[0],
            copy[1],
            b"\nx-amz-date:",
            &self.date,
            b"\n",
            &self.token_line,
            b"\n",
            signed,
            b"\n",
            PAYLOAD,
        ] {
            canonical.extend_from_slice(part);
        }
        let mut hmac = self.begun.clone().expect("set_time began it");
        hmac.update(&hex(digest::digest(&digest::SHA256, canonical).as_ref()));
        let signature = hex(hmac.sign().as_ref());
        for part in [b"x-amz-content-sha256: ", PAYLOAD, b"\r\nx-amz-date: ", &self.date, b"\r\n"] {
            out.extend_from_slice(part);
        }
        if !self.copy_source.is_empty() {
            for part in [b"x-amz-copy-source: ", self.copy_source.as_slice(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        if let Some(line) = self.token_line.strip_suffix(b"\n") {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
        for part in [
            b"Authorization: AWS4-HMAC-SHA256 Credential=",
            self.access_key.as_bytes(),
            b"/",
            &self.date[..8],
            b"/",
            self.region.as_bytes(),
            b"/s3/aws4_request, SignedHeaders=",
            signed,
            b", Signature=",
            &signature,
            b"\r\n",
        ] {
            out.extend_from_slice(part);
        }
    }

    fn set_time(&mut self, unix_s: u64) {
        self.second = unix_s;
        self.date = date(unix_s);
        let day = unix_s / 86_400;
        if self.day != day {
            let chain =
                |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
            let dated = chain(format!("AWS4{}", self.secret_key).as_bytes(), &self.date[..8]);
            let regional = chain(dated.as_ref(), self.region.as_bytes());
            let service = chain(regional.as_ref(), b"s3");
            self.key = Some(hmac::Key::new(
                hmac::HMAC_SHA256,
                chain(service.as_ref(), b"aws4_request").as_ref(),
            ));
            self.day = day;
        }
        let mut begun = hmac::Context::with_key(self.key.as_ref().expect("derived above"));
        for part in [
            b"AWS4-HMAC-SHA256\n",
            &self.date[..],
            b"\n",
            &self.date[..8],
            b"/",
            self.region.as_bytes(),
            b"/s3/aws4_request\n",
        ] {
            begun.update(part);
        }
        self.begun = Some(begun);
    }
}

fn hex(bytes: &[u8]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// `YYYYMMDDTHHMMSSZ` of a UNIX time (days to civil date after H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn date(unix_s: u64) -> [u8; 16] {
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
#[must_use]
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

/// The headers that sign one request, for comparison with other signers; see
/// [`Signer::put_headers`].
#[must_use]
pub fn signed_headers(
    keys: [&str; 3],
    region: &str,
    host: &str,
    method: &str,
    path: &str,
    query: &str,
    unix_s: u64,
) -> String {
    let mut out = Vec::new();
    let mut signer = Signer::new(keys[0], keys[1], region, keys[2]);
    signer.put_headers(
        &mut out,
        method,
        host.as_bytes(),
        path.as_bytes(),
        query.as_bytes(),
        unix_s,
    );
    String::from_utf8_lossy(&out).into_owned()
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

    #[test]
    fn a_signature_does_not_depend_on_earlier_ones() {
        let mut one = Signer::new("AK", "SK", "us-east-1", "");
        let mut sign = |path: &[u8], at| {
            let mut out = Vec::new();
            one.put_headers(&mut out, "GET", b"h:1", path, b"", at);
            out
        };
        let first = sign(b"/b/o", 1_400_000_000);
        assert_ne!(sign(b"/b/p", 1_400_000_000), first);
        assert_ne!(sign(b"/b/o", 1_400_000_001), first);
        assert_ne!(sign(b"/b/o", 1_400_086_400), first);
        assert_eq!(sign(b"/b/o", 1_400_000_000), first);
    }
}
