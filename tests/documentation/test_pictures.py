"""The picture of `headwater status --watch` is up to date. `UPDATE_GOLDEN=1` draws it again."""

import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from headwater.report.runtime_table import runtime_rich
from headwater_spark.driver.queries.progress import NO_PROGRESS

_PICTURE = Path(__file__).parents[2] / "docs" / "status.svg"
# Without the fonts that Rich loads from the network.
_FORMAT = re.sub(
    r"@font-face \{\{.*?\}\}\s*",
    "",
    CONSOLE_SVG_FORMAT.replace("Fira Code, monospace", "monospace"),
    flags=re.DOTALL,
)


def _part(id_: str, sources: list[str], tasks: int, rate: float, **more: object) -> Mapping[str, Any]:
    return {
        "id": id_,
        "state": "RUNNING",
        "sources": sources,
        "parallelism": tasks,
        "recordsPerSecond": rate,
        "restarts": 0,
        "failure": "",
        "waitsFor": "records",
        "secondsWithoutProgress": 0.0,
        "stalled": False,
        **more,
    }


def _status() -> Mapping[str, Any]:
    parts = (
        _part("0", ["orders"], 6, 41_250.0, recordsRead=8_316_402, recordsWritten=8_316_402, lag=1_204),
        _part(
            "1",
            ["busy-customers-by-customer-repartition"],
            6,
            40_870.0,
            recordsRead=8_301_977,
            recordsWritten=412_060,
            lag=318,
            stateBytes=9_800_000,
        ),
    )
    names = [f"busy-customers-worker-1-71-StreamThread-{number}" for number in (1, 2, 3)]
    runs: tuple[list[str], ...] = (["0"], ["1"], [])
    return {
        "application": "busy-customers",
        "state": "RUNNING",
        "problems": [],
        "starting": "",
        "slots": 4,
        "threads": [
            {"name": name, "state": "RUNNING", "runs": of} for name, of in zip(names, runs, strict=True)
        ],
        "subtopologies": [{**NO_PROGRESS, **part} for part in parts],
    }


def test_the_picture_of_the_status_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    console = Console(record=True, width=100, file=StringIO(), force_terminal=True)
    console.print(runtime_rich(_status()))
    picture = console.export_svg(
        title="headwater status --watch", theme=MONOKAI, unique_id="status", code_format=_FORMAT
    )
    golden(_PICTURE, picture)
