"""Compiled applications as tables for a terminal: one for each sub-topology."""

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from infra.model.compiled import CompiledApplication, InternalTopic, SubTopology
from infra.planner.wording import counted
from infra.report.printable import printable

_KIND_COLOURS = {"repartition": "blue", "changelog": "yellow", "fk-subscription": "magenta"}


_UNFOLDED = 2_000


def compile_text(compiled: Sequence[CompiledApplication]) -> str:
    """Return plain lines as long as they need to be, for files and pipes."""
    console = Console(file=StringIO(), width=_UNFOLDED, color_system=None)
    with console.capture() as capture:
        console.print(compile_rich(compiled))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def compile_rich(compiled: Sequence[CompiledApplication]) -> RenderableType:
    """Return the tables for a terminal; problems come apart from them."""
    return Group(*(part for application in compiled for part in _application(application)))


def _application(compiled: CompiledApplication) -> Iterator[RenderableType]:
    topics = compiled.internal_topics
    total = sum(topic.partitions for topic in topics)
    yield Text.assemble(
        (printable(compiled.application.id), "bold underline"),
        f"  {counted(len(topics), 'internal topic')}, {counted(total, 'partition')}",
    )
    for part in compiled.subtopologies:
        yield Text("")
        yield from _subtopology(part, [topic for topic in topics if topic.subtopology == part.id])
    if compiled.sinks:
        yield Text("")
        yield Text(
            "  managed sinks: " + ", ".join(f"{sink.topic} ({sink.partitions})" for sink in compiled.sinks)
        )
    yield Text("")


def _subtopology(part: SubTopology, topics: Sequence[InternalTopic]) -> Iterator[RenderableType]:
    kind = "global sub-topology" if part.is_global else "sub-topology"
    tasks = "on every instance" if part.is_global else counted(part.tasks, "task")
    yield Text.assemble("  ", (f"{kind} {part.id}", "bold"), f"  {tasks}")
    patterns = tuple(f"/{pattern}/" for pattern in part.source_patterns)
    for label, names in (("reads", (*patterns, *part.sources)), ("writes", part.sinks)):
        if names:
            yield Text.assemble("    ", (f"{label:7}", "dim"), printable(", ".join(names)))
    if topics:
        yield _table(topics)


def _table(topics: Sequence[InternalTopic]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("    internal topic", overflow="fold")
    table.add_column("kind")
    table.add_column("partitions", justify="right")
    table.add_column("config", overflow="fold")
    for topic in topics:
        config = " ".join(f"{key}={value}" for key, value in sorted(topic.config.items()))
        table.add_row(
            Text(f"    {printable(topic.name)}"),
            Text(topic.kind.value, _KIND_COLOURS[topic.kind.value]),
            f"{topic.partitions:,}",
            Text(printable(config), "dim"),
        )
    return table
