//! Keys of one user, which may be renewed.

use super::Signer;
use std::fmt;

/// Keys of one user.
#[derive(Clone)]
pub struct Keys {
    /// Of S3.
    pub access: String,
    /// Of S3.
    pub secret: String,
    /// The session token of S3's keys, empty without one; or Swift's token.
    pub token: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Signer {
    /// Signs with other keys from now on.
    pub fn renew(&mut self, keys: &Keys) {
        *self = Self::new(&keys.access, &keys.secret, &self.region, &keys.token);
    }
}
