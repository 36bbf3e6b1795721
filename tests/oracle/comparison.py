"""Compare Headwater's topology with that of Kafka Streams, both in the form of `subtopologies.json`."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.compiler import StreamsConfig, build_nodes, compile_document
from headwater.compiler.broker_counts import EQUAL_EXPLICIT_COUNTS
from headwater.compiler.dsl.lints import ONLY_ITS_PROCESSOR
from headwater.compiler.streams_config import MERGE_REPARTITIONS
from headwater.describe import read_description, write_description
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.model.nodes import NodeTopology, SourceNode
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.topology import Protocol, TopologyDocument
from headwater.spec import parse_document
from tests.oracle.described_documents import described
from tests.oracle.kafka_streams import Answer, Counts, Refusal, Run

Json = dict[str, Any]
Compiled = tuple[Run, CompiledApplication]
"""The start of an application, and its document compiled for it."""
_KNOWN_LATER = {"MissingSourceTopic", "UndecidablePartitions", "NotCopartitioned"}
_REFUSED_BY_BROKER = {"MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS"}


def parsed(document: Mapping[str, Any]) -> TopologyDocument | tuple[Problem, ...]:
    """Return the typed document, or the problems of an invalid one."""
    documents = parse_document(document)
    return documents.documents[0] if documents.documents else documents.problems


def compiled(document: TopologyDocument, run: Run) -> CompiledApplication:
    application = attrs.evolve(document.application, id=run.application_id, protocol=Protocol(run.protocol))
    return compile_document(attrs.evolve(document, application=application), run.partitions)


def insides(application: CompiledApplication, nodes: NodeTopology) -> Json:
    """Return sub-topologies with their topics and configs, co-partition groups and global stores."""
    return {
        "subtopologies": [
            _subtopology(part, application.internal_topics)
            for part in application.subtopologies
            if part.sources and not part.is_global
        ],
        "copartition_groups": sorted(sorted(group) for group in application.copartition_groups),
        "global_stores": sorted(store.name for store in nodes.stores if store.is_global),
    }


def _subtopology(part: SubTopology, topics: Iterable[InternalTopic]) -> Json:
    own = [topic for topic in topics if topic.subtopology == part.id]
    changelogs = {t.name: _entry(t) for t in own if t.kind is TopicKind.CHANGELOG}
    return {
        "id": part.id,
        "source_topics": sorted(part.sources),
        "sink_topics": sorted(part.sinks),
        "repartition_topics": {t.name: _entry(t) for t in own if t.kind is not TopicKind.CHANGELOG},
        "changelog_topics": changelogs,
        "source_topic_changelogs": sorted(part.source_changelogs),
        "state_stores": sorted(part.stores),
    }


def _entry(topic: InternalTopic) -> Json:
    return {"enforced_partitions": topic.partitions if topic.pinned else None, "configs": dict(topic.config)}


def theirs(described: Mapping[str, Any]) -> Json:
    """Return `described` sorted as ours, without settings of source topics that serve as changelogs.

    A source topic of another sub-topology serves as changelog, too: Kafka Streams does not create it.
    """
    parts = json.loads(json.dumps(described["subtopologies"]))
    read = {topic for part in parts for topic in part["source_topics"]}
    for part in parts:
        part["source_topic_changelogs"] = list(read & part["changelog_topics"].keys())
        for key in ("source_topics", "sink_topics", "source_topic_changelogs", "state_stores"):
            part[key] = sorted(part[key])
        for topic in part["source_topic_changelogs"]:
            part["changelog_topics"].pop(topic, None)
    return {
        "subtopologies": parts,
        "copartition_groups": sorted(sorted(group) for group in described["copartition_groups"]),
        "global_stores": sorted(described["global_stores"]),
    }


def differences(document: Mapping[str, Any], answer: Answer, runs: Iterable[Run]) -> Iterator[str]:
    """Yield all differences between Headwater and Kafka Streams; none if both refuse the document."""
    typed = parsed(document)
    if isinstance(typed, tuple):
        if answer.refusal is None:
            yield f"refused by the schema only: {_texts(typed)}"
        return
    nodes = build_nodes(typed)
    if answer.refusal is not None and answer.refusal.stage == "build":
        yield from _refusal_differences(
            answer.refusal, compiled(typed, Run(typed.application.id, {})).problems
        )
        return
    if found := errors(nodes.problems):
        if any(problem.expected != ONLY_ITS_PROCESSOR for problem in found):  # refused on purpose
            yield f"built by Kafka Streams, refused by us: {_texts(found)}"
        return
    text = write_description(nodes)
    if text != answer.describe:
        yield f"describe:\n--- ours\n{text}\n--- Kafka Streams\n{answer.describe}"
    ours = [(run, compiled(typed, run)) for run in runs]
    yield from run_differences(nodes, answer, ours)
    yield from import_differences(typed, nodes, text, ours)


def import_differences(
    document: TopologyDocument, nodes: NodeTopology, text: str, compiled_runs: Iterable[Compiled]
) -> Iterator[str]:
    """Yield the differences after an export to a description and an import of it."""
    read, problems = read_description(text)
    if found := errors(problems):
        yield f"our reader refuses the description: {_texts(found)}"
    elif (again := write_description(read)) != text:
        yield f"import:\n--- text\n{text}\n--- after reading and writing\n{again}"
    imported = described(document.application, text, nodes)
    if has_unseen_groups(document, nodes):
        return
    for run, direct in compiled_runs:
        if errors(direct.problems):
            continue
        indirect = compiled(imported, run)
        if essence(direct) != essence(indirect):
            yield f"import, {run}:\n--- direct {essence(direct)}\n--- by the text {essence(indirect)}"


def has_unseen_groups(document: TopologyDocument, nodes: NodeTopology) -> bool:
    """Return whether co-partition groups do not follow from the text and the groups of Kafka Streams."""
    known = {node.name for node in nodes.nodes if isinstance(node, SourceNode)}
    if any(group - known for group in nodes.copartition_groups) or _has_disconnected_processors(nodes):
        return (
            True  # Kafka Streams omits members of groups or users of stores, and a text does not contain them
        )
    if _connects_stores_of_tables(document):
        return True  # its text looks like a join
    # a repartition moved above merge() leaves the other branch out of the group, not of the text
    return MERGE_REPARTITIONS in StreamsConfig.from_application(
        document.application
    ).optimizations and _merges(document)


def _merges(document: TopologyDocument) -> bool:
    return any(isinstance(step.operator, op.Merge) for step in document.steps)


def _connects_stores_of_tables(document: TopologyDocument) -> bool:
    """Return whether custom processors use stores of tables by name."""
    calls = [step.operator for step in document.steps]
    connected = {name for call in calls for name in getattr(call, "stores", ())}
    built = {store.name for call in calls for store in getattr(call, "connected", ())}
    added = (processor_api.AddStateStore, processor_api.AddGlobalStore, processor_api.AddReadOnlyStateStore)
    return bool(connected - built - {call.store.name for call in calls if isinstance(call, added)})


def _has_disconnected_processors(nodes: NodeTopology) -> bool:
    """Return whether a builder that was added again disconnected a store from its processors."""
    users = {
        store.name: {node.name for node in nodes.nodes if store.name in getattr(node, "stores", ())}
        for store in nodes.stores
    }
    return any(
        users[store.name] and not (len(store.connections) == 1 and store.connections[0] >= users[store.name])
        for store in nodes.stores
        if store.connections
    )


def essence(application: CompiledApplication) -> Json:
    """Return topics and errors; co-partition groups of a description matter only for the counts."""
    return {
        "topics": {t.name: (t.kind.value, t.partitions, dict(t.config)) for t in application.internal_topics},
        "errors": sorted(problem.summary for problem in errors(application.problems)),
    }


def run_differences(nodes: NodeTopology, answer: Answer, compiled_runs: Sequence[Compiled]) -> Iterator[str]:
    """Yield the differences of counts, tasks and refusals of each run, and of sub-topologies and configs."""
    for (run, ours), counts in zip(compiled_runs, answer.runs, strict=True):
        found = _refused_alone(ours.problems)
        is_refused = counts.refusal is not None or counts.status in _REFUSED_BY_BROKER
        if is_refused or _has_other_count(run, ours, counts):
            if not found:
                yield f"{run}: refused only by Kafka Streams: {counts.refusal or counts.detail}"
            else:
                yield from _cause_differences(run, counts, found)
        elif found:
            yield f"{run}: refused only by us: {_texts(found)}; theirs: {counts}"
        else:
            yield from _count_differences(run, ours, counts)
            if answer.insides is not None and run == compiled_runs[0][0]:
                own, real = insides(ours, nodes), theirs(answer.insides)
                if own != real:
                    yield f"insides:\n--- ours\n{_indented(own)}\n--- theirs\n{_indented(real)}"


def _refused_alone(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the errors, and the warnings about topics that Headwater creates and Kafka Streams does not."""
    is_missing = ProblemCode.MISSING_SOURCE_TOPIC
    return tuple(each for each in problems if each.severity is Severity.ERROR or each.code is is_missing)


