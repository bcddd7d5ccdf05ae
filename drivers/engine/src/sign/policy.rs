//! Forms that browsers post: a signed policy lets in one object, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html>.

use super::{Signer, hex};
use crate::dates::iso_time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// How long a form is valid, in seconds.
const EXPIRES_S: u64 = 3600;

impl Signer {
    /// The fields of a form that writes the object `key` of `size` bytes into a bucket, in the
    /// order in which they are sent.
    pub fn policy_fields(
        &mut self,
        bucket: &str,
        key: &str,
        size: u64,
        unix_s: u64,
    ) -> Vec<(&'static str, String)> {
        self.at(unix_s);
        let date = String::from_utf8_lossy(&self.date).into_owned();
        let (day, region) = (&date[..8], &self.region);
        let credential = format!("{}/{day}/{region}/s3/aws4_request", self.access_key);
        let mut fields = vec![
            ("key", key.into()),
            ("x-amz-algorithm", "AWS4-HMAC-SHA256".into()),
            ("x-amz-credential", credential),
            ("x-amz-date", date),
        ];
        if !self.token.is_empty() {
            fields.push(("x-amz-security-token", self.token.clone()));
        }
        let mut conditions =
            vec![json!({"bucket": bucket}), json!(["content-length-range", 0, size])];
        conditions.extend(fields.iter().map(|(name, value)| {
            Value::Object([((*name).to_owned(), json!(value))].into_iter().collect())
        }));
        let expiration = iso_time(UNIX_EPOCH + Duration::from_secs(unix_s + EXPIRES_S));
        let policy = json!({"expiration": expiration, "conditions": conditions}).to_string();
        let policy = STANDARD.encode(policy);
        let signing = self.key.as_ref().expect("`at` derived it");
        let signature = hex(hmac::sign(signing, policy.as_bytes()).as_ref());
        fields.push(("policy", policy));
        fields.push(("x-amz-signature", String::from_utf8_lossy(&signature).into_owned()));
        fields
    }
}
