//! Temporary URLs of Swift's: a query lets one method do one thing to one object, without a token,
//! see <https://docs.openstack.org/swift/latest/api/temporary_url_middleware.html>. The same key
//! signs forms, see <https://docs.openstack.org/swift/latest/api/form_post_middleware.html>.

use crate::config::{Api, Config};
use crate::operation::Operation;
use crate::signing::{Auth, Signing};
use crate::workload::put_number;
use ring::hmac;
use serde::Deserialize;

/// How long a temporary URL is valid, in seconds.
const EXPIRES_S: u64 = 3600;

/// What a store takes as signatures.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Digest {
    /// HMAC-SHA1, which older releases know alone.
    Sha1,
    /// HMAC-SHA256.
    Sha256,
}

/// The key that signs them, which the container or the account has, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TempUrl {
    /// The key.
    pub key: String,
    /// The digest.
    pub digest: Digest,
}

/// Signs with such a key.
#[derive(Clone, Debug)]
pub struct TempUrlSigner {
    key: hmac::Key,
    form_key: hmac::Key,
    /// The path before a container's name as stores sign it: decoded.
    base: Vec<u8>,
    /// Bytes of the path that `base` stands for.
    sent_base: usize,
}

impl TempUrlSigner {
    /// Makes the signer of a config; `None`: it has no key.
    #[must_use]
    pub fn of(config: &Config) -> Option<Self> {
        let TempUrl { key, digest } = config.temp_url.as_ref()?;
        let algorithm = match digest {
            Digest::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => hmac::HMAC_SHA256,
        };
        Some(Self {
            key: hmac::Key::new(algorithm, key.as_bytes()),
            form_key: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes()),
            base: decoded(config.base_path.as_bytes()),
            sent_base: config.base_path.len(),
        })
    }

    /// Appends what lets `method` in to a query; `path` is as it is sent, `unix_s` the time of day.
    pub fn put_query(&self, query: &mut Vec<u8>, method: &str, path: &[u8], unix_s: u64) {
        let mut expires = Vec::with_capacity(10);
        put_number(&mut expires, unix_s + EXPIRES_S, 1);
        if !query.is_empty() {
            query.push(b'&');
        }
        query.extend_from_slice(b"temp_url_sig=");
        self.put_signature(
            query,
            &self.key,
            &[method.as_bytes(), b"\n", &expires, b"\n"],
            path,
            &[],
        );
        query.extend_from_slice(b"&temp_url_expires=");
        query.extend_from_slice(&expires);
    }

    /// The fields of a form that writes one object of `size` bytes below `path`, in the order in
    /// which they are sent. They are signed by SHA-1, which all releases take.
    #[must_use]
    pub fn form_fields(&self, path: &[u8], size: u64, unix_s: u64) -> Vec<(&'static str, String)> {
        let [size, expires] = [size, unix_s + EXPIRES_S].map(|number| number.to_string());
        let (mut signature, after) = (Vec::new(), format!("\n\n{size}\n1\n{expires}"));
        self.put_signature(&mut signature, &self.form_key, &[], path, &[after.as_bytes()]);
        vec![
            ("max_file_size", size),
            ("max_file_count", "1".into()),
            ("expires", expires),
            ("signature", String::from_utf8_lossy(&signature).into_owned()),
        ]
    }

    /// Appends the signature of a text: what is `before` a path, the path, and what is `after`.
    fn put_signature(
        &self,
        out: &mut Vec<u8>,
        key: &hmac::Key,
        before: &[&[u8]],
        path: &[u8],
        after: &[&[u8]],
    ) {
        let mut hmac = hmac::Context::with_key(key);
        let path: [&[u8]; 2] = [&self.base, &path[self.sent_base..]];
        for part in before.iter().chain(&path).chain(after) {
            hmac.update(part);
        }
        for byte in hmac.sign().as_ref() {
            out.extend([byte >> 4, byte & 15].map(|half| b"0123456789abcdef"[usize::from(half)]));
        }
    }
}

impl Config {
    /// Whether its requests are let in by temporary URLs, not by a token.
    #[must_use]
    pub fn sends_temp_urls(&self) -> bool {
        self.api == Api::Swift && self.workload.signing.auth == Auth::Query
    }

    /// The token that its requests bring; empty: none does.
    #[must_use]
    pub fn sent_token(&self) -> &str {
        if self.sends_temp_urls() { "" } else { &self.token }
    }

    /// Checks that its API has requests that are signed so, and the keys that they need.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn check_signing(&self) -> Result<(), String> {
        let forms = self.api == Api::Swift && self.workload.has(Operation::WriteForm);
        if forms && self.temp_url.is_none() {
            return Err("write-form: forms need a `temp_url`, their key".into());
        }
        if self.api == Api::S3 || self.workload.signing == Signing::default() {
            return Ok(());
        }
        if !self.sends_temp_urls() {
            return Err("signing: only S3 requests are signed".into());
        }
        if self.temp_url.is_none() {
            return Err("signing: temporary URLs need a `temp_url`, their key".into());
        }
        if let Some(one) = [Operation::List, Operation::ListAll, Operation::ListVersions]
            .into_iter()
            .find(|&operation| self.workload.has(operation))
        {
            return Err(format!("signing: temporary URLs are of objects: no {}", one.word()));
        }
        Ok(())
    }
}

/// A path without percent-encoding.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| path.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(path.len()), 0);
    while at < path.len() {
        match (path[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_signed_without_its_escapes() {
        assert_eq!(decoded(b"/v1/AUTH_a%3Ab%2fc"), b"/v1/AUTH_a:b/c");
        assert_eq!(decoded(b"/100%/%4"), b"/100%/%4");
    }
}