def _has_other_count(run: Run, ours: CompiledApplication, counts: Counts) -> bool:
    """Return whether a topic that is not ours is a changelog topic with another count: it is refused.

    The program decides counts as if no internal topic existed.
    """
    own = {topic.name for topic in ours.internal_topics}
    return any(run.partitions.get(t, count) != count for t, count in counts.counts.items() if t not in own)


def _indented(value: Json) -> str:
    return json.dumps(value, indent=1, sort_keys=True)


def _count_differences(run: Run, ours: CompiledApplication, counts: Counts) -> Iterator[str]:
    created = {topic.name: topic.partitions for topic in ours.internal_topics}
    # a source topic may serve as a changelog topic of another sub-topology: it exists
    new = {t: count for t, count in counts.counts.items() if t in created or t not in run.partitions}
    if created != new:
        yield f"{run}: counts {created}, theirs {counts.counts}"
    tasks = {str(part.id): part.tasks for part in ours.subtopologies if part.tasks}
    if tasks != dict(counts.tasks):
        yield f"{run}: tasks {tasks}, theirs {counts.tasks}"


_CAUSES: Mapping[str, frozenset[str]] = {
    "MissingSourceTopicException": frozenset({"MissingSourceTopic"}),
    "TaskAssignmentException": frozenset({"UndecidablePartitions"}),
    "InvalidTopicException": frozenset({"InvalidName"}),
    "MISSING_SOURCE_TOPICS": frozenset({"MissingSourceTopic"}),
    "INCORRECTLY_PARTITIONED_TOPICS": frozenset({"NotCopartitioned", "ConflictingPartitions"}),
    "StreamsInvalidTopologyException": frozenset({"UndecidablePartitions", "InvalidTopology"}),
}


