//! The null target's reading of forms that browsers post. It verifies no signature.

/// Where the content of a form's file lies in its body, and what the form says of it.
#[derive(Debug, PartialEq)]
pub(super) struct Form {
    /// The field `key`: the name of the object over S3.
    pub key: String,
    /// Name of the file.
    pub file: String,
    /// Where the content begins.
    pub begin: usize,
    /// Its length.
    pub size: u64,
}

/// Reads a form whose body has `size` bytes and began with `first`; `None`: it is none.
pub(super) fn form(first: &[u8], size: u64) -> Option<Form> {
    let line = find(first, b"\r\n")?;
    let boundary = first[..line].strip_prefix(b"--")?;
    let end = (b"\r\n--".len() + boundary.len() + b"--\r\n".len()) as u64;
    let (mut key, mut at) = (String::new(), 0);
    loop {
        let part = first.get(at..)?.strip_prefix(b"--")?.strip_prefix(boundary)?;
        let part = part.strip_prefix(b"\r\n")?;
        let length = find(part, b"\r\n\r\n")?;
        let text = std::str::from_utf8(&part[..length]).ok()?;
        let begin = first.len() - part.len() + length + b"\r\n\r\n".len();
        if let Some(file) = attribute(text, "filename") {
            let size = size.checked_sub(begin as u64)?.checked_sub(end)?;
            return Some(Form { key, file, begin, size });
        }
        let value = &first[begin..];
        let length = find(value, b"\r\n")?;
        if attribute(text, "name")? == "key" {
            key = std::str::from_utf8(&value[..length]).ok()?.into();
        }
        at = begin + length + b"\r\n".len();
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|some| some == what)
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_one_file_after_its_fields() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\no/1\r\n--b\r\n\
                    Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\
                    Content-Type: x\r\n\r\nhello\r\n--b--\r\n";
        let found = form(body.as_bytes(), body.len() as u64).expect("a form");
        assert_eq!((found.key.as_str(), found.file.as_str(), found.size), ("o/1", "f", 5));
        assert!(body[found.begin..].starts_with("hello"));
        for cut in [0, 2, 5, 30, 60, 120, 145] {
            assert_eq!(form(&body.as_bytes()[..cut], cut as u64), None, "{cut}");
        }
        assert_eq!(form(b"--b\r\n\r\n\r\n--b\r\n", 14), None);
    }
}
