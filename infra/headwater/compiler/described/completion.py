"""Combines the text, the details that follow from it and details of the document; finds internal topics."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import attrs

from headwater.compiler.described.joins import implied_groups, uncertain_groups
from headwater.compiler.described.names import (
    FOREIGN_KEY_TOPIC,
    GENERATED,
    GENERATED_FOREIGN_KEY_TOPIC,
    GENERATED_REPARTITION,
)
from headwater.compiler.described.stores import KINDS, StoreFinding, find_stores, find_suppressions
from headwater.compiler.described.structure import Structure
from headwater.compiler.described.unknown import known_calls, unknown_problems
from headwater.model.nodes import (
    ChangelogKind,
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
)
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.model.topology import DescribedTopology
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion

_SUFFIX = "-repartition"


def complete_topology(
    described: DescribedTopology,
    version: KafkaStreamsVersion = DEFAULT_VERSION,
    *,
    reuses_sources: bool = False,
) -> NodeTopology:
    """Return the node topology to compile; its `problems` report missing details.

    `reuses_sources`: `topology.optimization` of the application has `reuse.ktable.source.topics`.
    """
    structure = Structure.from_topology(described.nodes)
    internal = structure.internal_topics
    suppressions = find_suppressions(structure, described.stores)
    findings = find_stores(structure, described.stores, version, reuses_sources=reuses_sources)
    windowed = frozenset(finding.name for finding in findings if finding.is_windowed)
    created_by = known_calls(described)
    implied = implied_groups(structure, frozenset(internal), suppressions.all, windowed, created_by)
    otherwise = implied_groups(structure, frozenset(internal), suppressions.generated, windowed, created_by)
    given, unknown = _given_groups(described, structure)
    names = [
        *(finding.name for finding in findings),
        *(topic.removesuffix("-repartition") for topic in internal),
    ]
    return attrs.evolve(
        described.nodes,
        stores=tuple(finding.store() for finding in findings),
        repartition_topics=tuple(
            RepartitionTopic(
                topic,
                is_foreign_key=FOREIGN_KEY_TOPIC.fullmatch(topic) is not None,
                partitions=described.repartition_partitions.get(topic),
                at=structure.readers[topic].at or described.at,
            )
            for topic in internal
        ),
        copartition_groups=(*implied, *(group for group in given if group not in implied)),
        generated_names=frozenset(name for name in names if GENERATED.fullmatch(name)),
        problems=(
            *described.nodes.problems,
            *_missing_details(findings, described.at),
            *_unused_retentions(findings, described.at),
            *_unread_topics(structure, described.at),
            *_unknown_names(described, structure, internal),
            *unknown,
            *unknown_problems(described, {each.name: each.missing for each in findings}, version),
            *_uncertain_topics(structure),
            *uncertain_groups(structure, windowed),
            *_uncertain_suppressions(
                structure,
                suppressions.after_tables | suppressions.unclear,
                [group for group in otherwise if group not in implied and group not in given],
            ),
        ),
    )


def _missing_details(findings: Iterable[StoreFinding], at: Location) -> Iterator[Problem]:
    for finding in findings:
        for detail in finding.missing:
            yield _missing_kind(finding, at) if detail == "kind" else _missing_retention(finding, at)


def _unused_retentions(findings: Iterable[StoreFinding], at: Location) -> Iterator[Problem]:
    """Warn of a retention of a store without windows and history, such as one whose kind was forgotten."""
    for finding in findings:
        if finding.detail is None or finding.detail.retention_ms is None:
            continue
        if finding.effective_kind is ChangelogKind.KEY_VALUE:
            kind = finding.detail.kind
            yield Problem(
                code=ProblemCode.CONFIG_HAS_NO_EFFECT,
                summary=f"The `retention` of store {finding.name} has no effect.",
                node=finding.name,
                expected="a windowed or versioned store",
                found=f"kind {kind}" if kind else "a key-value store, because no other kind is given",
                why="The changelog of a key-value store is compacted, and has no retention.",
                fix=f"Remove `retention` of `describe.stores.{finding.name}`, or set its `kind`: windowed, "
                "or versionedKeyValue.",
                location=at,
                severity=Severity.WARNING,
            )


def _missing_kind(finding: StoreFinding, at: Location) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=f"The description does not show the kind of store {finding.name}.",
        node=finding.name,
        expected=f"one of {', '.join(KINDS)}",
        found="no kind",
        why=f"The cleanup policy and retention of its changelog depend on the kind, and {finding.node} is "
        "printed the same way with every kind of store.",
        fix=f"Add `describe.stores.{finding.name}: {{kind: keyValue}}` or, for a window or session store, "
        "`{kind: windowed, retention: …}`. Or import with `--bootstrap-server`, which reads it from the "
        f"changelog topic, or with `--store {finding.name}=keyValue` or "
        f"`--store {finding.name}=windowed,retention=DURATION`.",
        location=at,
    )


def _missing_retention(finding: StoreFinding, at: Location) -> Problem:
    versioned = finding.effective_kind is ChangelogKind.VERSIONED
    what = "history retention" if versioned else "retention"
    meaning = {
        ChangelogKind.VERSIONED: "the history retention of the versioned store",
        ChangelogKind.WINDOWED: "window size + grace, or withRetention",
        ChangelogKind.WINDOWED_DUPLICATES: "before + after + grace of the join window",
    }[finding.effective_kind]
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=f"The description does not show the {what} of store {finding.name}.",
        node=finding.name,
        expected=f"a duration: {meaning}",
        found="no retention",
        why=f"{'min.compaction.lag.ms' if versioned else 'retention.ms'} of its changelog is computed from "
        "it.",
        fix=f"Add `retention` to `describe.stores.{finding.name}`. Or import with `--bootstrap-server`, "
        "which reads it from the changelog topic, or with "
        f"`--store {finding.name}=retention=DURATION`.",
        location=at,
    )


def _unread_topics(structure: Structure, at: Location) -> Iterator[Problem]:
    """Report repartition topics that the text only writes: the sub-topology that reads them is missing."""
    for topic, sinks in structure.sinks.items():
        is_generated = GENERATED_REPARTITION.fullmatch(topic) or GENERATED_FOREIGN_KEY_TOPIC.fullmatch(topic)
        is_named = topic.endswith(_SUFFIX) and any(sink.name == f"{topic}-sink" for sink in sinks)
        if topic not in structure.readers and (is_generated or is_named):
            yield Problem(
                code=ProblemCode.UNREADABLE_DESCRIBE,
                summary=f"No source reads {topic}.",
                topic=topic,
                node=sinks[0].name,
                expected=f"a line `Source: … (topics: [{topic}])`",
                found="none",
                why="It is a repartition topic. Without its reader, the text is not complete.",
                fix="Print `topology.describe()` again and copy the complete text.",
                location=at,
            )


def _unknown_names(
    described: DescribedTopology, structure: Structure, internal: tuple[str, ...]
) -> Iterator[Problem]:
    topics, stores, unknown = dict.fromkeys(internal), structure.users, described.unknown
    sections: tuple[tuple[str, Iterable[str], Collection[str]], ...] = (
        ("repartitions", described.repartition_partitions, topics),
        ("createdBy", described.created_by, topics),
        ("stores", described.stores, stores),
        ("unknown", dict.fromkeys((*unknown.repartitions, *unknown.created_by)), topics),
        ("unknown.stores", unknown.stores, stores),
    )
    for section, names, known in sections:
        for name in names:
            if name not in known:
                yield _unknown_name(section, name, tuple(known), described.at)


def _unknown_name(section: str, name: str, known: tuple[str, ...], at: Location) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_DETAIL,
        summary=f"`describe.{section}` names {name}, which is not in the description.",
        node=name,
        expected=", ".join(sorted(known)[:10]) or "nothing: the description has none",
        found=name,
        why="The detail applies to nothing in the description.",
        fix="Correct the name; write topic names without the application id.",
        location=at,
    )


def _given_groups(
    described: DescribedTopology, structure: Structure
) -> tuple[list[frozenset[str]], list[Problem]]:
    groups, problems = [], []
    for topics in described.copartitioned:
        known = [structure.readers[topic].name for topic in topics if topic in structure.readers]
        groups.append(frozenset(known))
        problems += [
            _unknown_name("copartitioned", topic, tuple(structure.readers), described.at)
            for topic in topics
            if topic not in structure.readers
        ]
    return groups, problems


def _uncertain_suppressions(
    structure: Structure, names: frozenset[str], groups: Sequence[frozenset[str]]
) -> Iterator[Problem]:
    """Warn of co-partition groups that the topology has if processors `names` are no suppressions."""
    readers = {source.name: topic for topic, source in structure.readers.items()}
    for group in groups:
        topics = ", ".join(sorted(readers[source] for source in group))
        shown = ", ".join(sorted(names))
        yield Problem(
            code=ProblemCode.MISSING_DETAIL,
            summary=f"Whether {topics} are co-partitioned is not known: {shown} may be `suppress` or not.",
            node=min(names),
            expected=f"a group in `copartitioned`, if they are other operators: [{topics}]",
            found="names that suppressions have, and other operators can have",
            why="`suppress` is printed like any other operator of a table whose store is named after it. A "
            "join with a suppressed table does not enforce co-partitioning, a join with any other does.",
            fix="If the processors are not `suppress`, list the topics under `describe.copartitioned`; "
            "otherwise change nothing.",
            severity=Severity.WARNING,
        )


def _uncertain_topics(structure: Structure) -> Iterator[Problem]:
    """Warn of topics that are treated as internal although they could be user topics."""
    for topic in structure.internal_topics:
        if not _is_certain(topic, structure):
            source = structure.readers[topic]
            yield Problem(
                code=ProblemCode.MISSING_DETAIL,
                summary=f"{topic} is treated as a repartition topic because of its name.",
                topic=topic,
                node=source.name,
                expected="a repartition topic of Kafka Streams",
                found="node names that a user topic could also have",
                why="The text does not show whether a topic is internal. If this one is a user topic, "
                "its name has no application id prefix and its partition count is that on the "
                "cluster.",
                fix=(
                    "If it is a user topic, declare the topology by its operators instead of its "
                    "description, or export it (`headwater import --jar`). Otherwise change nothing."
                ),
                location=source.at,
                severity=Severity.WARNING,
            )


def _is_certain(topic: str, structure: Structure) -> bool:
    if FOREIGN_KEY_TOPIC.fullmatch(topic) or GENERATED_REPARTITION.fullmatch(topic):
        return True
    source = structure.readers[topic]
    if source.name == f"{topic}-source" or len(source.topics) > 1:
        return True
    return any(
        _belongs_to_table(topic.removesuffix(_SUFFIX), sink, source, structure)
        for sink in structure.sinks[topic]
    )


def _belongs_to_table(prefix: str, sink: SinkNode, source: SourceNode, structure: Structure) -> bool:
    """Return whether `KTable#groupBy` named the topic: after the selector, the aggregation or its store."""
    if prefix in sink.parents or sink.name == f"{prefix}-sink":
        return True
    below = [structure.nodes[name] for name in structure.children.get(source.name, ())]
    return any(
        isinstance(node, ProcessorNode) and (node.name == prefix or prefix in node.stores) for node in below
    )
