"""An expansion would move keys of a stateful application away from their state."""

from collections.abc import Iterator

from infra.compiler.streams_config import LINEAR_HASH
from infra.model.linear_hashing import is_doubled
from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication
from infra.planner.phrases import counted, listed
from infra.planner.processors import declared_processors, live_changelogs


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878, motivation: autoscaling is for stateless and statically partitioned applications.

    With a number of processors, also for doubled counts, and for all counts with `linear-hash` (KIP-287).
    """
    config, declared = application.config, application.compiled.application
    if config.is_statically_partitioned or declared.setup.allow_unsafe_expansion:
        return
    if declared.processors is not None:
        yield from _misplaced(application)
        return
    if application.initial:
        return  # `processors_and_partitions` reports that the document no longer declares the processors
    too_small = [state.name for state in application.internal if state.missing_partitions]
    if not too_small or not application.config.autoscaling or not application.compiled.is_stateful:
        return
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} is stateful and not statically partitioned: an expansion moves keys away from "
        "their state.",
        expected="a stateless application, or `static.partitioner.class`",
        found=f"{counted(len(too_small), 'topic')} to expand: {listed(too_small)}",
        why="With more partitions Kafka's partitioner sends most keys to another partition. Their state "
        "stays in the old one: counts start from zero, joins miss records.",
        fix="If the producers partition statically, set `static.partitioner.class`. "
        f"{_with_processors(application)}To expand and lose the connection to the old state, set "
        "`setup.allowUnsafeExpansion: true`.",
    )


def _with_processors(application: CountedApplication) -> str:
    """Return how a number of processors avoids the loss; nothing if the application cannot have one."""
    parts = [part for part in application.compiled.subtopologies if part.is_stateful]
    live = set(live_changelogs(application).values())
    if len(live) != 1 or any(part.source_changelogs for part in parts):
        return ""
    (count,) = live
    counts = {partitions for part in parts for partitions in part.source_partitions.values()}
    first = ""
    if not all(is_doubled(partitions, count) for partitions in counts):
        first = f"expand the source topics to {_next(max(counts), count)} partitions and "
    return f"If it runs with `headwater run`, {first}set `processors: {count}`: keys stay with their state. "


def _misplaced(application: CountedApplication) -> Iterator[Problem]:
    if application.config.static_partitioner == LINEAR_HASH:
        return
    misplaced = [
        processors
        for processors in declared_processors(application)
        if processors.initial is not None and processors.misplaced
    ]
    if not misplaced:
        return
    initial = misplaced[0].starts_with
    counts = {topic: part.inputs[topic] for part in misplaced for topic in part.misplaced}
    allowed = ", ".join(str(initial * 2**k) for k in range(4))
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} has {counted(initial, 'processor')} and a partition count that moves keys away "
        "from their state.",
        expected=f"{allowed}, … partitions",
        found=listed(f"{topic} with {counted(count, 'partition')}" for topic, count in counts.items()),
        why="Kafka's partitioner chooses the hash of the key modulo the partition count. If the initial "
        "count is doubled, each key stays with its processor. At other counts, keys reach a processor "
        "without their state.",
        fix=f"Expand the source topics to {_next(max(counts.values()), initial)} partitions. If the "
        "producers partition statically or by linear hashing, set `static.partitioner.class`. To lose the "
        "connection to the old state, set `setup.allowUnsafeExpansion: true`.",
    )


def _next(count: int, initial: int) -> int:
    """Return the smallest doubled count that is at least `count`."""
    while initial < count:
        initial *= 2
    return initial
