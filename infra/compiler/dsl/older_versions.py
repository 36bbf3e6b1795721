"""Options of calls that the application's version of Kafka Streams does not have."""

from collections.abc import Iterator, Sequence

from infra.compiler.version_differences import OFFSET_RESETS
from infra.model import operators as op
from infra.model.operators import Step
from infra.model.problems import Problem, ProblemCode
from infra.model.versions import KafkaStreamsVersion

_OLD_OFFSET_RESETS = (None, "earliest", "latest")


def missing_options(steps: Sequence[Step], version: KafkaStreamsVersion) -> Iterator[Problem]:
    """Yield a problem for each option that is newer than `version`."""
    if OFFSET_RESETS.is_in(version):
        return
    pending = list(reversed(steps))
    while pending:
        step = pending.pop()
        operator = step.operator
        if isinstance(operator, op.Split):
            branches = (*operator.branches, *((operator.default,) if operator.default else ()))
            pending += [inner for branch in reversed(branches) for inner in reversed(branch.then)]
        reset = getattr(operator, "offset_reset", None)
        if reset not in _OLD_OFFSET_RESETS:
            yield Problem(
                code=ProblemCode.NOT_IN_VERSION,
                summary=f"`offsetReset: {reset}` exists since Kafka Streams {OFFSET_RESETS.since_text}.",
                expected="`earliest` or `latest`",
                found=f"`{reset}`, with Kafka Streams {version}",
                why="The application does not compile with its version of Kafka Streams.",
                fix="Use `earliest` or `latest`, or set `application.kafkaStreams` to the version that runs.",
                location=step.at,
            )
