//! Signature Version 4: in the `Authorization` header, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>, in the query
//! (presigned), and of chunks. To be cheap, keys are derived once a day, dates formatted once a
//! second, and the HMAC over what is constant within a second is kept half done.
//!
//! By default the payload is signed as `UNSIGNED-PAYLOAD`: hashing bodies would make the client the
//! bottleneck instead of the gateway. RGW, Swift's s3api and `MinIO` accept it over plain HTTP.

use crate::dates::date;
use crate::encryption::Field;
use crate::signing::Checksum;
use ring::{digest, hmac};
pub mod keys;

/// Value in place of the payload's hash.
pub const UNSIGNED: &[u8] = b"UNSIGNED-PAYLOAD";
/// SHA-256 of nothing.
pub const NOTHING: &[u8; 64] = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// How long a presigned URL is valid, in seconds.
const EXPIRES_S: &[u8] = b"3600";

/// What the head of a request says of its payload.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Value of `x-amz-content-sha256`.
    pub hash: &'a [u8],
    /// The body's checksum, and its value if it is in the head, else empty.
    pub checksum: Option<(Checksum, &'a [u8])>,
    /// Value of `x-amz-decoded-content-length`; empty: the body is sent as it is.
    pub decoded_length: &'a [u8],
    /// Value of `x-amz-copy-source`; empty: nothing is copied.
    pub copy_source: &'a [u8],
    /// Headers that ask for encryption, sorted by name.
    pub encryption: &'a [Field],
    /// Value of the metadata that replaces what an object has; empty: none does.
    pub metadata: &'a [u8],
}

impl Default for Told<'_> {
    fn default() -> Self {
        Self {
            hash: UNSIGNED,
            checksum: None,
            decoded_length: b"",
            copy_source: b"",
            metadata: b"",
            encryption: &[],
        }
    }
}

/// Signs requests of one user.
#[derive(Clone, Debug)]
pub struct Signer {
    access_key: String,
    secret_key: String,
    region: String,
    token: String,
    second: u64,
    /// `20140527T120000Z` of `second`.
    date: [u8; 16],
    day: u64,
    key: Option<hmac::Key>,
    /// HMAC of the string to sign up to its last line.
    begun: Option<hmac::Context>,
    canonical: Vec<u8>,
    /// The latest signature.
    signature: [u8; 64],
}

