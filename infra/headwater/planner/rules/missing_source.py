"""A source topic does not exist, so nothing that depends on its partition count can be decided."""

from collections.abc import Iterator

from headwater.compiler.source_problems import missing_topic
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.counts import CountedApplication

_REPORTED = (
    ProblemCode.MISSING_SOURCE_TOPIC,
    ProblemCode.UNDECIDABLE_PARTITIONS,
    ProblemCode.FOLLOW_CYCLE,
)


def missing_source(application: CountedApplication) -> Iterator[Problem]:
    """Kafka Streams throws MissingSourceTopicException, which names no topic.

    The compiler reports most of them itself, with the operator that reads the topic.
    """
    compiled = application.compiled
    reported = {problem.topic for problem in compiled.problems if problem.code in _REPORTED}
    for name in compiled.missing_sources:
        if name not in reported:
            yield missing_topic(
                name,
                application.caller,
                why="The partition counts of the internal topics follow the source topics. The application "
                "itself would stop with MissingSourceTopicException.",
                fix=f"Create {name}, or correct its name in the document.",
                application=application.id,
                location=compiled.application.at,
            )
