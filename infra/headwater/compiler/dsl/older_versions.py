"""Calls, and options of calls, that the application's version of Kafka Streams does not have."""

from collections.abc import Iterator, Sequence

from headwater.compiler.version_differences import OFFSET_RESETS, READ_ONLY_STORES, Difference
from headwater.model import operators as op
from headwater.model.operators import Step
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.versions import KafkaStreamsVersion

_OLD_OFFSET_RESETS = (None, "earliest", "latest")


def missing_options(steps: Sequence[Step], version: KafkaStreamsVersion) -> Iterator[Problem]:
    """Yield a problem for each call or option that is newer than `version`."""
    if OFFSET_RESETS.is_in(version):
        return
    pending = list(reversed(steps))
    while pending:
        step = pending.pop()
        operator = step.operator
        if isinstance(operator, op.Split):
            branches = (*operator.branches, *((operator.default,) if operator.default else ()))
            pending += [inner for branch in reversed(branches) for inner in reversed(branch.then)]
        if isinstance(operator, op.AddReadOnlyStateStore) and not READ_ONLY_STORES.is_in(version):
            yield _not_in_version(
                "addReadOnlyStateStore",
                READ_ONLY_STORES,
                version,
                "a `table`, or a store with a changelog",
                step.at,
            )
        reset = getattr(operator, "offset_reset", None)
        if reset not in _OLD_OFFSET_RESETS:
            yield _not_in_version(
                f"offsetReset: {reset}", OFFSET_RESETS, version, "`earliest` or `latest`", step.at
            )


def _not_in_version(
    what: str, difference: Difference, version: KafkaStreamsVersion, instead: str, at: Location | None
) -> Problem:
    return Problem(
        code=ProblemCode.NOT_IN_VERSION,
        summary=f"`{what}` exists since Kafka Streams {difference.since_text}.",
        expected=instead,
        found=f"`{what}`, with Kafka Streams {version}",
        why="The application does not compile with its version of Kafka Streams.",
        fix=f"Use {instead}, or set `application.kafkaStreams` to the version that runs.",
        location=at,
    )
