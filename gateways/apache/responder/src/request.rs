//! A request from the web server's parameters, and the head that the origin gets.

use crate::record::{Malformed, Pairs};
use std::io::Write as _;

/// Fields about the client's connection, and those with a separate parameter.
const NOT_PASSED: [&[u8]; 10] = [
    b"CONNECTION",
    b"CONTENT_LENGTH",
    b"CONTENT_TYPE",
    b"HOST",
    b"KEEP_ALIVE",
    b"PROXY_CONNECTION",
    b"TE",
    b"TRAILER",
    b"TRANSFER_ENCODING",
    b"UPGRADE",
];

/// A request to an origin.
#[derive(Debug, Eq, PartialEq)]
pub struct Request {
    /// Its method.
    pub method: Vec<u8>,
    /// Its target without the query, for messages: a query may contain a signature.
    pub path: String,
    /// `CONTENT_LENGTH`; `None` if it is missing, though there may be a body.
    pub length: Option<u64>,
    /// The head without the fields for the body's length.
    head: Vec<u8>,
}

impl Request {
    /// From the parameters of a FastCGI request. The target is `REQUEST_URI`, byte for byte; fields
    /// keep their values, and none is added to the client's.
    /// Errors: They are malformed, incomplete, or contain bytes that would end a line of the head.
    pub fn parse(params: &[u8]) -> Result<Self, Malformed> {
        let (mut method, mut target, mut host) = (None, None, &b""[..]);
        let (mut length, mut content_type) = (None, None);
        let mut fields = Vec::with_capacity(params.len() + 64);
        for pair in Pairs(params) {
            let (name, value) = pair?;
            match name {
                b"REQUEST_METHOD" => method = Some(value),
                b"REQUEST_URI" => target = Some(value),
                b"HTTP_HOST" => host = value,
                b"CONTENT_TYPE" if !value.is_empty() => content_type = Some(value),
                b"CONTENT_LENGTH" if !value.is_empty() => length = Some(decimal(value)?),
                _ => {
                    if let Some(name) =
                        name.strip_prefix(b"HTTP_").filter(|name| !NOT_PASSED.contains(name))
                    {
                        push_field(&mut fields, name, value)?;
                    }
                }
            }
        }
        if let Some(value) = content_type {
            push_field(&mut fields, b"CONTENT_TYPE", value)?;
        }
        let method = method
            .filter(|method| method.iter().all(u8::is_ascii_alphanumeric) && !method.is_empty());
        let method = method.ok_or(Malformed("no valid REQUEST_METHOD"))?;
        let target =
            target.filter(|target| !target.is_empty()).ok_or(Malformed("no REQUEST_URI"))?;
        if target.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            return Err(Malformed("a REQUEST_URI with a space or a control character"));
        }
        let mut head =
            Vec::with_capacity(method.len() + target.len() + host.len() + fields.len() + 96);
        head.extend(method);
        head.push(b' ');
        head.extend(target);
        head.extend(b" HTTP/1.1\r\n");
        push_field(&mut head, b"HOST", host)?;
        head.extend(&fields);
        let path = target.split(|&byte| byte == b'?').next().unwrap_or(target);
        Ok(Self {
            method: method.to_vec(),
            path: String::from_utf8_lossy(path).into_owned(),
            length,
            head,
        })
    }

    /// Whether the answer has no body, whatever its length field.
    pub(crate) fn is_head(&self) -> bool {
        self.method == b"HEAD"
    }

    /// Whether the method is safe, so that asking twice does no more than once: RFC 9110,
    /// section 9.2.1.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self.method.as_slice(), b"GET" | b"HEAD" | b"OPTIONS")
    }

    /// The head for the origin. Without `CONTENT_LENGTH` the body is `chunked`, or there is none.
    pub fn head(&self, chunked: bool) -> Vec<u8> {
        let mut head = self.head.clone();
        match self.length {
            Some(length) => {
                write!(head, "content-length: {length}\r\n").expect("writing to memory");
            }
            None if chunked => head.extend(b"transfer-encoding: chunked\r\n"),
            None => {}
        }
        head.extend(b"\r\n");
        head
    }
}