_MAX_NAMES = 8
_COUNTS_IN_MESSAGES = re.compile(r"(?<=[{ ])[\w.-]+=\d+(?=[,}])")
_NAMES_IN_MESSAGES = (
    re.compile(r"has not been named: (.*)"),
    re.compile(r"(?:Processor|Sink|Source) (\S+?)(?:-filter|-sink|-source)? is already added"),
    re.compile(r"Topic (\S+) has already been registered"),
    re.compile(r"StateStore has already been added with the name (\S+)"),
    re.compile(r"StateStore (\S+) is not added yet"),
    re.compile(r"repartition topic \[(\S+)\] doesn't match"),
    re.compile(r"Missing source topics\. \[(.*)\]"),
    re.compile(r"Source topics (.*) are missing"),
)


def _missing_names(message: str, found: Sequence[Problem]) -> Iterator[str]:
    """Yield a difference for names and counts in Kafka Streams' message that no error of ours contains."""
    reported = " ".join(str(attrs.astuple(problem)) for problem in found)
    lists = [each.split(", ") for pattern in _NAMES_IN_MESSAGES for each in pattern.findall(message)]
    names = {name for names in lists if len(names) <= _MAX_NAMES for name in names}
    if "partitions" in message or "co-partitioned" in message:
        counts = set(_COUNTS_IN_MESSAGES.findall(message))
        # The broker's message has the counts of one join, our problem all explicit counts.
        is_explicit_conflict = any(problem.expected == EQUAL_EXPLICIT_COUNTS for problem in found)
        names |= set() if is_explicit_conflict else counts
    if missing := sorted(name for name in names if name not in reported):
        yield f"our errors do not name {missing}, theirs do: {message}; ours: {_texts(found)}"


def _cause_differences(run: Run, counts: Counts, found: Sequence[Problem]) -> Iterator[str]:
    cause = counts.refusal.name if counts.refusal else counts.status or ""
    codes = {str(problem.code) for problem in found}
    if cause in _CAUSES and not codes & _CAUSES[cause]:
        yield f"{run}: {cause} {counts.detail or counts.refusal}, ours {_texts(found)}"
    yield from _missing_names(counts.refusal.message if counts.refusal else counts.detail or "", found)


def _refusal_differences(refusal: Refusal, problems: Iterable[Problem]) -> Iterator[str]:
    """Yield a difference unless a problem of ours names the exception class of Kafka Streams."""
    found = [problem for problem in errors(problems) if str(problem.code) not in _KNOWN_LATER]
    if not found:
        yield f"refused only by Kafka Streams: {refusal}"
    elif refusal.name == "NotAvailable":
        if not any(problem.code is ProblemCode.NOT_IN_VERSION for problem in found):
            yield f"not available: {refusal}; ours: {_texts(found)}"
    elif not any(refusal.name in problem.why for problem in found):
        yield f"refused for another reason: {refusal}; ours: {_texts(found)}"
    else:
        yield from _missing_names(refusal.message, found)


def _texts(problems: Iterable[Problem]) -> str:
    return "; ".join(f"{problem.code}: {problem.summary} ({problem.why})" for problem in problems)
