"""Partition counts of managed sink topics: `follow` means one partition for each task that writes them."""

from collections.abc import Iterable

import attrs

from headwater.compiler.compilation import Compilation
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Sink


def sink_counts(
    sinks: Iterable[Sink], compilation: Compilation
) -> tuple[tuple[Sink, ...], tuple[Problem, ...]]:
    """Return `sinks` with their counts (None = undecided), and a problem for each without a writer."""
    sized: list[Sink] = []
    problems: list[Problem] = []
    for sink in sinks:
        if sink.partitions is not None:
            sized.append(sink)
            continue
        writers = [group.id for group in compilation.groups if sink.topic in group.sinks]
        if not writers:
            problems.append(_unwritten(sink))
        tasks = [compilation.tasks.get(writer) for writer in writers]
        decided = [count for count in tasks if count is not None]
        sized.append(
            attrs.evolve(sink, partitions=max(decided) if decided and len(decided) == len(tasks) else None)
        )
    return tuple(sized), tuple(problems)


def _unwritten(sink: Sink) -> Problem:
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=(
            f"The managed sink topic {sink.topic} follows the sub-topology that writes it, but no "
            "sub-topology writes it."
        ),
        topic=sink.topic,
        expected="a sink that writes the topic by name",
        found="no such sink",
        why=(
            "Without a writer there is no partition count to follow. Topics chosen by a topic name extractor "
            "are not known."
        ),
        fix="Correct the topic's name, or declare its partitions as a number.",
    )
