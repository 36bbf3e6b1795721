"""Compiled applications as JSON, and as text: a table of internal topics for each sub-topology."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from headwater.model.compiled import Backend, CompiledApplication, InternalTopic, SubTopology
from headwater.model.problems import Location, Problem, ProblemCode, errors
from headwater.planner.phrases import counted
from headwater.report.graph import parallelism_text
from headwater.report.markdown import printable


def compile_json(compiled: Sequence[CompiledApplication], problems: Iterable[Problem] = ()) -> dict[str, Any]:
    """Return `{"applications": [...]}`, and `problems` of documents that could not be compiled."""
    document: dict[str, Any] = {"applications": [_application_json(application) for application in compiled]}
    if others := [problem_json(problem) for problem in problems]:
        document["problems"] = others
    return document


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem with all fields; fields without a value are null."""
    return {
        "code": problem.code.value,
        "severity": problem.severity.value,
        "summary": problem.summary,
        "application": problem.application,
        "topic": problem.topic,
        "node": problem.node,
        "expected": problem.expected,
        "found": problem.found,
        "why": problem.why,
        "fix": problem.fix,
        "location": location_json(problem.location),
    }


def _application_json(compiled: CompiledApplication) -> dict[str, Any]:
    return {
        "applicationId": compiled.application.id,
        "subtopologies": [_subtopology_json(part) for part in compiled.subtopologies],
        "internalTopics": [_topic_json(topic) for topic in compiled.internal_topics],
        "problems": [problem_json(problem) for problem in compiled.problems],
    }


def _subtopology_json(part: SubTopology) -> dict[str, Any]:
    return {
        "id": part.id,
        "global": part.is_global,
        "tasks": part.tasks,
        **({"processors": part.processors} if part.processors is not None else {}),
        "backend": part.backend.value,
        "nodes": list(part.nodes),
        "sources": list(part.sources),
        "sourcePatterns": list(part.source_patterns),
        "sinks": list(part.sinks),
        "repartitionTopics": list(part.repartition_topics),
        "changelogTopics": list(part.changelog_topics),
        "sourceChangelogs": list(part.source_changelogs),
        "stores": list(part.stores),
    }


def _topic_json(topic: InternalTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "kind": topic.kind.value,
        "partitions": topic.partitions,
        "config": dict(sorted(topic.config.items())),
        "subtopology": topic.subtopology,
    }


def location_json(location: Location | None) -> dict[str, Any] | None:
    """Return file, line, column and JSON pointer of a location, None if it is not known."""
    if location is None:
        return None
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "pointer": location.pointer,
    }


_KIND_COLORS = {"repartition": "blue", "changelog": "yellow", "fk-subscription": "magenta"}
_FOLLOWS = "follows its writer, count not known"
_UNDECIDED = {
    ProblemCode.MISSING_SOURCE_TOPIC,
    ProblemCode.UNDECIDABLE_PARTITIONS,
    ProblemCode.FOLLOW_CYCLE,
    ProblemCode.POLICY_VIOLATED,
}
"""Errors with which the topics that are shown are right, as far as they are known."""
_HEAD = ("internal topic", "kind", "partitions", "config")


def compile_text(compiled: Sequence[CompiledApplication]) -> str:
    """Return plain lines, without the problems."""
    return "".join(f"{line.plain.rstrip()}\n" for line in _compiled_lines(compiled))


def compile_rich(compiled: Sequence[CompiledApplication]) -> Text:
    """Return the lines of `compile_text` with colors for a terminal."""
    return Text("\n").join(_compiled_lines(compiled))


def _compiled_lines(compiled: Sequence[CompiledApplication]) -> Iterator[Text]:
    for application in compiled:
        yield from _application_lines(application)


def _application_lines(compiled: CompiledApplication) -> Iterator[Text]:
    refused = [problem for problem in errors(compiled.problems) if problem.code not in _UNDECIDED]
    if refused:
        yield Text.assemble(
            (printable(compiled.application.id), "bold underline"),
            f"  not valid: {counted(len(refused), 'error')}, so no topics are shown",
        )
        yield Text("")
        return
    topics = compiled.internal_topics
    total = sum(topic.partitions for topic in topics)
    yield Text.assemble(
        (printable(compiled.application.id), "bold underline"),
        f"  {counted(len(topics), 'internal topic')}, {counted(total, 'partition')}",
        ", as far as counts are known" if compiled.missing_sources else "",
    )
    by_part: defaultdict[int | None, list[InternalTopic]] = defaultdict(list)
    for topic in topics:
        by_part[topic.subtopology].append(topic)
    for part in compiled.subtopologies:
        yield Text("")
        yield from _subtopology_lines(part, by_part[part.id])
    if compiled.is_observed:
        yield Text("")
        yield from _observed_lines(compiled)
    if compiled.sinks:
        yield Text("")
        names = ", ".join(f"{sink.topic} ({sink.partitions or _FOLLOWS})" for sink in compiled.sinks)
        yield Text(f"  managed sinks: {printable(names)}")
    yield Text("")


def _subtopology_lines(part: SubTopology, topics: Sequence[InternalTopic]) -> Iterator[Text]:
    kind = "global sub-topology" if part.is_global else "sub-topology"
    native = ", in Spark SQL with headwater run" if part.backend is Backend.NATIVE else ""
    yield Text.assemble("  ", (f"{kind} {part.id}", "bold"), f"  {parallelism_text(part)}{native}")
    patterns = tuple(f"/{pattern}/" for pattern in part.source_patterns)
    for label, names in (("reads", (*patterns, *part.sources)), ("writes", part.sinks)):
        if names:
            yield Text.assemble("    ", (f"{label:7}", "dim"), printable(", ".join(names)))
    if topics:
        yield from _topic_lines(topics)


def _observed_lines(compiled: CompiledApplication) -> Iterator[Text]:
    yield Text.assemble("  ", ("sub-topologies not known", "bold"), "  topics as observed on the cluster")
    if compiled.external_sources:
        yield Text.assemble("    ", ("reads  ", "dim"), printable(", ".join(compiled.external_sources)))
    if compiled.internal_topics:
        yield from _topic_lines(compiled.internal_topics)


def _topic_lines(topics: Sequence[InternalTopic]) -> Iterator[Text]:
    rows = [
        (
            printable(topic.name),
            topic.kind.value,
            f"{topic.partitions:,}",
            printable(" ".join(f"{key}={value}" for key, value in sorted(topic.config.items()))),
        )
        for topic in topics
    ]
    name, kind, count = (max(map(len, column)) for column in tuple(zip(_HEAD, *rows, strict=True))[:3])
    yield Text(f"    {_HEAD[0]:{name}}  {_HEAD[1]:{kind}}  {_HEAD[2]:>{count}}  {_HEAD[3]}", "dim")
    for row in rows:
        yield Text.assemble(
            f"    {row[0]:{name}}  ",
            (f"{row[1]:{kind}}", _KIND_COLORS[row[1]]),
            f"  {row[2]:>{count}}  ",
            (row[3], "dim"),
        )
