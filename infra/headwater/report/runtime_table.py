"""The status of a running application as a table, and its processors and stream threads as lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headwater.planner.phrases import count_phrase, seconds_phrase
from headwater.report.markdown import printable


def _processors_line(status: Mapping[str, Any]) -> str:
    """Return the line of the processors of `/status`; empty if the document declares no number."""
    if status["processors"] is None:
        return ""
    line = f"processors: {status['processors']}"
    if status["target"] is None:
        return line
    remaining = f"{count_phrase(status['remaining'])} records remaining"
    return f"{line} (expanding to {status['target']}: {printable(status['phase'])}, {remaining})"


def problem_line(status: Mapping[str, Any], problem: Mapping[str, Any]) -> str:
    """Return the line of a problem of the last expansion: it was refused, or it runs and is delayed."""
    what = "refused" if status["target"] is None else "delayed"
    return printable(f"expansion {what}: {problem['summary']}")


_LEAVING = "PENDING_SHUTDOWN"


def thread_line(thread: Mapping[str, Any]) -> str:
    """Return the line of a thread of `/status`: its name, its state and what it does."""
    runs = ", ".join(f"sub-topology {each}" for each in thread["runs"])
    return printable(f"{thread['name']}  {thread['state']}  {runs or 'idle'}")


def task_line(task: Mapping[str, Any]) -> str:
    """Return the line of a task of `/status` whose batch takes long: since when, and what it does."""
    line = f"task {task['task']} has processed one batch for {seconds_phrase(task['seconds'])}"
    if task["restoring"]:
        restored, total = task["restored"], task["toRestore"]
        percent = f"{100 * restored // total} %" if total else "0 %"
        line += (
            f": restoring {task['restoring']}, {percent} "
            f"({count_text(restored)} of {count_text(total)} offsets)"
        )
    else:
        record, processor = task["record"], task["processor"]
        parts = [record and f"record of {record}", processor and f"processor {processor}", task["code"]]
        known = ", ".join(filter(None, parts))
        line += f": {known}" if known else ""
    return printable(line)


def slots_note(threads: Sequence[Mapping[str, Any]], slots: int) -> str:
    """Return a note if there are more threads than Spark can use, or none at all; else an empty text."""
    alive = sum(thread["state"] != _LEAVING for thread in threads)
    if slots and not alive:
        return "No stream thread is alive: no record is processed. `headwater threads add` adds one."
    if 0 < slots < alive:
        return f"{alive} stream threads, but Spark runs {slots} tasks at once: more threads gain nothing."
    return ""


_STATE_STYLES = {
    "RUNNING": "green",
    "REBALANCING": "yellow",
    "STARTING": "yellow",
    "WAITING": "yellow",
    "PENDING_ERROR": "red",
    "ERROR": "red",
    "FAILED": "red",
}
_SLOW_SECONDS = 10.0
_MOST_THREADS = 16
_BROKEN = ("WAITING", "FAILED")
_STARTED = ("RUNNING", "REBALANCING")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI = 1024
_COUNTS = ("k", "M", "G", "T", "P", "E")
_EXACT_BELOW = 1_000_000
_DIGITS = 4


def runtime_rich(status: Mapping[str, Any]) -> RenderableType:
    """Return the table of the section `runtime` of a client's status."""
    title = Text.assemble((printable(status["application"]), "bold"), "  ", _state_text(status["state"]))
    failures = [
        Text(f"sub-topology {part['id']}: {printable(part['failure'].splitlines()[0])}", style="red")
        for part in status["subtopologies"]
        if part["failure"] and part["state"] in _BROKEN
    ]
    waiting = [
        Text(_waiting_text(part), style="red" if part["stalled"] else "yellow")
        for part in status["subtopologies"]
        if part.get("secondsWithoutProgress", 0.0) >= _SLOW_SECONDS or part.get("stalled")
    ]
    tasks = [
        Text(task_line(task), style="yellow")
        for part in status["subtopologies"]
        for task in part.get("slowTasks", ())
        if task["seconds"] >= _SLOW_SECONDS
    ]
    problems = [Text(printable(problem), style="red") for problem in status["problems"]]
    if cluster_problem := status.get("clusterProblem"):
        problems.insert(0, Text(f"cluster not readable: {printable(cluster_problem)}", style="red"))
    if starting := status.get("starting"):
        return Group(title, Text(printable(starting), style="yellow"), *problems)
    table = _Subtopologies(status["subtopologies"])
    return Group(
        title,
        table,
        *_processor_lines(status),
        *_thread_lines(status),
        *failures,
        *waiting,
        *tasks[:_MOST_THREADS],
        *problems,
    )


