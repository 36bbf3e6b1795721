"""The stream threads of a running application as lines of text."""

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.report.printable import printable

_LEAVING = "PENDING_SHUTDOWN"


def thread_line(thread: Mapping[str, Any]) -> str:
    """Return the line of a thread of `/status`: its name, its state and what it does."""
    runs = ", ".join(f"sub-topology {each}" for each in thread["runs"])
    return printable(f"{thread['name']}  {thread['state']}  {runs or 'idle'}")


def slots_note(threads: Sequence[Mapping[str, Any]], slots: int) -> str:
    """Return a note if there are more threads than Spark can use, or none at all; else an empty text."""
    alive = sum(thread["state"] != _LEAVING for thread in threads)
    if slots and not alive:
        return "No stream thread is alive: no record is processed. `headwater threads add` adds one."
    if 0 < slots < alive:
        return f"{alive} stream threads, but Spark runs {slots} tasks at once: more threads gain nothing."
    return ""
