"""The document names no version of Kafka Streams, and that of the last setup is not the newest."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.versions import DEFAULT_VERSION
from headwater.planner.application import ActiveApplication


def version_not_named(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning: only a stack knows the version of the last setup."""
    declared = application.compiled.application
    if declared.names_version or declared.kafka_streams == DEFAULT_VERSION:
        return
    yield application.problem(
        ProblemCode.MISSING_DETAIL,
        f"{application.id} names no version of Kafka Streams.",
        expected=f"the version that the application runs, such as "
        f'`kafkaStreams: "{declared.kafka_streams.written}"`',
        found="no `application.kafkaStreams`",
        why=f"The stack continues with {declared.kafka_streams}, the version of its last `pulumi up`. "
        f"Everything that does not read the stack uses {DEFAULT_VERSION}: `headwater compile`, the agent and "
        "`headwater run`.",
        fix="Set `application.kafkaStreams` in the document.",
        severity=Severity.WARNING,
    )
