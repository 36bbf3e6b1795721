"""A source topic does not exist, so that nothing that follows it can be counted."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation


def missing_source(situation: Situation) -> Iterator[Problem]:
    """Kafka Streams throws MissingSourceTopicException, naming no topic (facts 4.5)."""
    compiled = situation.compiled
    told = {
        problem.topic for problem in compiled.problems if problem.code is ProblemCode.MISSING_SOURCE_TOPIC
    }
    for name in compiled.missing_sources:
        if name not in told:
            yield Problem(
                code=ProblemCode.MISSING_SOURCE_TOPIC,
                summary=f"Source topic {name} does not exist.",
                application=situation.id,
                topic=name,
                expected="a topic of this name",
                found="none",
                why="The partition counts of the internal topics follow the source topics. The application "
                "itself would stop with MissingSourceTopicException.",
                fix=f"Create {name}, or correct its name in the document. Headwater needs leave to describe "
                "it, too.",
                location=compiled.application.at,
            )
