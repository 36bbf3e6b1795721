"""A sink topic does not exist, and no document manages it."""

from collections.abc import Iterator

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.planner.application import ActiveApplication
from headwater.planner.run import Run


def missing_sink(run: Run) -> Iterator[Problem]:
    """Yield a hint for each topic: planning needs no sinks, but the application does when it writes."""
    managed = {sink.topic for compiled in run.compiled for sink in compiled.sinks}
    for application in run.active:
        if not errors(application.compiled.problems):
            for topic in _written(application.compiled):
                if topic not in managed and topic not in run.snapshot.topics:
                    yield _problem(application, topic)


def _problem(application: ActiveApplication, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_SINK_TOPIC,
        summary=f"Sink topic {topic} does not exist, and no document manages it.",
        application=application.id,
        topic=topic,
        expected="an existing topic",
        found="no such topic",
        why="Brokers that create topics automatically give it their default partition count. Otherwise the "
        "application fails when it writes the first record.",
        fix=f"Create it, or add `{topic}:` to `topics` of the document.{application.caller.describe_hint}",
        location=application.compiled.application.at,
        severity=Severity.INFO,
    )


def _written(compiled: CompiledApplication) -> list[str]:
    """Return the user topics that sinks name, sorted."""
    internal = {topic for part in compiled.subtopologies for topic in part.repartition_topics}
    internal.update(topic.name for topic in compiled.internal_topics)
    return sorted({topic for part in compiled.subtopologies for topic in part.sinks} - internal)
