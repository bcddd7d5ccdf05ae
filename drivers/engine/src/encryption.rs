//! How a workload's S3 objects are encrypted by the store, and the headers that ask for it, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html>.

use crate::operation::Operation;
use crate::picker::{Part, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use ring::digest;
use serde::Deserialize;

/// A header and its value.
pub type Field = (&'static str, Vec<u8>);

/// Whose key encrypts objects.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// They are not encrypted, unless the store does it unasked.
    #[default]
    None,
    /// The client's (SSE-C): each request brings it.
    SseC,
    /// The store's (SSE-S3): only writes ask for it.
    SseS3,
}

/// The customer's key of a seed: the same for all requests of a run.
pub fn customer_key(seed: u64) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, format!("weighbridge sse-c {seed}").as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The headers that ask for encryption.
#[derive(Debug)]
pub struct Asked {
    encryption: Encryption,
    /// Sorted by name, as they are signed.
    fields: Vec<Field>,
}

impl Asked {
    /// Those of a workload, with the key of a seed.
    pub fn of(encryption: Encryption, seed: u64) -> Self {
        let fields = match encryption {
            Encryption::None => Vec::new(),
            Encryption::SseC => {
                let key = customer_key(seed);
                let encoded = |bytes: &[u8]| STANDARD.encode(bytes).into_bytes();
                vec![
                    ("x-amz-server-side-encryption-customer-algorithm", b"AES256".to_vec()),
                    ("x-amz-server-side-encryption-customer-key", encoded(&key)),
                    ("x-amz-server-side-encryption-customer-key-md5", encoded(&Md5::digest(key))),
                ]
            }
            Encryption::SseS3 => vec![("x-amz-server-side-encryption", b"AES256".to_vec())],
        };
        Self { encryption, fields }
    }

    /// Those of one request: the key goes with whatever reads or writes content, also in parts, and
    /// with the end of an upload: radosgw 20 refuses it without (400).
    pub fn fields_of(&self, request: &Request) -> &[Field] {
        let begins = matches!(request.operation, Operation::Write | Operation::Overwrite)
            || request.part == Part::Begin;
        let has_key = begins
            || request.operation.reads()
            || request.operation == Operation::Head
            || matches!(request.part, Part::Piece { .. } | Part::Finish);
        let asks = match self.encryption {
            Encryption::None => false,
            Encryption::SseC => has_key,
            Encryption::SseS3 => begins,
        };
        if asks { &self.fields } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picker::Object;

    #[test]
    fn a_customers_key_goes_with_content_and_the_stores_only_with_what_is_written() {
        let piece = Part::Piece { number: 1, offset: 0, length: 5 };
        for (operation, part, sse_c, sse_s3) in [
            (Operation::Write, Part::Whole, 3, 1),
            (Operation::Read, Part::Whole, 3, 0),
            (Operation::ReadRange, Part::Bytes { offset: 0, length: 1 }, 3, 0),
            (Operation::Head, Part::Whole, 3, 0),
            (Operation::WriteMultipart, Part::Begin, 3, 1),
            (Operation::WriteMultipart, piece, 3, 0),
            (Operation::WriteMultipart, Part::Finish, 3, 0),
            (Operation::Delete, Part::Whole, 0, 0),
            (Operation::List, Part::Whole, 0, 0),
        ] {
            let whole = Request::whole(operation, 0, Object::Prepared(0), 5);
            let request = Request { part, ..whole };
            for (encryption, count) in
                [(Encryption::None, 0), (Encryption::SseC, sse_c), (Encryption::SseS3, sse_s3)]
            {
                let asked = Asked::of(encryption, 1);
                assert_eq!(asked.fields_of(&request).len(), count, "{encryption:?} {request:?}");
            }
        }
    }

    #[test]
    fn a_seed_has_one_key() {
        assert_eq!(customer_key(1), customer_key(1));
        assert_ne!(customer_key(1), customer_key(2));
        let names = Asked::of(Encryption::SseC, 1).fields;
        assert!(names.is_sorted(), "{names:?}");
    }
}
