"""Links of Markdown pages that leave the folder of the documentation. Pure."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import urlsplit

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)


def rewritten(markdown: str, source: str, page: str, pages: Mapping[str, str], files: set[str]) -> str:
    """Return a page of the site.

    Args:
        markdown: the page as it is in the repository.
        source: the page's file in the repository.
        page: its path in the site.
        pages: the path in the site of each file of the repository that has one.
        files: filled with the other files that the page links to; they become part of the site.
    """

    def replace(match: re.Match[str]) -> str:
        target = match["target"]
        parts = urlsplit(target)
        if parts.scheme or not parts.path:
            return match[0]
        path = normpath(PurePosixPath(source).parent / parts.path)
        if path not in pages:
            if not PurePosixPath(path).suffix:
                return f"{match['text']} (`{path}`)"  # a folder of the repository
            files.add(path)
        there = relpath(pages.get(path, f"repository/{path}"), PurePosixPath(page).parent.as_posix())
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        return f"{match['image']}[{match['text']}]({there}{fragment})"

    blocks = _FENCE.split(markdown)
    return "".join(block if number % 2 else _LINK.sub(replace, block) for number, block in enumerate(blocks))
