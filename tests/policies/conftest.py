"""Golden files: `UPDATE_GOLDEN=1 pytest tests/policies` rewrites them; read the difference, then commit."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    def check(file: Path, text: str) -> None:
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check
