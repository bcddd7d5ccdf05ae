//! Checks of complete answers against their requests.

use super::{Answer, Bad, EXCERPT_BYTES, Outcome, Required};
use crate::digests::{Sum, of_etag};
use crate::http::Head;
use crate::list::{Form, Page, ReadPage, is_error, keys, page};
use crate::list_versions::versions_page;
use crate::picker::{Object, Part, Request};
use crate::recorder::Failure;
use crate::results::{self, Deleted};
use crate::workload::Operation;

impl Answer {
    /// Checks the complete answer; `gone_is_fine`: a 404 is accepted too.
    /// Errors: The class of error, and why.
    pub fn check(
        &self,
        request: &Request,
        required: &Required<'_>,
        gone_is_fine: bool,
    ) -> Result<Outcome, Bad> {
        let Some(head) = &self.head else { return Err((Failure::Protocol, "no answer".into())) };
        let status = head.status;
        let good = (200..300).contains(&status);
        let wanted = match request.operation {
            Operation::Read | Operation::ReadIfMatch | Operation::ReadVersion => status == 200,
            Operation::ReadRange => status == 206,
            // Ceph answers 200, and sends a part as if it was an object.
            Operation::ReadPart => matches!(status, 200 | 206),
            Operation::ReadIfNoneMatch => status == 304,
            Operation::RewriteIfNoneMatch => status == 412,
            _ => good || (gone_is_fine && status == 404),
        };
        let excerpt =
            || String::from_utf8_lossy(&self.excerpt[..self.excerpt.len().min(EXCERPT_BYTES)]);
        let (_, length) = request.span();
        let complete = request.operation.reads() && self.received == length;
        if good && !complete && is_error(&self.excerpt) {
            return Err((Failure::ErrorBody, format!("{status}: {}", excerpt())));
        }
        if !wanted {
            let (class, why) = match request.operation {
                Operation::ReadRange if status == 200 => {
                    (Failure::IgnoredRange, "the complete object instead of a part of it")
                }
                Operation::ReadIfNoneMatch if status == 200 => {
                    (Failure::IgnoredCondition, "the object, or its ETag is not the MD5 of it")
                }
                Operation::RewriteIfNoneMatch if good => {
                    (Failure::IgnoredCondition, "an object that exists was written again")
                }
                _ => return Err((Failure::Http(status), format!("{status}: {}", excerpt()))),
            };
            return Err((class, format!("{status}: {why}")));
        }
        match request.operation {
            operation if operation.reads() => {
                check_version(head, required)?;
                self.check_read(head, request).map(|()| Outcome::Done)
            }
            // Some front ends omit the length of an empty object.
            Operation::Head if head.length.unwrap_or(0) != request.size => {
                let length =
                    head.length.map_or("no length".into(), |length| format!("{length} bytes"));
                Err((Failure::WrongLength, format!("{length} of an object of {}", request.size)))
            }
            Operation::Write | Operation::WriteIfNoneMatch | Operation::Overwrite => {
                if required.versioned && head.version.as_ref().is_none_or(|id| id.is_empty()) {
                    let why = "no version was made: the answer has no ID of one";
                    return Err((Failure::BadResult, why.into()));
                }
                check_sum(required, head.md5)
            }
            Operation::Copy | Operation::UpdateMetadata => {
                let found =
                    if required.xml { results::copied(&self.excerpt) } else { Ok(head.md5) };
                check_sum(required, found.map_err(bad_result)?)
            }
            Operation::List => self.check_listing(head, required).map(|()| Outcome::Done),
            Operation::ListAll => self.page(head, required, page).map(Outcome::Page),
            Operation::ListVersions => self.page(head, required, versions_page).map(Outcome::Page),
            Operation::WriteMultipart => self.check_upload(head, request, required),
            Operation::DeleteMany => self.check_deleted(request, required),
            Operation::Delete if required.segments && good => {
                let found = results::bulk_deleted(&self.excerpt).map_err(bad_result)?;
                let least = u64::from(!gone_is_fine);
                judge_deleted(&found, least).map(|()| Outcome::Done)
            }
            _ => Ok(Outcome::Done),
        }
    }

    fn check_read(&self, head: &Head, request: &Request) -> Result<(), Bad> {
        let (offset, length) = request.span();
        let of = if matches!(request.part, Part::Bytes { .. } | Part::Numbered { .. }) {
            "a part"
        } else {
            "an object"
        };
        if let Part::Numbered { number, .. } = request.part {
            if self.received == request.size {
                let why =
                    format!("{}: the complete object instead of part {number} of it", head.status);
                return Err((Failure::IgnoredPart, why));
            }
        }
        let names_range = match request.part {
            Part::Bytes { .. } => true,
            Part::Numbered { .. } => head.status == 206 || head.range.is_some(),
            _ => false,
        };
        if names_range {
            let right = head.range.is_some_and(|(first, last, size)| {
                first == offset
                    && last.checked_add(1) == Some(offset + length)
                    && size.is_none_or(|size| size == request.size)
            });
            if !right {
                let found = head.range.map_or("no Content-Range".into(), |(first, last, size)| {
                    let size = size.map_or("*".into(), |size| size.to_string());
                    format!("Content-Range: bytes {first}-{last}/{size}")
                });
                let (last, size) = (offset + length - 1, request.size);
                let why = format!("{found} where {offset}-{last}/{size} was requested");
                return Err((Failure::WrongRange, why));
            }
        }
        if self.received < length {
            return Err((Failure::ShortBody, format!("{} bytes of {length}", self.received)));
        }
        if self.received > length {
            let why = format!("{} bytes of {of} of {length}", self.received);
            return Err((Failure::WrongContent, why));
        }
        if self.wrong {
            return Err((Failure::WrongContent, "other bytes than were written".into()));
        }
        Ok(())
    }

