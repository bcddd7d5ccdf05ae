//! How a workload's S3 requests are signed, and what is sent to check their bodies.

use serde::Deserialize;

/// What the signature says of the body, and how the body is sent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Nothing: `UNSIGNED-PAYLOAD`.
    #[default]
    Unsigned,
    /// Its SHA-256, computed before the request is sent.
    Signed,
    /// In `aws-chunked` encoding; each chunk has a signature, which continues the one before.
    Chunks,
    /// In `aws-chunked` encoding, with the checksum after the last chunk; chunks are not signed.
    Trailer,
}

/// A checksum of the body.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Checksum {
    /// CRC-32 of IEEE 802.3.
    Crc32,
    /// CRC-64/NVME.
    Crc64nvme,
}

/// Where the signature is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// In the `Authorization` header.
    #[default]
    Header,
    /// In the query: a presigned URL.
    Query,
    /// Nowhere: requests are anonymous.
    None,
}

/// How requests are signed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Signing {
    /// What is said of the body.
    pub payload: Payload,
    /// The body's checksum, in a header or a trailer; `None`: none is sent.
    pub checksum: Option<Checksum>,
    /// Where the signature is.
    pub auth: Auth,
}

/// As suites write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Of(Signing),
    Named(Named),
}

#[derive(Deserialize)]
enum Named {
    /// An SDK decides: nothing that the engine does.
    #[serde(rename = "sdk-default")]
    SdkDefault,
}

/// Deserialises what a suite says of signing.
/// Errors: It is nothing of the kind.
pub fn written<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Signing, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Of(signing) => signing,
        Written::Named(Named::SdkDefault) => Signing::default(),
    })
}

impl Checksum {
    /// Its header or trailer.
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc64nvme => "x-amz-checksum-crc64nvme",
        }
    }

    /// Its name in `x-amz-sdk-checksum-algorithm`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc64nvme => "CRC64NVME",
        }
    }
}

impl Signing {
    /// Whether bodies are in `aws-chunked` encoding.
    pub fn is_framed(self) -> bool {
        matches!(self.payload, Payload::Chunks | Payload::Trailer)
    }

    /// Whether bodies are hashed or summed.
    pub fn reads_bodies(self) -> bool {
        self.payload != Payload::Unsigned || self.checksum.is_some()
    }

    /// The body's checksum, if it is in the head.
    pub fn in_head(self) -> Option<Checksum> {
        self.checksum.filter(|_| !self.is_framed())
    }

    /// Checks that there are such requests.
    /// Errors: What does not go together.
    pub fn check(self) -> Result<(), String> {
        if self.payload == Payload::Trailer && self.checksum.is_none() {
            return Err("signing: a trailer is a checksum: say which".into());
        }
        if self.auth != Auth::Header && self.reads_bodies() {
            return Err("signing: with auth query or none, the payload is unsigned, and has no \
                        checksum"
                .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_go_together_is_refused() {
        let check = |written: serde_json::Value| {
            serde_json::from_value::<Signing>(written).expect("a signing").check().is_ok()
        };
        for good in [
            json!({}),
            json!({"payload": "signed", "checksum": "crc32"}),
            json!({"payload": "chunks"}),
            json!({"payload": "chunks", "checksum": "crc64nvme"}),
            json!({"payload": "trailer", "checksum": "crc32", "auth": "header"}),
            json!({"auth": "query"}),
            json!({"auth": "none", "checksum": null}),
        ] {
            assert!(check(good.clone()), "{good}");
        }
        for bad in [
            json!({"payload": "trailer"}),
            json!({"payload": "signed", "auth": "query"}),
            json!({"checksum": "crc32", "auth": "query"}),
            json!({"payload": "chunks", "auth": "none"}),
        ] {
            assert!(!check(bad.clone()), "{bad}");
        }
    }
}