/// Add a field under the name of its parameter, whose original case and underscores are lost.
fn push_field(fields: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    if !name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"_-!#$%&'*+.^`|~".contains(&byte))
        || name.is_empty()
    {
        return Err(Malformed("an invalid field name"));
    }
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err(Malformed("a field with a line break"));
    }
    fields.extend(
        name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }),
    );
    fields.extend(b": ");
    fields.extend(value);
    fields.extend(b"\r\n");
    Ok(())
}

fn decimal(value: &[u8]) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or(Malformed("a CONTENT_LENGTH that is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in pairs {
            bytes.push(name.len() as u8);
            bytes.extend((value.len() as u32 | 0x8000_0000).to_be_bytes());
            bytes.extend(name.bytes().chain(value.bytes()));
        }
        bytes
    }

    const GET: [(&str, &str); 2] =
        [("REQUEST_METHOD", "GET"), ("REQUEST_URI", "//b/a%2Fb|[x]?q=%20+&r")];

    #[test]
    fn the_target_is_passed_byte_for_byte_and_no_field_is_added() {
        let request = Request::parse(&params(&GET)).unwrap();
        assert_eq!(request.head(false), b"GET //b/a%2Fb|[x]?q=%20+&r HTTP/1.1\r\nhost: \r\n\r\n");
        assert_eq!(request.path, "//b/a%2Fb|[x]");
        assert!(request.is_safe() && !request.is_head());
    }

    #[test]
    fn fields_keep_their_values_except_those_of_the_connection() {
        let more = [
            ("HTTP_HOST", "h:1"),
            ("HTTP_X_AMZ_META_A", "caf\u{e9}; \"q\""),
            ("HTTP_X_EMPTY", ""),
            ("HTTP_EXPECT", "100-continue"),
            ("HTTP_CONNECTION", "close"),
            ("HTTP_TRANSFER_ENCODING", "chunked"),
            ("CONTENT_TYPE", "a/b"),
            ("HTTP_CONTENT_TYPE", "a/b"),
            ("CONTENT_LENGTH", "5"),
            ("SERVER_NAME", "s"),
        ];
        let head = Request::parse(&params(&[&GET[..], &more].concat())).unwrap().head(false);
        let text = String::from_utf8(head).unwrap();
        let wanted = "host: h:1\r\nx-amz-meta-a: caf\u{e9}; \"q\"\r\nx-empty: \r\n\
                      expect: 100-continue\r\n\
                      content-type: a/b\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(text.split_once("\r\n").unwrap().1, wanted);
    }

    #[test]
    fn a_body_without_a_length_is_chunked_and_a_length_of_zero_is_kept() {
        let request = Request::parse(&params(&GET)).unwrap();
        assert!(request.head(true).ends_with(b"transfer-encoding: chunked\r\n\r\n"));
        let request =
            Request::parse(&params(&[&GET[..], &[("CONTENT_LENGTH", "0")]].concat())).unwrap();
        assert!(request.head(false).ends_with(b"content-length: 0\r\n\r\n"));
    }

    #[test]
    fn request_smuggling_is_refused() {
        for bad in [
            ("REQUEST_URI", "/a HTTP/1.1\r\nx: y"),
            ("REQUEST_URI", "/a b"),
            ("REQUEST_URI", ""),
            ("REQUEST_METHOD", "GET /"),
            ("HTTP_HOST", "h\r\nx: y"),
            ("HTTP_X", "a\nb"),
            ("HTTP_X: Y", "a"),
            ("CONTENT_TYPE", "a\r\n"),
            ("CONTENT_LENGTH", "+5"),
            ("CONTENT_LENGTH", "99999999999999999999"),
        ] {
            assert!(Request::parse(&params(&[&GET[..], &[bad]].concat())).is_err(), "{bad:?}");
        }
        assert!(Request::parse(&params(&GET[..1])).is_err());
    }
}