    /// The body of a listing, or of another result.
    fn result(&self) -> Result<&[u8], String> {
        if self.received > self.excerpt.len() as u64 {
            return Err(format!("a result of {} bytes", self.received));
        }
        Ok(&self.excerpt)
    }

    fn check_listing(&self, head: &Head, required: &Required<'_>) -> Result<(), Bad> {
        let bad = |what: String| (Failure::BadList, what);
        let count = keys(form(head, required), self.result().map_err(bad)?)
            .map_err(|why| bad(why.into()))?;
        within(count, required)
    }

    fn page(&self, head: &Head, required: &Required<'_>, read: ReadPage) -> Result<Box<Page>, Bad> {
        let bad = |what: String| (Failure::BadList, what);
        let body = self.result().map_err(bad)?;
        let page =
            read(form(head, required), body, required.prefix).map_err(|why| bad(why.into()))?;
        within(page.keys + page.prefixes, required)?;
        Ok(Box::new(page))
    }

    fn check_upload(
        &self,
        head: &Head,
        request: &Request,
        required: &Required<'_>,
    ) -> Result<Outcome, Bad> {
        match request.part {
            Part::Begin => {
                results::upload_id(&self.excerpt).map(Outcome::Upload).map_err(bad_result)
            }
            Part::Piece { .. } => {
                let etag = head.etag.as_deref().filter(|etag| !etag.is_empty());
                let etag = etag.ok_or_else(|| {
                    (Failure::WrongEtag, "a part without an ETag, which its upload needs".into())
                })?;
                let sums = required.md5.filter(|_| !head.encrypted).zip(of_etag(etag));
                if sums.is_some_and(|(written, etag)| written != etag) {
                    return Err(wrong_sum());
                }
                Ok(Outcome::Etag(etag.into()))
            }
            _ if required.xml => results::check_finished(&self.excerpt, required.parts)
                .map(|()| Outcome::Done)
                .map_err(bad_result),
            _ => Ok(Outcome::Done),
        }
    }

    fn check_deleted(&self, request: &Request, required: &Required<'_>) -> Result<Outcome, Bad> {
        let body = self.result().map_err(|why| (Failure::BadResult, why))?;
        let (Part::Several(count), Object::Prepared(first)) = (request.part, request.object) else {
            return Ok(Outcome::Done);
        };
        let found = if required.xml {
            results::multi_deleted(body, first..first + count)
        } else {
            results::bulk_deleted(body)
        };
        let found = found.map_err(bad_result)?;
        if found.deleted > count {
            let why = format!("{} objects deleted of {count}", found.deleted);
            return Err((Failure::BadResult, why));
        }
        judge_deleted(&found, count).map(|()| Outcome::Done)
    }
}

/// Checks that it is the version that was asked for, if it was one.
fn check_version(head: &Head, required: &Required<'_>) -> Result<(), Bad> {
    let Some(asked) = required.version else { return Ok(()) };
    let named = head.version.as_deref().unwrap_or_default();
    if named == asked {
        return Ok(());
    }
    let why = if named.is_empty() {
        "the answer does not say which version it is"
    } else {
        "another version than the one that was asked for"
    };
    Err((Failure::WrongContent, why.into()))
}

fn form(head: &Head, required: &Required<'_>) -> Form {
    match (head.json, required.xml) {
        (true, _) => Form::Json,
        (_, true) => Form::Xml,
        _ => Form::Plain,
    }
}

fn within(count: u64, required: &Required<'_>) -> Result<(), Bad> {
    let Required { least_listed: least, most_listed: most, .. } = *required;
    if count > most {
        let why = format!("{count} keys where at most {most} were requested");
        return Err((Failure::BadList, why));
    }
    if count < least {
        return Err((Failure::BadList, format!("{count} keys where at least {least} exist")));
    }
    Ok(())
}

fn check_sum(required: &Required<'_>, found: Option<Sum>) -> Result<Outcome, Bad> {
    if required.md5.zip(found).is_some_and(|(written, etag)| written != etag) {
        return Err(wrong_sum());
    }
    Ok(Outcome::Done)
}

fn judge_deleted(found: &Deleted, least: u64) -> Result<(), Bad> {
    if let Some(error) = &found.error {
        return Err((Failure::NotDeleted, error.chars().take(EXCERPT_BYTES).collect()));
    }
    if found.deleted < least {
        let Deleted { deleted, missing, .. } = found;
        let why = format!("{deleted} deleted of {least}, {missing} not found");
        return Err((Failure::NotDeleted, why));
    }
    Ok(())
}

fn wrong_sum() -> Bad {
    (Failure::WrongEtag, "the ETag is not the MD5 of what was written".into())
}

fn bad_result(why: &'static str) -> Bad {
    (Failure::BadResult, why.into())
}
