"""The `headwater` command, run in this process where that is sufficient."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from headwater.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"


@attrs.frozen
class Done:
    """The exit code and the output of the command."""

    returncode: int
    stdout: str
    stderr: str
    stdout_bytes: bytes


Headwater = Callable[..., Done]


@pytest.fixture
def headwater(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Headwater:
    """Return a function that runs the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: Any, **options: Any) -> Done:  # noqa: ANN401 - paths and numbers, as on a command line
        result = CliRunner().invoke(main, [*map(str, arguments)], prog_name="headwater", **options)
        return Done(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    return run
