"""A running application as a table that a person watches."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from infra.report.printable import printable

_STATE_STYLES = {"RUNNING": "green", "STARTING": "yellow", "WAITING": "yellow", "FAILED": "red"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI = 1024


def runtime_rich(status: Mapping[str, Any]) -> RenderableType:
    """Show the section `runtime` of a client's status."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("sub-topology")
    table.add_column("state")
    for heading in ("tasks", "records/s", "read", "written", "lag", "state"):
        table.add_column(heading, justify="right")
    table.add_column("reads", overflow="fold")
    for part in status["subtopologies"]:
        table.add_row(
            printable(part["id"]),
            Text(part["state"], style=_STATE_STYLES.get(part["state"], "")),
            str(part["parallelism"]),
            f"{part['recordsPerSecond']:,.0f}",
            f"{part['recordsRead']:,}",
            f"{part['recordsWritten']:,}",
            "" if part["lag"] is None else f"{part['lag']:,}",
            size_text(part["stateBytes"]),
            printable(", ".join(part["sources"])),
        )
    title = Text.assemble((printable(status["application"]), "bold"), "  ", status["state"])
    failures = [
        Text(f"sub-topology {part['id']}: {printable(part['failure'].splitlines()[0])}", style="red")
        for part in status["subtopologies"]
        if part["failure"] and part["state"] != "RUNNING"
    ]
    problems = [Text(printable(problem), style="red") for problem in status["problems"]]
    return Group(title, table, *failures, *problems)


def size_text(size: float) -> str:
    """Return a number of bytes with the unit that leaves one to four digits."""
    for unit in _UNITS[:-1]:
        if size < _KIBI:
            return f"{size:,.0f} {unit}"
        size /= _KIBI
    return f"{size:,.0f} {_UNITS[-1]}"
