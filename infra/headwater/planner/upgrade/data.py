"""What an upgrade changes of data: formats of records and of local state, and what a streams group accepts.

Names and settings of topics are in `topics`. Each row says what to do, or that nothing is to be done.
"""

from collections.abc import Callable, Iterator

import attrs

from headwater.compiler.described.names import TABLE_AGGREGATION_NODE
from headwater.compiler.version_differences import LOGGED_HEADERS, Difference
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.nodes import ChangelogKind
from headwater.model.problems import Severity
from headwater.model.topology import Protocol
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.phrases import counted, leave_streams_group, listed
from headwater.planner.upgrade.changes import Change, ChangeKind, DataNote
from headwater.planner.upgrade.topology import Versions

_LAST_OLD_AGGREGATES = "3.4"
_MOST_TOPICS = 5


def _difference_since(release: str, source: str) -> Difference:
    return Difference("", (KafkaStreamsVersion(*map(int, release.split("."))),), source, "")


_AGGREGATES_OF_TABLES = _difference_since("3.5.0", "KIP-904")
_MANAGED_OFFSETS = _difference_since("4.3.0", "KIP-1035")
_STORES_WITH_HEADERS = _difference_since("4.3.0", "KIP-1271, KIP-1285")
_TRANSACTIONAL_STORES = _difference_since("4.4.0", "KIP-892")
_HEADERS_OF_WINDOWED_KEYS = _difference_since("4.4.0", "KIP-1321")


@attrs.frozen
class _Row:
    """A difference that concerns data, of which applications, and what is reported."""

    difference: Difference
    concerns: Callable[[CompiledApplication], bool]
    subject: str
    what: str
    first: str


def data_notes(versions: Versions) -> Iterator[DataNote]:
    """Yield what changes for the data of an application between two versions, in the order of versions."""
    before = versions.before.application.kafka_streams
    after = versions.after.application.kafka_streams
    for row in _ROWS:
        if row.difference.is_added(before, after) and row.concerns(versions.before):
            yield DataNote(
                subject=row.subject,
                source=row.difference.source,
                since=row.difference.since_text,
                what=row.what,
                first=row.first.format(before=min(before.release, _LAST_OLD_AGGREGATES)),
            )


def group_refusals(versions: Versions) -> Iterator[Change]:
    """Yield an error if a streams group does not accept what the new version sends.

    Its coordinator keeps the topology of the first members (KAFKA-20170): sub-topologies, topics and their
    settings. Source: `GroupMetadataManager#streamsGroupHeartbeat`.
    """
    application = versions.before.application
    if application.protocol is not Protocol.STREAMS:
        return
    before, after = sent_topology(versions.before), sent_topology(versions.after)
    if before == after:
        return
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    more = f" and {counted(len(names) - _MOST_TOPICS, 'other')}" if len(names) > _MOST_TOPICS else ""
    yield Change(
        kind=ChangeKind.REFUSED,
        severity=Severity.ERROR,
        what=f"The brokers do not accept the topology of the new version in the group {application.id}: "
        f"{listed(names[:_MOST_TOPICS])}{more}.",
        before="the topology of the group",
        after="InvalidRequestException: Topology updates are not supported yet",
        why="A streams group keeps the topology of its first members, with the settings of its internal "
        "topics. Instances of the new version stop with an exception, also if no other instance is running.",
        first="Run the new version under a new application id, which begins without state and offsets. Or "
        f"stop all instances. {leave_streams_group(application.id)}",
        location=application.at,
    )


