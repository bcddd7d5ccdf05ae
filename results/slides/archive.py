"""Making the same deck the same bytes: a PPTX is a ZIP file that holds other ZIP files, and each of them tells when it was made."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import UTC, datetime
from typing import Final

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The first moment that a ZIP file can tell."""
_MOMENT: Final = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(<)")


def settled(data: bytes, dated: str) -> bytes:
    """The same archive with every time in it set to that of the run, the workbooks of its charts included."""
    moment = datetime.fromisoformat(dated).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(".xlsx"):
                content = settled(content, dated)
            elif name == "docProps/core.xml":
                content = _MOMENT.sub(rb"\g<1>" + moment + rb"\g<2>", content)
            info = zipfile.ZipInfo(name, _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, content)
    return out.getvalue()
