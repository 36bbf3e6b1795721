"""An expansion would move keys of a stateful application away from their state."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication
from infra.planner.phrases import counted, listed


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878, motivation: autoscaling is for stateless and statically partitioned applications."""
    if application.config.static_partitioner or application.compiled.application.setup.allow_unsafe_expansion:
        return
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
        fix="If the producers partition statically, set `static.partitioner.class`. To expand and lose the "
        "connection to the old state, set `setup.allowUnsafeExpansion: true`.",
    )