def sent_topology(compiled: CompiledApplication) -> dict[str, object]:
    """Return what a client sends about its topology: a phrase for each part → its content.

    Source: `StreamsGroupHeartbeatRequest`, its field `Topology`.
    """
    topics: dict[str, object] = {
        topic.name: (
            topic.subtopology,
            topic.partitions if topic.pinned else 0,
            tuple(sorted(topic.config.items())),
        )
        for topic in compiled.internal_topics
    }
    sinks = compiled.repartition_sinks
    parts: dict[str, object] = {
        f"sub-topology {part.id}": (
            *(part.sources, part.source_patterns, part.repartition_topics),
            *(part.changelog_topics, sinks[part.id]),
        )
        for part in compiled.subtopologies
        if not part.is_global
    }
    return topics | parts | {"co-partition groups": compiled.copartition_groups}


def _has_state(compiled: CompiledApplication) -> bool:
    """Return whether its tasks have state of their own."""
    return compiled.is_stateful


def _aggregates_tables(compiled: CompiledApplication) -> bool:
    """Return whether a grouped table may be aggregated: the text says so, or there is none."""
    text = compiled.described
    return text is None or any(TABLE_AGGREGATION_NODE.fullmatch(node.name) for node in text.nodes)


def _logs_headers(compiled: CompiledApplication) -> bool:
    return any(
        topic.changelog_kind is ChangelogKind.WINDOWED_DUPLICATES or topic.kind is TopicKind.FK_SUBSCRIPTION
        for topic in compiled.internal_topics
    )


def _writes_windowed_keys(compiled: CompiledApplication) -> bool:
    """Return whether results of windows may be written to a topic with their keys."""
    windowed = {
        topic.subtopology
        for topic in compiled.internal_topics
        if topic.changelog_kind is ChangelogKind.WINDOWED
    }
    return any(part.id in windowed and part.sinks for part in compiled.subtopologies)


def _sets_config(key: str, value: str) -> Callable[[CompiledApplication], bool]:
    """Return whether an application with state sets a config to a value, in any case."""
    return lambda compiled: (
        _has_state(compiled) and compiled.application.config.get(key, "").strip().lower() == value
    )


_ROWS = (
    _Row(
        _AGGREGATES_OF_TABLES,
        _aggregates_tables,
        "repartition topics of grouped tables",
        "Records that an aggregation of a grouped table writes to its repartition topic have another format.",
        "If the application aggregates grouped tables, restart it twice, one instance after another: first "
        'with `upgrade.from: "{before}"`, then without.',
    ),
    _Row(
        _MANAGED_OFFSETS,
        _has_state,
        "local state",
        "Earlier versions cannot open a store on disk that this version has opened.",
        "Nothing. To go back, delete the local state of each instance: it is restored from the changelogs.",
    ),
    _Row(
        _STORES_WITH_HEADERS,
        _sets_config("dsl.store.format", "headers"),
        "local state",
        "`dsl.store.format: HEADERS` has an effect: stores keep headers of records. A store on disk that was "
        "opened with it cannot be opened without it.",
        "Nothing. To remove the config again, delete the local state of each instance: it is restored from "
        "the changelogs.",
    ),
    _Row(
        LOGGED_HEADERS,
        _logs_headers,
        "changelog records",
        "Changelog records of stores of stream-stream joins, and of subscriptions of foreign-key joins, have "
        "the headers of the record that caused them. Keys and values have the same format.",
        "Nothing, unless another program reads these changelog topics.",
    ),
    _Row(
        _TRANSACTIONAL_STORES,
        _sets_config("enable.transactional.statestores", "true"),
        "local state",
        "`enable.transactional.statestores` has an effect: changes of stores stay in memory until they are "
        "committed.",
        "Check the memory of the instances: `statestore.uncommitted.max.bytes` bounds these changes.",
    ),
    _Row(
        _HEADERS_OF_WINDOWED_KEYS,
        _writes_windowed_keys,
        "partitions of windowed keys",
        "The serializer of a windowed key gets the headers of its record when the partition is chosen. If it "
        "reads headers, as for schema ids in headers, a key goes to another partition than before.",
        "Nothing for serializers that ignore headers, such as Kafka's own. Otherwise give the sink a "
        "partitioner of your own, which chooses the partitions of before.",
    ),
)