class _Subtopologies:
    """One line for each sub-topology. The topics it reads are in the last column, or below a narrow table."""

    def __init__(self, parts: Sequence[Mapping[str, Any]]) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = self._table(with_reads=True)
        if Measurement.get(console, options.update_width(_EXACT_BELOW), wide).maximum <= options.max_width:
            yield wide
            return
        yield self._table(with_reads=False)
        for part in self._parts:
            yield Text(f"{printable(part['id'])} reads {_inputs_text(part)}", style="dim")

    def _table(self, *, with_reads: bool) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("sub-topology", no_wrap=True)
        table.add_column("state", no_wrap=True)
        for heading in ("tasks", "records/s", "read", "written", "lag", "state"):
            table.add_column(heading, justify="right", no_wrap=True)
        if with_reads:
            table.add_column("reads", no_wrap=True)
        for part in self._parts:
            table.add_row(*_cells_of(part), *((_inputs_text(part),) if with_reads else ()))
        return table


def _cells_of(part: Mapping[str, Any]) -> tuple[str | Text, ...]:
    return (
        printable(part["id"]),
        _state_text(part["state"]),
        str(part["parallelism"]),
        count_text(part["recordsPerSecond"]),
        count_text(part["recordsRead"]),
        count_text(part["recordsWritten"]),
        "" if part["lag"] is None else count_text(part["lag"]),
        size_text(part["stateBytes"]),
    )


def _processor_lines(status: Mapping[str, Any]) -> Iterator[Text]:
    """Yield a line with the number of processors, and why an expansion was refused or is delayed."""
    processors = status.get("processors")
    if processors is None:
        return
    if line := _processors_line(processors):
        yield Text(line, style="dim" if processors["target"] is None else "yellow")
    for problem in processors["problems"]:
        yield Text(
            problem_line(processors, problem), style="red" if processors["target"] is None else "yellow"
        )


def _thread_lines(status: Mapping[str, Any]) -> Iterator[Text]:
    """Yield a line for each stream thread, and a note about their number; a client of before has none."""
    threads = status.get("threads")
    if threads is None:
        return
    for thread in threads[:_MOST_THREADS]:
        yield Text(thread_line(thread), style="dim")
    if len(threads) > _MOST_THREADS:
        yield Text(f"and {len(threads) - _MOST_THREADS} more: headwater threads list", style="dim")
    if (note := slots_note(threads, status["slots"])) and status["state"] in _STARTED:
        yield Text(note, style="yellow")


def _waiting_text(part: Mapping[str, Any]) -> str:
    seconds = seconds_phrase(part["secondsWithoutProgress"])
    stalled = ", so it is stalled" if part["stalled"] else ""
    waits_for = printable(part["waitsFor"])
    return f"sub-topology {part['id']} made no progress for {seconds}{stalled}; it waits for {waits_for}"


def _state_text(name: str) -> Text:
    return Text(printable(name), style=_STATE_STYLES.get(name, ""))


def _inputs_text(part: Mapping[str, Any]) -> str:
    return printable(", ".join(part["sources"]))


def count_text(number: float) -> str:
    """Return a count: exact below a million, else its four leading digits. At most seven characters."""
    if round(number) < _EXACT_BELOW:
        return f"{number:,.0f}"
    leading, power = f"{number:.{_DIGITS - 1}e}".split("e")
    thousands = min(int(power) // 3, len(_COUNTS))
    return f"{float(leading) * 10 ** (int(power) - 3 * thousands):#.{_DIGITS}g} {_COUNTS[thousands - 1]}"


def size_text(size: float) -> str:
    """Return a number of bytes in the binary unit that leaves one to four digits."""
    for unit in _BYTES[:-1]:
        if size < _KIBI:
            return f"{size:,.0f} {unit}"
        size /= _KIBI
    return f"{size:,.0f} {_BYTES[-1]}"
