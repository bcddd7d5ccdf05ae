//! Checksums of bodies, by carry-less multiplication where the processor has it.

use crate::content::Content;
use crate::signing::Checksum;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Largest piece of a body that is hashed or passed to the kernel at once.
pub const PIECE_BYTES: usize = 256 * 1024;

/// A checksum while it is computed.
#[derive(Clone)]
pub enum Sum {
    /// CRC-32.
    Crc32(crc32fast::Hasher),
    /// CRC-64/NVME.
    Crc64nvme(crc64fast_nvme::Digest),
}

impl std::fmt::Debug for Sum {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.kind().name())
    }
}

impl Sum {
    /// The checksum of nothing.
    pub fn new(kind: Checksum) -> Self {
        match kind {
            Checksum::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            Checksum::Crc64nvme => Self::Crc64nvme(crc64fast_nvme::Digest::new()),
        }
    }

    /// Which checksum it is.
    pub fn kind(&self) -> Checksum {
        match self {
            Self::Crc32(_) => Checksum::Crc32,
            Self::Crc64nvme(_) => Checksum::Crc64nvme,
        }
    }

    /// Goes on with these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32(sum) => sum.update(bytes),
            Self::Crc64nvme(sum) => sum.write(bytes),
        }
    }

    /// Its value as headers have it: base64 of the bytes, the most significant first.
    pub fn text(&self) -> String {
        match self {
            Self::Crc32(sum) => STANDARD.encode(sum.clone().finalize().to_be_bytes()),
            Self::Crc64nvme(sum) => STANDARD.encode(sum.sum64().to_be_bytes()),
        }
    }
}

/// The checksum of an object of `size`.
pub fn checksum_of(kind: Checksum, content: &Content, size: u64) -> String {
    let mut sum = Sum::new(kind);
    each_piece(content, size, 0, size, |piece| sum.add(piece));
    sum.text()
}

/// Hands on the bytes `from .. to` of an object of `size`, piece by piece.
pub fn each_piece(content: &Content, size: u64, from: u64, to: u64, mut take: impl FnMut(&[u8])) {
    let mut at = from;
    while at < to {
        let piece = content.piece(size, at, (to - at).min(PIECE_BYTES as u64) as usize);
        take(piece);
        at += piece.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_the_check_values_of_their_definitions() {
        for (kind, value) in [
            (Checksum::Crc32, 0xcbf4_3926_u32.to_be_bytes().to_vec()),
            (Checksum::Crc64nvme, 0xae8b_1486_0a79_9888_u64.to_be_bytes().to_vec()),
        ] {
            let mut sum = Sum::new(kind);
            sum.add(b"12345");
            sum.add(b"6789");
            assert_eq!(sum.text(), STANDARD.encode(value));
        }
    }
}
