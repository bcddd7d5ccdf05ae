//! XML as far as answers of S3 need it: elements by their path, each of which must be closed.

/// Calls `seen` with the names of its parents, its name, and its text (not unescaped) for each
/// element that has an end tag, from the inside out; the root must be named `root`. Names are
/// without their namespace prefix where `seen` gets them as `name`, and in full as parents.
/// Errors: Why it is not XML with this root.
pub fn walk<'a>(
    body: &'a [u8],
    root: &[u8],
    mut seen: impl FnMut(&[&'a [u8]], &'a [u8], &'a [u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    std::str::from_utf8(body).map_err(|_| "XML that is not UTF-8")?;
    let (mut rest, mut path, mut has_root) = (body, Vec::<&[u8]>::new(), false);
    while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
        let text = &rest[..at];
        rest = &rest[at + 1..];
        if path.is_empty() && !text.trim_ascii().is_empty() {
            return Err("text outside of the root element");
        }
        if let Some(end) = [(&b"?"[..], &b"?>"[..]), (b"!--", b"-->")]
            .iter()
            .find(|(start, _)| rest.starts_with(start))
        {
            rest = &rest[find(rest, end.1).ok_or("truncated XML")? + end.1.len()..];
            continue;
        }
        let end = tag_end(rest).ok_or("truncated XML")?;
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix(b"/") {
            if path.pop() != Some(name.trim_ascii_end()) {
                return Err("XML whose elements do not match");
            }
            seen(&path, local(name), text)?;
        } else {
            let name = tag
                .split(|&byte| byte.is_ascii_whitespace() || byte == b'/')
                .next()
                .unwrap_or_default();
            if name.is_empty()
                || name[0] == b'!'
                || (path.is_empty() && (has_root || local(name) != root))
            {
                return Err("XML that is not what was asked for");
            }
            if tag.ends_with(b"/") {
                continue;
            }
            path.push(name);
            has_root = true;
        }
    }
    if !path.is_empty() || !has_root || !rest.trim_ascii().is_empty() {
        return Err("truncated XML");
    }
    Ok(())
}

/// Where a tag ends: at the first `>` outside of quotes.
fn tag_end(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    text.iter().position(|&byte| {
        match (quote, byte) {
            (None, b'>') => return true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        false
    })
}

/// Where a text begins in another.
pub fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

/// A name without its namespace prefix.
pub fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b':').next().unwrap_or(name).trim_ascii_end()
}

/// The text of an element without entities; `None` where one is unknown.
pub fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = rest.iter().position(|&byte| byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        let length = rest[at..].iter().position(|&byte| byte == b';')?;
        let entity = std::str::from_utf8(&rest[at + 1..at + length]).ok()?;
        rest = &rest[at + length + 1..];
        let code = match entity {
            "amp" => u32::from('&'),
            "lt" => u32::from('<'),
            "gt" => u32::from('>'),
            "quot" => u32::from('"'),
            "apos" => u32::from('\''),
            _ => match entity.strip_prefix("#x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => entity.strip_prefix('#')?.parse().ok()?,
            },
        };
        out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Appends text to XML.
pub fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_unescaped_as_they_were_escaped() {
        let text = b"a&b<c>\"d\"'e'";
        let mut escaped = Vec::new();
        put_escaped(&mut escaped, text);
        assert_eq!(unescape(&escaped).as_deref(), Some(&text[..]));
        assert_eq!(unescape(b"&#65;&#x42;&apos;").as_deref(), Some(&b"AB'"[..]));
        for bad in [&b"&"[..], b"&amp", b"&e;", b"&#x110000;", b"&#;", b"&#xd800;"] {
            assert_eq!(unescape(bad), None);
        }
    }
}
