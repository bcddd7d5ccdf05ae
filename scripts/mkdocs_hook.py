"""What MkDocs lacks for the site of docs/: pages from outside docs/, and links that lead there.

A hook of `mkdocs.yml`. README.md is the home. Links in the pages are as in the repository, so that
they also work where it is read without the site; here they are turned to the pages of the site, and
links to files that are no pages become plain text.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[1]
OUTSIDE: Mapping[str, str] = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "published.md": "results/published/README.md",
}
"""Pages of the site whose text is outside docs/: by page, the file in the repository."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|(!\[[^\]]*\])\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have headings named as on GitHub, where the same links are read."""
    config.mdx_configs["toc"] = {
        **config.mdx_configs.get("toc", {}),
        "slugify": slugify(case="lower"),
    }
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn the links of a page, outside its code."""
    own = page.file.src_uri
    source = OUTSIDE.get(own, f"docs/{own}")
    parts = FENCE.split(markdown)
    return "".join(
        part if part.startswith("```") else LINK.sub(lambda one: _turned(one, own, source), part)
        for part in parts
    )


def _turned(link: re.Match[str], own: str, source: str) -> str:
    picture = link[3] is not None
    text, target = (link[3], link[4]) if picture else (link[1], link[2])
    path, mark, anchor = target.partition("#")
    if ":" in path or not path:
        return link[0]
    file = ((ROOT / source).parent / path).resolve()
    there = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
    pages = {name: page for page, name in OUTSIDE.items()}
    if there in pages:
        to = pages[there]
    elif there.startswith("docs/") and file.is_file():
        to = there.removeprefix("docs/")
    else:
        return text if file.exists() else link[0]
    to = os.path.relpath(to, Path(own).parent)
    return f"{text}({to}{mark}{anchor})" if picture else f"[{text}]({to}{mark}{anchor})"
