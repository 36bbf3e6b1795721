"""Backends in files never have attribute files, which a killed `pulumi` can leave empty."""

import re
from pathlib import Path

from headwater.toolchain import file_backend

_ROOT = Path(__file__).parents[2]
_FILE_URL = re.compile(r"file://~[^\s'\"`)]*")


def test_url_of_a_backend() -> None:
    assert file_backend(Path("/var/state")) == "file:///var/state?metadata=skip"


def test_each_documented_backend_in_files_has_no_attribute_files() -> None:
    pages = (_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md"), *(_ROOT / "docs").rglob("*.yml"))
    urls = [url for page in pages for url in _FILE_URL.findall(page.read_text(encoding="utf-8"))]
    assert len(urls) >= 3
    assert all(url.endswith("?metadata=skip") for url in urls), urls