impl Signer {
    /// Makes a signer; `token` is the session token of the keys, or empty.
    pub fn new(access_key: &str, secret_key: &str, region: &str, token: &str) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            region: region.into(),
            token: token.into(),
            second: u64::MAX,
            date: [0; 16],
            day: u64::MAX,
            key: None,
            begun: None,
            canonical: Vec::with_capacity(512),
            signature: [0; 64],
        }
    }

    /// Appends the headers that sign a request: what `told` says of the payload, `x-amz-date`, the
    /// token if there is one, and `Authorization`. `host` is the value of the `Host` header, `path`
    /// and `query` are canonical: percent-encoded, keys sorted. `unix_s` is the time of day.
    #[allow(clippy::too_many_arguments)] // the parts of one request
    pub fn put_headers(
        &mut self,
        out: &mut Vec<u8>,
        method: &str,
        host: &[u8],
        path: &[u8],
        query: &[u8],
        unix_s: u64,
        told: &Told<'_>,
    ) {
        self.at(unix_s);
        let (mut summed, mut value, mut trailer) = ("", &b""[..], &b""[..]);
        let mut algorithm = &b""[..];
        if let Some((kind, sum)) = told.checksum {
            algorithm = kind.name().as_bytes();
            (summed, value) = (kind.header(), sum);
            if sum.is_empty() {
                trailer = summed.as_bytes();
            }
        }
        // Sorted by name; those without a value are not sent.
        let date = self.date;
        let directive: &[u8] = if told.metadata.is_empty() { b"" } else { b"REPLACE" };
        let lines: [(&str, &[u8]); 10] = [
            ("host", host),
            (summed, value),
            ("x-amz-content-sha256", told.hash),
            ("x-amz-copy-source", told.copy_source),
            ("x-amz-date", &date),
            ("x-amz-decoded-content-length", told.decoded_length),
            ("x-amz-meta-weighbridge", told.metadata),
            ("x-amz-metadata-directive", directive),
            ("x-amz-sdk-checksum-algorithm", algorithm),
            ("x-amz-security-token", self.token.as_bytes()),
        ];
        let encryption = told.encryption.iter().map(|(name, value)| (*name, value.as_slice()));
        let last = [("x-amz-trailer", trailer)];
        let all = lines.iter().copied().chain(encryption).chain(last.iter().copied());
        let sent = || all.clone().filter(|(_, value)| !value.is_empty());
        let canonical = &mut self.canonical;
        canonical.clear();
        for part in [method.as_bytes(), b"\n", path, b"\n", query, b"\n"] {
            canonical.extend_from_slice(part);
        }
        for (name, value) in sent() {
            for part in [name.as_bytes(), b":", value, b"\n"] {
                canonical.extend_from_slice(part);
            }
        }
        canonical.push(b'\n');
        let names_at = canonical.len();
        for (name, _) in sent() {
            canonical.extend_from_slice(name.as_bytes());
            canonical.push(b';');
        }
        canonical.pop();
        let names = names_at..canonical.len();
        canonical.push(b'\n');
        canonical.extend_from_slice(told.hash);
        for (name, value) in sent().skip(1) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        for part in [
            b"Authorization: AWS4-HMAC-SHA256 Credential=",
            self.access_key.as_bytes(),
            b"/",
            &date[..8],
            b"/",
            self.region.as_bytes(),
            b"/s3/aws4_request, SignedHeaders=",
            &self.canonical[names],
            b", Signature=",
        ] {
            out.extend_from_slice(part);
        }
        self.sign();
        out.extend_from_slice(&self.signature);
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the query of a presigned URL: what signs it, and `query`, which is canonical, before
    /// the signature. For the arguments see [`Signer::put_headers`].
    pub fn put_query(
        &mut self,
        out: &mut Vec<u8>,
        method: &str,
        host: &[u8],
        path: &[u8],
        query: &[u8],
        unix_s: u64,
    ) {
        self.at(unix_s);
        let begin = out.len();
        out.extend_from_slice(b"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
        put_escaped(out, self.access_key.as_bytes());
        for part in [b"%2F", &self.date[..8], b"%2F"] {
            out.extend_from_slice(part);
        }
        put_escaped(out, self.region.as_bytes());
        for part in
            [b"%2Fs3%2Faws4_request&X-Amz-Date=", &self.date[..], b"&X-Amz-Expires=", EXPIRES_S]
        {
            out.extend_from_slice(part);
        }
        if !self.token.is_empty() {
            out.extend_from_slice(b"&X-Amz-Security-Token=");
            put_escaped(out, self.token.as_bytes());
        }
        out.extend_from_slice(b"&X-Amz-SignedHeaders=host");
        if !query.is_empty() {
            out.push(b'&');
            out.extend_from_slice(query);
        }
        let canonical = &mut self.canonical;
        canonical.clear();
        for part in [
            method.as_bytes(),
            b"\n",
            path,
            b"\n",
            &out[begin..],
            b"\nhost:",
            host,
            b"\n\nhost\n",
            UNSIGNED,
        ] {
            canonical.extend_from_slice(part);
        }
        self.sign();
        out.extend_from_slice(b"&X-Amz-Signature=");
        out.extend_from_slice(&self.signature);
    }

    /// Signs the chunks of the request that was signed last.
    pub fn chunk_signer(&self) -> ChunkSigner {
        ChunkSigner {
            key: self.key.clone().expect("a request was signed"),
            scope: scope(&self.date, &self.region),
            previous: self.signature,
        }
    }

    /// Makes `signature` that of the canonical request.
    fn sign(&mut self) {
        let mut hmac = self.begun.clone().expect("`at` began it");
        hmac.update(&hex(digest::digest(&digest::SHA256, &self.canonical).as_ref()));
        self.signature = hex(hmac.sign().as_ref());
    }

    fn at(&mut self, unix_s: u64) {
        if self.second != unix_s || self.begun.is_none() {
            self.set_time(unix_s);
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
        begun.update(b"AWS4-HMAC-SHA256\n");
        begun.update(&scope(&self.date, &self.region));
        self.begun = Some(begun);
    }
}

/// Signs the chunks of one body, each after the one before.
#[derive(Clone, Debug)]
pub struct ChunkSigner {
    key: hmac::Key,
    /// Date and scope, as strings to sign have them.
    scope: Vec<u8>,
    previous: [u8; 64],
}

impl ChunkSigner {
    /// The signature of the next chunk, whose content has this SHA-256.
    pub fn chunk(&mut self, hash: &[u8; 64]) -> &[u8; 64] {
        self.sign(b"AWS4-HMAC-SHA256-PAYLOAD\n", &[NOTHING, b"\n", hash])
    }

    /// The signature of the trailer, a line without its end.
    pub fn trailer(&mut self, line: &str) -> &[u8; 64] {
        let hash = hex(digest::digest(&digest::SHA256, format!("{line}\n").as_bytes()).as_ref());
        self.sign(b"AWS4-HMAC-SHA256-TRAILER\n", &[&hash])
    }

    fn sign(&mut self, kind: &[u8], last: &[&[u8]]) -> &[u8; 64] {
        let mut hmac = hmac::Context::with_key(&self.key);
        for part in [kind, &self.scope, &self.previous, b"\n"].iter().chain(last) {
            hmac.update(part);
        }
        self.previous = hex(hmac.sign().as_ref());
        &self.previous
    }
}

/// The lines of date and scope in a string to sign.
fn scope(date: &[u8; 16], region: &str) -> Vec<u8> {
    [&date[..], b"\n", &date[..8], b"/", region.as_bytes(), b"/s3/aws4_request\n"].concat()
}

/// Appends `text` percent-encoded, as queries are signed.
fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// 32 bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> [u8; 64] {
    let bytes: &[u8; 32] = bytes.try_into().expect("32 bytes");
    // Computed instead of looked up, so that all digits are made at once.
    let digit = |value: u8| value + b'0' + u8::from(value > 9) * (b'a' - b'0' - 10);
    let mut text = [0; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = digit(byte >> 4);
        pair[1] = digit(byte & 15);
    }
    text
}

/// The headers of one signed request, for comparison; see [`Signer::put_headers`].
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
        &Told::default(),
    );
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_does_not_depend_on_earlier_ones() {
        let mut one = Signer::new("AK", "SK", "us-east-1", "");
        let mut sign = |path: &[u8], at| {
            let mut out = Vec::new();
            one.put_headers(&mut out, "GET", b"h:1", path, b"", at, &Told::default());
            out
        };
        let first = sign(b"/b/o", 1_400_000_000);
        assert_ne!(sign(b"/b/p", 1_400_000_000), first);
        assert_ne!(sign(b"/b/o", 1_400_000_001), first);
        assert_ne!(sign(b"/b/o", 1_400_086_400), first);
        assert_eq!(sign(b"/b/o", 1_400_000_000), first);
    }

    #[test]
    fn a_signer_that_ran_over_midnight_signs_as_one_made_on_the_new_day() {
        const MIDNIGHT: u64 = 16_204 * 86_400;
        let sign = |signer: &mut Signer, at| {
            let mut out = Vec::new();
            signer.put_headers(&mut out, "PUT", b"h:1", b"/b/o", b"", at, &Told::default());
            let chunk = *signer.chunk_signer().chunk(NOTHING);
            signer.put_query(&mut out, "GET", b"h:1", b"/b/o", b"", at);
            (String::from_utf8(out).expect("text"), chunk)
        };
        let made = || Signer::new("AK", "SK", "us-east-1", "");
        let mut lasting = made();
        for at in [MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1, MIDNIGHT + 86_400, MIDNIGHT - 1] {
            assert_eq!(sign(&mut lasting, at), sign(&mut made(), at), "{at}");
        }
    }

    /// Keys, date, body and signatures of the example in Amazon's documentation of signed chunks.
    #[test]
    fn chunks_are_signed_as_in_the_published_example() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let mut signer = Signer::new("AKIAIOSFODNN7EXAMPLE", secret, "us-east-1", "");
        signer.at(1_369_353_600);
        assert_eq!(&signer.date, b"20130524T000000Z");
        signer.signature = *b"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let mut chunks = signer.chunk_signer();
        for (bytes, signature) in [
            (65_536, b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1024, b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ] {
            let hash = hex(digest::digest(&digest::SHA256, &vec![b'a'; bytes]).as_ref());
            assert_eq!(chunks.chunk(&hash), signature, "{bytes}");
        }
    }
}
