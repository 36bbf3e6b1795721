"""Keys of a stateful application would move to partitions that do not hold their state."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication
from infra.planner.wording import counted, listed


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878, motivation: autoscaling is for stateless and statically partitioned applications."""
    if application.config.static_partitioner or application.compiled.application.setup.allow_unsafe_expansion:
        return
    growing = [state.name for state in application.internal if state.missing_partitions]
    if not growing or not application.config.autoscaling or not application.compiled.is_stateful:
        return
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} keeps state and is not statically partitioned: an expansion moves keys away from "
        "their state.",
        expected="a stateless application, or `static.partitioner.class`",
        found=f"{counted(len(growing), 'topic')} to expand: {listed(growing)}",
        why="With more partitions Kafka's partitioner sends most keys to another partition. Their state "
        "stays behind: counts start again, joins miss their partners.",
        fix="Set `static.partitioner.class` if the producers partition statically. To accept that state is "
        "left behind, set `setup.allowUnsafeExpansion: true`.",
    )
